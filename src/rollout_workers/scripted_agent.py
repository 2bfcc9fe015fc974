"""Episodes that a demonstrator plays: the same loop as a policy's, with intents instead of samples.

Owns ``ScriptedAgent`` and the choice of a task's demonstrator. Invariants: the recorded tokens are
the policy's own prompt and the formatted action, so that cloning trains on what a policy will see;
a demonstrator reads observations only. Used for cloning data and for measuring browsers without a
policy. Must not import torch or ray.
"""

from __future__ import annotations

import numpy as np

from environments.environment import Environment
from environments.interface.grammar import format_action
from policy.prompts import PromptFormat
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.episodes import NO_POLICY, Trajectory
from records.failures import EpisodeFailed, Failure
from rollout_workers.agent import Decision, Turn
from rollout_workers.episode import play
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from sites.experts import Expert, Intent, resolve


class ScriptedAgent:
    """Turns the intents of an expert into decisions.

    Log-probabilities are 0: the demonstrator takes its action with certainty; the policy version is
    ``NO_POLICY``. An intent that names what is not on the page is the task's failure, not the agent's.
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
        self._format = prompt_format
        self._tokenizer = tokenizer
        self._spec = spec
        self._limits = limits or PolicySettings()

    async def decide(self, turn: Turn) -> Decision:
        """Return the demonstrator's next action as tokens."""
        intent = self._next_intent(turn)
        try:
            action = resolve(intent, turn.observation)
        except LookupError as error:
            raise EpisodeFailed(Failure(codes.DEMONSTRATOR_LOST, str(error))) from error
        prompt = self._format.build(
            self._tokenizer,
            intent=turn.intent,
            history=turn.history,
            observation=turn.observation.text,
            feedback=turn.feedback,
            max_prompt_tokens=self._limits.max_prompt_tokens,
        )
        text = format_action(action)
        action_ids = np.asarray(self._format.action_ids(self._tokenizer, text), dtype=np.int32)
        return Decision(
            prompt_ids=prompt.ids,
            action_ids=action_ids,
            logprobs=np.zeros(len(action_ids), dtype=np.float32),
            action_text=text,
            policy_version=NO_POLICY,
            temperature=0.0,
            truncated_tokens=prompt.truncated_tokens,
        )

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
    return (await play(env, agent, spec, settings)).trajectory
