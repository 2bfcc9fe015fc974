"""An agent that plays by planning with a language model behind a chat endpoint: plan, verify, act, plan anew.

Owns ``ModelAgent``. Invariants: the state changes by whole decisions, so that one that was interrupted leaves none of
itself; what the model says is a plan, an answer about milestones or a text for the grammar, and nothing else of it is
used; all questions of a decision share one deadline; where the model has no answer the episode fails, it is not scored.
"""

from __future__ import annotations

from environments.interface.grammar import GrammarError, parse
from judges.llm.interface import A, LanguageModel, LlmQuestion
from records import failure_codes as codes
from records.deadline import Deadline
from replay.stuck import Stuck
from rollout_workers.agent import Decision, DecisionWriter, Turn
from rollout_workers.planning.progress import CriticProgress
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.planning.wording import (
    Plan,
    Reflection,
    choice_question,
    digest_question,
    exit_question,
    plan_question,
    reflection_question,
    replan_question,
)
from rollout_workers.settings import PlanningSettings

_SUMMED_UP_FROM = 20
"""Lines of earlier pages that a re-plan has summed up."""


class ModelAgent:
    """Plays one episode with ``model``; ``writer`` writes its actions down as a policy's.

    The milestones are the task's own, else the model plans them. ``state`` takes up an interrupted episode; ``folder``
    keeps it from step to step.
    """

    def __init__(
        self,
        model: LanguageModel,
        writer: DecisionWriter,
        settings: PlanningSettings,
        *,
        progress: CriticProgress | None = None,
        folder: PlanFolder | None = None,
        state: PlanState | None = None,
    ) -> None:
        self._model = model
        self._writer = writer
        self._settings = settings
        self._progress = progress
        self._folder = folder
        named = [milestone.description for milestone in writer.spec.task.milestones]
        fresh = PlanState(episode_id=writer.spec.episode_id, milestones=named, reached=[False] * len(named))
        self.state = state or fresh

    async def decide(self, turn: Turn) -> Decision:
        """Return the model's next action, with the milestones verified first and the plan renewed where it is stuck."""
        limit_s = self._writer.limits.deadline_s
        deadline = Deadline(limit_s, codes.DEADLINE, "policy.deadline_s", what="the planning agent's action")
        state = self.state.model_copy(deep=True)
        if self._progress is not None:
            state.potential = await self._progress.of(turn)
        action_text = await deadline.run(_Deciding(self._model, self._settings, state, turn, deadline).action())
        decision = self._writer.decision(turn, action_text)
        state.moved(turn, action_text)
        self.state = state
        if self._folder is not None:
            await self._folder.save(state)
        return decision


class _Deciding:
    """One decision; changes ``state``."""

    def __init__(
        self, model: LanguageModel, settings: PlanningSettings, state: PlanState, turn: Turn, deadline: Deadline
    ) -> None:
        self._model = model
        self._settings = settings
        self._state = state
        self._turn = turn
        self._deadline = deadline

    async def action(self) -> str:
        state, turn, settings = self._state, self._turn, self._settings
        state.see(turn, settings.observations)
        if not state.milestones:
            plan = await self._ask(plan_question(turn, self._budget(clear=False)))
            state.milestones, state.reached = plan.milestones, [False] * len(plan.milestones)
        clear = await self._verify() if state.moves else True
        how = state.look(turn.index, settings)
        if how and settings.mode == "replan":
            await self._replan(how)
            clear = False
        choice = await self._ask(choice_question(turn, state, self._budget(clear)))
        if settings.mode == "replan" and state.current is not None and _exits(choice.action):
            choice = await self._ask(exit_question(turn, state, self._budget(clear=False)))
        return choice.action

    async def _verify(self) -> bool:
        """Ask the three questions, in ``auto`` a second time and with thought where the answer is ambiguous.

        Returns whether the answer was clear at once. What stays unclear is not reached.
        """
        state = self._state
        answer = await self._ask(reflection_question(self._turn, state, self._budget(clear=True)))
        clear = _is_clear(answer, state)
        if not clear and self._settings.thinking == "auto":
            answer = await self._ask(reflection_question(self._turn, state, self._budget(clear=False)))
        current = state.current
        known = {number - 1 for number in answer.reached if 1 <= number <= len(state.milestones)}
        known -= {current} if answer.current != "reached" else set()
        known |= {current} if answer.current == "reached" and current is not None else set()
        state.reached = [done or index in known for index, done in enumerate(state.reached)]
        return clear

    async def _replan(self, how: Stuck) -> None:
        """Keep what has come true, and the pages seen, and put other milestones in the place of the rest."""
        state = self._state
        if len(state.summaries) >= _SUMMED_UP_FROM:
            state.summaries = [(await self._ask(digest_question(self._turn, state))).summary]
        plan: Plan = await self._ask(replan_question(self._turn, state, how, self._budget(clear=False)))
        kept = [text for text, done in zip(state.milestones, state.reached, strict=True) if done]
        state.milestones = [*kept, *plan.milestones]
        state.reached = [True] * len(kept) + [False] * len(plan.milestones)
        state.replans += 1

    def _budget(self, clear: bool) -> int:
        """Return the thinking budget in tokens; ``auto`` thinks where the milestones are not clear."""
        return 0 if clear and self._settings.thinking == "auto" else self._settings.thinking_tokens

    async def _ask(self, question: LlmQuestion[A]) -> A:
        answer = await self._model.ask(question, self._deadline)
        usage = self._state.usage
        usage.questions += 1
        usage.thought += bool(question.thinking_tokens)
        usage.input_tokens += answer.input_tokens
        usage.output_tokens += answer.output_tokens
        usage.cost_usd += answer.cost_usd
        return answer.value


def _exits(action_text: str) -> bool:
    try:
        return parse(action_text).kind == "exit"
    except GrammarError:
        return False


def _is_clear(answer: Reflection, state: PlanState) -> bool:
    """Whether an answer says something of the current milestone, and nothing against itself or the list."""
    numbers = {*answer.reached, *answer.following}
    listed = all(1 <= number <= len(state.milestones) for number in numbers)
    known = {i for i, done in enumerate(state.reached, 1) if done} <= {*answer.reached}
    current = None if state.current is None else state.current + 1
    agrees = current is None or (answer.current == "reached") == (current in answer.reached)
    return listed and known and agrees and answer.current != "unclear" and not {*answer.reached} & {*answer.following}
