"""A task's first page, opened without playing the task; and the first states of tasks that nobody played.

Owns the one way to a first page: an environment of its own on a host of the driver, tried again as an episode would be.
Invariants: a first state's prompt is the one that an episode of the task would begin with; what was opened is on the
disk before the next ones are, so that a killed run opens only the rest; a task whose page does not open is named
with its reason, and when too many do not, the run stops instead of going on without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.run_folder.stage_results import FirstStatesOpened
from environments.hosted import Hosted
from judges.interface import MilestoneJudge
from judges.of_milestones.writer import FirstPage
from policy.prompts import PromptFormat, PromptTooLong
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Source, Task
from records.failures import EpisodeFailed, Failure
from records.supervision import some_at_once
from replay.first_states import FirstState, first_states_in, write_first_states
from rollout_workers.agent import DecisionWriter, Turn
from rollout_workers.budget import FailureBudget
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec

_A_FILE = 64
"""Fixed: first states in one file; a killed run opens at most this many again."""


async def open_first_page(
    task: Task, hosted: Hosted, rollout: RolloutSettings, *, seed: int = 0, picture: bool = False
) -> FirstPage:
    """Return the task's first page, with a ``picture`` where one is asked for and the environment can take one.

    Raises:
        EpisodeFailed: it did not open in ``rollout.attempts`` attempts.
    """
    for attempt in range(1, rollout.attempts + 1):
        try:
            return await _opened(task, hosted, rollout, seed, picture)
        except EpisodeFailed:
            if attempt == rollout.attempts:
                raise
    raise AssertionError("rollout.attempts is at least 1")


async def _opened(task: Task, hosted: Hosted, rollout: RolloutSettings, seed: int, picture: bool) -> FirstPage:
    env = await hosted.environment()
    try:
        limit = Deadline(rollout.reset_deadline_s, setting="rollout.reset_deadline_s", what="the reset")
        reset = env.reset(task, seed=seed, episode_id=f"first-page-{task.task_id}", deadline=limit)
        seen = await limit.run(reset)
        if not picture:
            return FirstPage(seen)
        limit = Deadline(rollout.step_deadline_s, setting="rollout.step_deadline_s", what="the screenshot")
        return FirstPage(seen, await limit.run(env.screenshot(limit)))
    finally:
        await env.close()


@dataclass(frozen=True, slots=True)
class FirstPrompts:
    """Opens tasks and writes the prompts that their episodes would begin with, on ``seed``, the rollouts' own.

    ``milestones`` judges which milestones the first page reaches, where prompts tell of them.
    """

    prompt_format: PromptFormat
    tokenizer: TextTokenizer
    limits: PolicySettings
    milestones: MilestoneJudge
    rollout: RolloutSettings
    seed: int

    async def of(self, task: Task, hosted: Hosted) -> FirstState:
        """Return a task's first state; raise ``EpisodeFailed`` where its page does not open or has no room."""
        page = (await open_first_page(task, hosted, self.rollout, seed=self.seed)).observation
        reached: tuple[bool, ...] = ()
        if self.limits.shows_milestones:
            setting = "rollout.judge_deadline_s"
            limit = Deadline(self.rollout.judge_deadline_s, codes.JUDGE_DEADLINE, setting, what="the milestones")
            reached = await limit.run(self.milestones.reached(task.milestones, (), page, ()))
        turn = Turn(0, page.intent or task.intent, page, (), page.feedback, reached)
        spec = EpisodeSpec(f"first-page-{task.task_id}", task, Source.ROLLOUT, 0, self.seed)
        try:
            prompt = DecisionWriter(self.prompt_format, self.tokenizer, spec, self.limits).prompt(turn)
        except PromptTooLong as error:
            raise EpisodeFailed(Failure(codes.PROMPT_TOO_LONG, str(error))) from error
        return FirstState(task.task_id, prompt.ids)


async def open_first_states(
    tasks: Sequence[Task],
    hosted: Hosted,
    prompts: FirstPrompts,
    folder: Path,
    on_progress: Callable[[int, int], None] = lambda opened, absent: None,
) -> dict[str, str]:
    """Write the first states of ``tasks`` to files in ``folder``; return of those that have none why.

    ``rollout.contexts_per_worker`` pages are opened at a time. ``on_progress`` is called with how many
    are written and absent so far.

    Raises:
        EpisodeFailed: with a failure that ends the run.
        FailureBudgetExceeded: more of one kind failed than rollouts may.
    """
    budget = FailureBudget.of_rollouts(len(tasks), prompts.rollout)
    absent: dict[str, str] = {}
    for begin in range(0, len(tasks), _A_FILE):
        some = tasks[begin : begin + _A_FILE]
        opened = await some_at_once(some, lambda task: prompts.of(task, hosted), prompts.rollout.contexts_per_worker)
        states = [one for one in opened if isinstance(one, FirstState)]
        if states:
            await asyncio.to_thread(write_first_states, folder, states)
        for task, one in zip(some, opened, strict=True):
            if isinstance(one, EpisodeFailed):
                absent[task.task_id] = str(one)
                budget.record(one.failure)
            else:
                budget.succeed()
        on_progress(begin + len(some) - len(absent), len(absent))
        budget.check()
    return absent


def tasks_to_open(tasks: Sequence[Task], folder: Path) -> list[Task]:
    """Return those of ``tasks`` of which no file in ``folder`` holds the first state."""
    held = {state.task_id for states in first_states_in(folder).values() for state in states}
    return [task for task in tasks if task.task_id not in held]


def first_states_stage(absent: dict[str, str], folder: Path) -> FirstStatesOpened:
    """Return the record of the first states in ``folder``, and of the tasks that have none."""
    found = first_states_in(folder)
    return FirstStatesOpened(tuple(found), len({s.task_id for states in found.values() for s in states}), absent)
