"""A policy that is watched while it plays: where it is stuck, it does not do again what it did there before.

Owns ``WatchedPolicyAgent``. Invariants: as long as nothing is stuck the policy decides as it would alone; a decision
carries the policy's own tokens, and the temperature they were sampled at. It is for evaluation: where the policy was
asked again, log-probabilities are those of its own distribution, not of the one without what was tried.
"""

from __future__ import annotations

from dataclasses import replace

from environments.interface.feedback import joined
from environments.interface.grammar import GrammarError, parse
from rollout_workers.agent import Decision, PolicyAgent, Turn
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.settings import PlanningSettings
from rollout_workers.spec import EpisodeSpec

NO_HEADWAY = "The last actions brought the task no further; do something else."


class WatchedPolicyAgent:
    """Watches ``policy`` over one episode, and in the mode ``replan`` leads it out of where it is stuck.

    The milestones are the task's, as the run's milestone judge says. After an event, until a further milestone comes
    true, an action that was already taken in the same state is not taken again: the policy is asked up to
    ``settings.tries`` times more, at ``settings.temperature``, for one that is an action and was not tried.
    """

    def __init__(
        self,
        policy: PolicyAgent,
        spec: EpisodeSpec,
        settings: PlanningSettings,
        *,
        folder: PlanFolder | None = None,
        state: PlanState | None = None,
    ) -> None:
        self._policy = policy
        self._spec = spec
        self._settings = settings
        self._folder = folder
        named = [milestone.description for milestone in spec.task.milestones]
        self.state = state or PlanState(episode_id=spec.episode_id, milestones=named, reached=[False] * len(named))

    async def decide(self, turn: Turn) -> Decision:
        """Return the policy's next action, or another one where that was tried in vain."""
        state, settings = self.state.model_copy(deep=True), self._settings
        state.reached = list(turn.milestones)
        state.see(turn, settings.observations)
        if state.look(turn.index, settings) and settings.mode == "replan":
            state.replans += 1
            state.tried_end = len(state.moves)
        if state.tried_end and settings.tell:
            turn = replace(turn, feedback=joined([*filter(None, [turn.feedback]), NO_HEADWAY]))
        decision = await self._policy.decide(turn)
        for again in range(1, settings.tries + 1):
            if not state.tried(turn, decision.action_text) and (again == 1 or _is_action(decision.action_text)):
                break
            state.retries += 1
            seed = self._spec.step_seed(turn.index, again)
            decision = await self._policy.sample(turn, settings.temperature, seed)
        state.moved(turn, decision.action_text)
        self.state = state
        if self._folder is not None:
            await self._folder.save(state)
        return decision


def _is_action(text: str) -> bool:
    try:
        parse(text)
    except GrammarError:
        return False
    return True
