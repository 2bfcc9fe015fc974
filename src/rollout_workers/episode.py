"""The episode loop: observe, decide, parse, act, until an exit, a standstill or the last step; then the verdict.

Owns the one loop that policies and demonstrators share. Invariants: every act
has a deadline, which is handed down to all that it waits for; what
goes wrong becomes a typed failure and the episode then has no outcome; text that is not an action
costs a step and is told to the agent on its next turn; milestones, once reached, stay reached; an
episode that ends without an exit has no answer. Must not import torch or ray.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from environments.environment import Environment
from judges.declarative import DeclarativeChecks
from judges.interface import MilestoneJudge, OpenVerdict
from judges.milestones import Acted
from policy.prompts import PastAction, PromptTooLong
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Element, Observation, Verdict
from records.episodes import FinalState, Source, Step, Task, Termination, Trajectory
from records.failures import EpisodeFailed, Failure, FailureKind
from rollout_workers.agent import Agent, Decision, DecisionWriter, Turn
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from rollout_workers.standstill import Standstill
from telemetry import meter, table

SaveScreenshot = Callable[[str, int, bytes], str]
"""Takes episode id, step index and a PNG, stores it and returns the name to record; runs in a thread."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A verdict that is still open, and what is left of the time for it."""

    verdict: OpenVerdict
    limit: Deadline


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that was played, and the seconds that no step accounts for.

    Where it is ``undecided``, the trajectory has a failure in the verdict's place until ``settle``.
    """

    trajectory: Trajectory
    reset_s: float
    judge_s: float
    undecided: Undecided | None = None

    @property
    def failure(self) -> Failure | None:
        """Why there is no verdict and will be none."""
        return None if self.undecided else self.trajectory.failure


async def play(
    env: Environment,
    agent: Agent,
    spec: EpisodeSpec,
    settings: RolloutSettings,
    *,
    milestones: MilestoneJudge | None = None,
    writer: DecisionWriter | None = None,
    worker: str = "",
    environment: str = "",
    save_screenshot: SaveScreenshot | None = None,
) -> Played:
    """Play one episode to its verdict; ``milestones`` says which of them are reached (None: their own checks do).

    ``writer`` writes the prompt of the state after the last action, where ``settings.final_state`` asks for it; nothing
    learns from evaluations, which go without. ``worker`` and ``environment`` name those who play, in the record and in
    metrics.

    Returns a trajectory with an outcome, or, where ``EpisodeFailed`` was raised below or a deadline
    passed, one with the failure and the steps so far. Errors that nobody typed propagate.
    """
    wanted = settings.final_state and spec.source is not Source.EVALUATION
    episode = _Episode(
        env,
        agent,
        spec,
        settings,
        writer if wanted else None,
        save_screenshot,
        milestones or DeclarativeChecks(),
        environment,
    )
    started = time.perf_counter()
    failure: Failure | None = None
    limit = Deadline(
        settings.episode_deadline_s, codes.EPISODE_DEADLINE, "rollout.episode_deadline_s", what="the episode"
    )
    try:
        await limit.run(episode.run())
    except EpisodeFailed as error:
        failure = error.failure
    undecided = None if failure else episode.undecided
    if undecided:
        failure = Failure(codes.NO_JUDGE, "its verdict is still open")
    played = episode.trajectory(failure, worker, time.perf_counter() - started)
    if undecided:
        played = replace(played, termination=episode.termination)
    return Played(played, episode.reset_s, episode.judge_s, undecided)


async def settle(played: Played, task: Task) -> Played:
    """Return an episode whose verdict is not open any more: the questions that remained are asked now.

    They are answered within what is left of ``rollout.judge_deadline_s``, or the trajectory has a failure.
    """
    if played.undecided is None:
        return played
    started, episode, limit = time.perf_counter(), played.trajectory, played.undecided.limit
    try:
        verdict = await limit.run(played.undecided.verdict.settle(episode, task, limit))
        decided = replace(episode, outcome=verdict.outcome, failure=None, evidence=_lines(verdict))
    except EpisodeFailed as error:
        decided = replace(episode, failure=error.failure, termination=None)
    waited_s = time.perf_counter() - started
    return Played(replace(decided, seconds=episode.seconds + waited_s), played.reset_s, played.judge_s + waited_s)


@dataclass(slots=True)
class _Episode:
    env: Environment
    agent: Agent
    spec: EpisodeSpec
    settings: RolloutSettings
    writer: DecisionWriter | None
    save_screenshot: SaveScreenshot | None
    milestone_judge: MilestoneJudge
    environment: str
    steps: list[Step] = field(default_factory=list)
    history: list[PastAction] = field(default_factory=list)
    acted: list[Acted] = field(default_factory=list)
    milestones: tuple[bool, ...] = ()
    final_state: FinalState | None = None
    termination: Termination | None = None
    answer: str | None = None
    outcome: float | None = None
    evidence: str = ""
    undecided: Undecided | None = None
    reset_s: float = 0.0
    judge_s: float = 0.0
    intent: str = ""

    async def run(self) -> None:
        """Play all steps, then ask for the verdict."""
        settings, spec = self.settings, self.spec
        started = time.perf_counter()
        limit = Deadline(settings.reset_deadline_s, setting="rollout.reset_deadline_s", what="the reset")
        observation = await limit.run(
            self.env.reset(spec.task, seed=spec.seed, episode_id=spec.episode_id, deadline=limit, grant=spec.grant),
        )
        self.reset_s = time.perf_counter() - started
        meter.record(table.RESET_SECONDS, self.reset_s, environment=self.environment)
        self.intent = observation.intent or spec.task.intent
        await self._check_milestones(observation)
        feedback = observation.feedback
        goes_on = spec.source is Source.DEMONSTRATION
        standstill = Standstill(0, 0) if goes_on else Standstill(settings.max_repeats, settings.max_unread)
        for index in range(spec.task.max_steps or settings.max_steps):
            turn = Turn(index, self.intent, observation, tuple(self.history), feedback, self.milestones)
            screenshot = await self._screenshot(index)
            asked = time.perf_counter()
            try:
                decision = await self.agent.decide(turn)
            except PromptTooLong as error:
                if index == 0:
                    raise EpisodeFailed(Failure(codes.PROMPT_TOO_LONG, str(error))) from error
                break  # the agent's own actions used up its context: it ends here and is judged
            except EpisodeFailed as error:
                if error.failure.kind is FailureKind.TASK:
                    await self._require_world()
                raise
            policy_s = time.perf_counter() - asked
            action, parse_error = decision.read()
            element = _target(action, observation)
            acted = time.perf_counter()
            following = await self._act(action, observation)
            refused = following is not observation and following.refused
            self.steps.append(
                _step(
                    turn,
                    decision,
                    self.milestones,
                    parse_error,
                    element,
                    screenshot,
                    refused=refused,
                    browser_s=time.perf_counter() - acted,
                    policy_s=policy_s,
                )
            )
            self._measure(self.steps[-1], acted=following is not observation)
            feedback = parse_error or (following.feedback if following is not observation else None)
            self.history.append(PastAction(decision.action_ids.tolist(), feedback))
            if action is not None and not refused and (element is not None or action.element_id is None):
                self.acted.append(Acted.of(action, element))
            await self._check_milestones(following)
            observation = following
            if action is not None and action.kind == "exit":
                self.termination, self.answer = Termination.EXIT, action.argument or ""
                break
            if standstill.hear(action, element):
                self.termination = Termination.STANDSTILL
                break
        self.termination = self.termination or Termination.MAX_STEPS
        if self.writer is not None:
            after = Turn(len(self.steps), self.intent, observation, tuple(self.history), feedback, self.milestones)
            self.final_state = _final_state(after, self.writer)
        await self._judge()

    def _measure(self, step: Step, *, acted: bool) -> None:
        played = {"environment": self.environment, "source": self.spec.source}
        meter.record(table.STEPS, **played, action="unread" if step.parse_error else "read")
        meter.record(table.PROMPT_TOKENS, len(step.prompt_ids), **played)
        meter.record(table.ACTION_TOKENS, len(step.action_ids), **played)
        meter.record(table.POLICY_SECONDS, step.policy_s, **played)
        if acted:
            meter.record(table.STEP_SECONDS, step.browser_s, environment=self.environment)

    async def _act(self, action: Action | None, observation: Observation) -> Observation:
        """Return what is there after the action; what is not an action, and an exit, leave the page alone."""
        if action is None or action.kind == "exit":
            return observation
        limit = self._step_deadline("the step")
        return await limit.run(self.env.step(action, limit))

    def _step_deadline(self, what: str) -> Deadline:
        return Deadline(self.settings.step_deadline_s, setting="rollout.step_deadline_s", what=what)

    async def _judge(self) -> None:
        started = time.perf_counter()
        limit = self._judge_deadline("the verdict")
        verdict = await limit.run(self.env.evaluate(self.answer, limit))
        self.judge_s = time.perf_counter() - started
        if isinstance(verdict, Verdict):
            self.outcome, self.evidence = verdict.outcome, _lines(verdict)
        else:
            self.undecided = Undecided(verdict, limit)

    async def _require_world(self) -> None:
        """Raise what is wrong with the environment: a demonstrator is also lost where the site behind its page is gone.

        A verdict is given on a state that is there, or not at all; this one is not used.
        """
        limit = self._judge_deadline("whether the task's state is there")
        await limit.run(self.env.evaluate(None, limit))

    async def _screenshot(self, index: int) -> str | None:
        if not self.spec.screenshots or self.save_screenshot is None:
            return None
        limit = self._step_deadline("the screenshot")
        png = await limit.run(self.env.screenshot(limit))
        return None if png is None else await asyncio.to_thread(self.save_screenshot, self.spec.episode_id, index, png)

    async def _check_milestones(self, observation: Observation) -> None:
        limit = self._judge_deadline("the milestones")
        asked = self.milestone_judge.reached(self.spec.task.milestones, self.milestones, observation, self.acted)
        self.milestones = await limit.run(asked)

    def _judge_deadline(self, what: str) -> Deadline:
        return Deadline(self.settings.judge_deadline_s, codes.JUDGE_DEADLINE, "rollout.judge_deadline_s", what=what)

    def trajectory(self, failure: Failure | None, worker: str, seconds: float) -> Trajectory:
        """Return the record of what was played."""
        task = self.spec.task
        return Trajectory(
            episode_id=self.spec.episode_id,
            task_id=task.task_id,
            template=task.template,
            site=task.site,
            split=task.split,
            intent=self.intent or task.intent,
            source=self.spec.source,
            phase=self.spec.phase,
            seed=self.spec.seed,
            group=self.spec.group,
            steps=tuple(self.steps),
            termination=None if failure else self.termination,
            answer=self.answer,
            outcome=None if failure else self.outcome,
            failure=failure,
            final_milestones=self.milestones,
            final_state=self.final_state,
            evidence=self.evidence,
            horizon=task.horizon,
            policy_version=self.steps[0].policy_version if self.steps else 0,
            worker=worker,
            seconds=seconds,
        )


def _step(
    turn: Turn,
    decision: Decision,
    milestones: tuple[bool, ...],
    parse_error: str | None,
    element: Element | None,
    screenshot: str | None,
    *,
    refused: bool,
    browser_s: float,
    policy_s: float,
) -> Step:
    return Step(
        index=turn.index,
        url=turn.observation.url,
        observation=turn.observation.text,
        prompt_ids=decision.prompt_ids,
        action_ids=decision.action_ids,
        logprobs=decision.logprobs,
        policy_version=decision.policy_version,
        temperature=decision.temperature,
        action_text=decision.action_text,
        milestones=milestones,
        parse_error=parse_error,
        feedback=turn.feedback,
        element=f"{element.role} {element.name}" if element else None,
        truncated_tokens=decision.truncated_tokens,
        browser_s=browser_s,
        policy_s=policy_s,
        screenshot=screenshot,
        refused=refused,
    )


def _final_state(turn: Turn, writer: DecisionWriter) -> FinalState | None:
    """Return the state in which a next action would be decided; None where its prompt has no room."""
    try:
        prompt = writer.prompt(turn)
    except PromptTooLong:
        return None
    page = turn.observation
    return FinalState(page.url, page.text, prompt.ids, turn.feedback, prompt.truncated_tokens)


def _lines(verdict: Verdict) -> str:
    return json.dumps(list(verdict.evidence), ensure_ascii=False)


def _target(action: Action | None, observation: Observation) -> Element | None:
    if action is None or action.element_id is None:
        return None
    return next((e for e in observation.elements if e.element_id == action.element_id), None)
