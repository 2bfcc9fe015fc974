"""A policy that is watched while it plays: it does not repeat what led nowhere, nor exit before its milestones.

Owns ``WatchedPolicyAgent``. Invariants: as long as neither happens the policy decides as it would alone; a decision
carries the policy's own tokens, and the temperature they were sampled at. It is for evaluation: where the policy was
asked again, log-probabilities are those of its own distribution, not of the one without what was tried.
"""

from __future__ import annotations

from dataclasses import replace

from environments.interface.feedback import joined
from records.environment import Action
from rollout_workers.agent import Decision, PolicyAgent, Turn, milestone_marks
from rollout_workers.planning.progress import CriticProgress
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.settings import PlanningSettings
from rollout_workers.spec import EpisodeSpec

NO_HEADWAY = "The last actions brought the task no further; do something else."


class WatchedPolicyAgent:
    """Watches ``policy`` over one episode, and in the mode ``replan`` leads it out of where it is stuck.

    The milestones are the task's, as the run's milestone judge says; those that nobody verifies while it plays do not
    count. Progress is their share, or what ``progress`` says. An action is *in vain* if the agent was stuck, has made
    no progress since, and took the action before in the same state; so is an exit while a milestone is not reached. In
    its place the policy is asked up to ``settings.tries`` times more, at ``settings.temperature``, for an action that
    is not; a policy that has no other keeps to its own.
    """

    def __init__(
        self,
        policy: PolicyAgent,
        spec: EpisodeSpec,
        settings: PlanningSettings,
        *,
        progress: CriticProgress | None = None,
        folder: PlanFolder | None = None,
        state: PlanState | None = None,
    ) -> None:
        self._policy = policy
        self._spec = spec
        self._settings = settings
        self._progress = progress
        self._folder = folder
        self.state = state or PlanState(episode_id=spec.episode_id)

    async def decide(self, turn: Turn) -> Decision:
        """Return the policy's next action, or another one where that was tried in vain."""
        state, settings = self.state.model_copy(deep=True), self._settings
        marks = milestone_marks(self._spec.task, turn)
        state.milestones, state.reached = [mark.description for mark in marks], [mark.reached for mark in marks]
        if self._progress is not None:
            state.potential = await self._progress.of(turn)
        state.see(turn, settings.observations)
        if state.look(turn.index, settings) and settings.mode == "replan":
            state.replans += 1
            state.tried_end = len(state.moves)
        if state.tried_end and settings.tell:
            turn = replace(turn, feedback=joined([*filter(None, [turn.feedback]), NO_HEADWAY]))
        decision = await self._policy.decide(turn)
        if settings.mode == "replan" and self._in_vain(state, turn, decision.read()[0], decision):
            decision = await self._other(state, turn) or decision
        state.moved(turn, decision.action_text)
        self.state = state
        if self._folder is not None:
            await self._folder.save(state)
        return decision

    async def _other(self, state: PlanState, turn: Turn) -> Decision | None:
        """Return an action that is not in vain; None where the policy gives none."""
        for again in range(1, self._settings.tries + 1):
            state.retries += 1
            seed = self._spec.step_seed(turn.index, again)
            decision = await self._policy.sample(turn, self._settings.temperature, seed)
            action, _ = decision.read()
            if action is not None and not self._in_vain(state, turn, action, decision):
                return decision
        return None

    @staticmethod
    def _in_vain(state: PlanState, turn: Turn, action: Action | None, decision: Decision) -> bool:
        early = action is not None and action.kind == "exit" and state.current is not None
        return early or state.tried(turn, decision.action_text)
