"""Judges of recorded episodes for tests, named as ``tests.cluster.label_judges:NAME``."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from judges.kinds import JudgeKind
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.failures import EpisodeFailed, Failure
from records.labels import Label, LabelSubject

HERE = __name__
asked: Counter[str] = Counter()
"""How often each episode was asked about; a test clears it."""


@dataclass(frozen=True)
class NoSettings:
    """Nothing to tell."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


def says_of(episode_id: str) -> float:
    """The probability that the judges here give an episode."""
    return zlib.crc32(f"label of {episode_id}".encode()) % 100 / 100


class Coin:
    """Labels outcomes by the episode's id; ``trouble`` may raise or wait before."""

    subject = LabelSubject.OUTCOME

    def __init__(self, trouble: Callable[[str], None] = lambda episode_id: None) -> None:
        self.trouble = trouble

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        assert task.task_id == episode.task_id
        asked[episode.episode_id] += 1
        self.trouble(episode.episode_id)
        await asyncio.sleep(0)
        value = np.array([says_of(episode.episode_id)], dtype=np.float32)
        return Label(episode.episode_id, self.subject, "coin", "none", "crc/1", value, evidence="its id", cost_usd=0.25)


def _fails_for_some(episode_id: str) -> None:
    if says_of(episode_id) < 0.5:
        raise EpisodeFailed(Failure(codes.JUDGE_NONSENSE, "prose"))


def _breaks(episode_id: str) -> None:
    raise TypeError("a mistake in the judge")


class Steps(Coin):
    """Labels steps: every one is half right."""

    subject = LabelSubject.STEPS

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        return Label(episode.episode_id, self.subject, "half", "none", "half/1", np.full(len(episode.steps), 0.5))


class Silent(Coin):
    """Never answers."""

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class Elsewhere(Coin):
    """Labels another episode than it is asked about."""

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        return Label("another", self.subject, "coin", "none", "crc/1", np.ones(1))


class Told(Coin):
    """Says 1 where an episode's task has milestones."""

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        value = np.array([bool(task.milestones)], dtype=np.float32)
        return Label(episode.episode_id, self.subject, "told", "none", "told/1", value)


COIN = JudgeKind(settings=NoSettings, make=lambda settings, judges: Coin())
PICKY = JudgeKind(settings=NoSettings, make=lambda settings, judges: Coin(_fails_for_some))
BROKEN = JudgeKind(settings=NoSettings, make=lambda settings, judges: Coin(_breaks))
HALF = JudgeKind(settings=NoSettings, make=lambda settings, judges: Steps())
SILENT = JudgeKind(settings=NoSettings, make=lambda settings, judges: Silent())
ELSEWHERE = JudgeKind(settings=NoSettings, make=lambda settings, judges: Elsewhere())
TOLD = JudgeKind(settings=NoSettings, make=lambda settings, judges: Told())
