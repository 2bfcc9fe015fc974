"""Episodes that a demonstrator plays: the same loop as a policy's, with intents instead of samples.

Owns ``ScriptedAgent`` and the choice of a task's demonstrator. Invariants: the recorded tokens are
the policy's own prompt and the formatted action, so that cloning trains on what a policy will see;
a demonstrator reads observations only. Used for cloning data and for measuring browsers without a
policy. Must not import torch or ray.
"""

from __future__ import annotations

from environments.environment import Environment
from environments.interface.grammar import format_action
from policy.prompts import PromptFormat
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.episodes import Trajectory
from records.failures import EpisodeFailed, Failure
from rollout_workers.agent import Decision, DecisionWriter, Turn
from rollout_workers.episode import play
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from sites.experts import Expert, Intent, resolve


class ScriptedAgent:
    """Turns the intents of an expert into decisions.

    An intent that names what is not on the page is the task's failure, not the agent's.
    """

    def __init__(
        self,
        demonstrator: Expert,
        prompt_format: PromptFormat,
        tokenizer: TextTokenizer,
        spec: EpisodeSpec,
        *,
        limits: PolicySettings | None = None,
    ) -> None:
        self._demonstrator = demonstrator
        self._spec = spec
        self.writer = DecisionWriter(prompt_format, tokenizer, spec, limits or PolicySettings())

    async def decide(self, turn: Turn) -> Decision:
        """Return the demonstrator's next action as tokens."""
        intent = self._next_intent(turn)
        try:
            action = resolve(intent, turn.observation)
        except LookupError as error:
            raise EpisodeFailed(Failure(codes.DEMONSTRATOR_LOST, str(error))) from error
        return self.writer.decision(turn, format_action(action))

    def _next_intent(self, turn: Turn) -> Intent:
        """Start the generator at the first turn; send it the observation at each later one."""
        try:
            return next(self._demonstrator) if turn.index == 0 else self._demonstrator.send(turn.observation)
        except StopIteration as end:
            detail = f"the demonstrator of {self._spec.task.template} ended without an exit"
            raise EpisodeFailed(Failure(codes.DEMONSTRATOR_ENDED, detail)) from end
        except LookupError as error:
            raise EpisodeFailed(Failure(codes.DEMONSTRATOR_LOST, str(error))) from error


def demonstrator(spec: EpisodeSpec) -> Expert:
    """Return the expert of the spec's task, made imperfect as ``spec.quality`` says (seeded by ``spec.seed``).

    Raises ``EpisodeFailed`` (kind task) when the task's template has no expert.
    """
    # Both import every site, which a worker that plays policies does not need.
    from sites.tasks import expert_of

    try:
        expert = expert_of(spec.task)
    except KeyError as error:
        raise EpisodeFailed(Failure(codes.NO_DEMONSTRATOR, str(error))) from error
    if spec.quality is None:
        return expert
    from sites.demonstrations import demonstrate

    return demonstrate(spec.task, spec.seed, spec.quality)


async def record_demonstration(
    env: Environment,
    prompt_format: PromptFormat,
    tokenizer: TextTokenizer,
    spec: EpisodeSpec,
    settings: RolloutSettings,
    limits: PolicySettings | None = None,
) -> Trajectory:
    """Let the task's demonstrator play one episode; see ``episode.play``."""
    agent = ScriptedAgent(demonstrator(spec), prompt_format, tokenizer, spec, limits=limits)
    return (await play(env, agent, spec, settings, writer=agent.writer)).trajectory
