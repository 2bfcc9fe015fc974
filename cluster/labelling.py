"""Asks judges about recorded episodes and makes their labels durable: behind the stage ``label`` and ``waymark judge``.

Owns ``Labeller``. Invariants: an episode that has its label is not asked about again; a label is on the disk before
anything names it, also where the asking was cut short; what goes wrong is a typed failure of kind judge that spends the
judges' failure budget, never a label. Imports neither torch nor Ray.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace

from cluster.errors import RunStopped
from cluster.recipe.recipe import Recipe
from judges.interface import EpisodeJudge
from judges.kinds import Judges
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Task
from records.failures import EpisodeFailed, Failure, FailureKind
from records.labels import Label, LabelSubject, misfit
from records.supervision import end_tasks, supervised
from replay.buffer import ReplayBuffer
from replay.labels import LabelStore, StoredLabel
from rollout_workers.budget import FailureBudget, FailureBudgetExceeded

_LABEL_S = 120.0
"""Fixed: a label of a long episode takes a model a minute; past it the attempt has failed."""
_AT_ONCE = 32
"""Fixed: as many labels go to the disk together; so many questions a killed run may ask twice."""

OnProgress = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: which judge labels which episode."""

    episode_id: str
    task: Task = field(compare=False)
    subject: LabelSubject
    judge: str


class Labeller:
    """Asks ``judges`` about episodes of ``buffer``, as ``recipe`` says how; the labels go to ``labels``.

    A judge that is an async context manager is entered before the first question and left after the last.
    """

    def __init__(self, recipe: Recipe, judges: Judges, buffer: ReplayBuffer, labels: LabelStore) -> None:
        self._settings = recipe.replay
        self._rollout = recipe.rollout
        self._judges = judges
        self._buffer = buffer
        self._labels = labels

    def missing(
        self,
        tasks: Mapping[str, Task],
        judges: Mapping[LabelSubject, str],
        milestone_tasks: Mapping[str, Task] | None = None,
    ) -> list[Asked]:
        """Return what is still to be asked of the episodes ``tasks`` (by id), in order.

        Judges of milestones see the tasks of ``milestone_tasks`` instead, where it is given.
        """
        return [
            Asked(
                episode_id,
                milestone_tasks[episode_id] if milestone_tasks and subject is LabelSubject.MILESTONES else task,
                subject,
                judge,
            )
            for episode_id, task in sorted(tasks.items())
            for subject, judge in judges.items()
            if self._labels.find(self._buffer.entry(episode_id), judge, subject) is None
        ]

    def label(self, questions: Sequence[Asked], stem: str, on_progress: OnProgress) -> dict[Asked, Failure]:
        """Ask everything and return what has no label and why; files of labels are called ``stem``.

        ``on_progress`` is called with how many are done, out of how many, and how many have failed.

        Raises:
            RunStopped: more failures than the settings allow; labels that were given are on the disk.
            ValueError: there is no such judge, or it labels something else.
        """
        return asyncio.run(self._all(questions, stem, on_progress))

    async def _all(self, questions: Sequence[Asked], stem: str, on_progress: OnProgress) -> dict[Asked, Failure]:
        asking = _Asking(questions, stem, on_progress, self._labels, self._budget(len(questions)))
        made = {judge: self._judges.of_episodes(judge) for judge in dict.fromkeys(asked.judge for asked in questions)}
        wrong = [asked for asked in questions if made[asked.judge].subject is not asked.subject]
        if wrong:
            raise ValueError(
                f"judge {wrong[0].judge!r}: expected one of {wrong[0].subject}, found one of "
                f"{made[wrong[0].judge].subject}; see the settings under replay"
            )
        left = iter(questions)
        async with AsyncExitStack() as stack:
            for judge in made.values():
                if isinstance(judge, AbstractAsyncContextManager):
                    await stack.enter_async_context(judge)
            workers = [
                asyncio.create_task(self._work(left, made, asking)) for _ in range(self._settings.labels_at_once)
            ]
            try:
                await asyncio.gather(*workers)
            except FailureBudgetExceeded as error:
                raise RunStopped(f"{error}; labels are kept, start the same command again to go on") from error
            finally:
                await end_tasks(*workers)
                asking.write()
        return asking.failures

    async def _work(self, left: Iterator[Asked], made: Mapping[str, EpisodeJudge], asking: _Asking) -> None:
        """Ask one question after the other, each at most ``rollout.attempts`` times."""
        for asked in left:
            for attempt in range(self._rollout.attempts):
                if attempt:
                    await asyncio.sleep(self._rollout.retry_delay_s * 2 ** (attempt - 1))
                said = await self._attempt(asked, made[asked.judge])
                if asking.note(asked, said, final=attempt == self._rollout.attempts - 1):
                    break

    async def _attempt(self, asked: Asked, judge: EpisodeJudge) -> StoredLabel | Failure:
        """Ask once; return the label, or what went wrong."""
        entry, episode = self._buffer.entry(asked.episode_id), self._buffer.trajectory(asked.episode_id)
        name = f"judge {asked.judge}"
        deadline = Deadline(_LABEL_S, codes.JUDGE_DEADLINE, what=name)
        said = await supervised(deadline.run(judge.label(episode, asked.task, deadline)))
        if isinstance(said, EpisodeFailed):
            return Failure(replace(said.failure.code, kind=FailureKind.JUDGE), said.failure.detail)
        if isinstance(said, BaseException):
            return Failure(codes.JUDGE_ERROR, f"{name}: {type(said).__name__}: {said}")
        wrong = misfit(said, episode, asked.subject) if isinstance(said, Label) else f"expected a label, found {said!r}"
        if wrong:
            return Failure(codes.JUDGE_NONSENSE, f"{name}: {wrong}")
        return StoredLabel(replace(said, judge=asked.judge), entry.shard.name)

    def _budget(self, questions: int) -> FailureBudget:
        settings = self._rollout
        shares = {FailureKind.JUDGE: settings.judge_failure_share}
        return FailureBudget.for_run(questions, shares, floor=settings.failure_floor, window=settings.failure_window)


class _Asking:
    """What came of the questions so far."""

    def __init__(
        self, questions: Sequence[Asked], stem: str, on_progress: OnProgress, labels: LabelStore, budget: FailureBudget
    ) -> None:
        self._total = len(questions)
        self._stem = stem
        self._on_progress = on_progress
        self._labels = labels
        self._budget = budget
        self._unwritten: list[StoredLabel] = []
        self._done = 0
        self.failures: dict[Asked, Failure] = {}

    def note(self, asked: Asked, said: StoredLabel | Failure, *, final: bool) -> bool:
        """Take one attempt's answer; return whether the question is over. Raise ``FailureBudgetExceeded``."""
        if isinstance(said, StoredLabel):
            self._budget.succeed()
            self._unwritten.append(said)
            if len(self._unwritten) >= _AT_ONCE:
                self.write()
        else:
            self._budget.record(said)
            self._budget.check()
            if not final:
                return False
            self.failures[asked] = said
        self._done += 1
        self._on_progress(self._done, self._total, len(self.failures))
        return True

    def write(self) -> None:
        """Make durable what is not yet."""
        if self._unwritten:
            self._labels.write(self._stem, self._unwritten)
            self._unwritten = []


def count_failures(failures: Mapping[Asked, Failure], subject: LabelSubject) -> dict[str, int]:
    """Return the failures on one subject by ``kind/code``."""
    return dict(Counter(str(found.code) for asked, found in failures.items() if asked.subject is subject))
