"""An environment on the test bench: every point of its contract, and how fast it is.

Owns ``check_environment_kind``, whose findings ``waymark env check`` prints. Invariants: environments are made as a
worker makes them, by their host; everything that was started is closed; a measurement stops after the seconds
asked for, and what fails meanwhile is counted, not hidden.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from environments.contract import POINT_DEADLINE_S, Point, contract_points
from environments.environment import Environment
from environments.hosted import Hosted, hosted
from records.environment import Action
from records.episodes import Task
from records.failures import EpisodeFailed

_MOST_TASKS = 8
_STEPS_AN_EPISODE = 8


@dataclass(slots=True)
class Throughput:
    """What ``slots`` environments of one host did in ``seconds``; times of single resets and steps, in seconds."""

    slots: int
    seconds: float = 0.0
    resets_s: list[float] = field(default_factory=list)
    steps_s: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def steps_per_s(self) -> float:
        """Steps of all slots together, by the clock."""
        return len(self.steps_s) / self.seconds if self.seconds else 0.0

    @property
    def reset_ms(self) -> float:
        """Median time of a reset, milliseconds."""
        return 1000 * statistics.median(self.resets_s) if self.resets_s else 0.0

    @property
    def step_ms(self) -> float:
        """Median time of a step, milliseconds."""
        return 1000 * statistics.median(self.steps_s) if self.steps_s else 0.0


@dataclass(frozen=True, slots=True)
class EnvironmentFindings:
    """What was found: the points of the contract on the last of ``tasks``, and a measurement for each number of slots.

    Tasks before the last kept all points. An environment that breaks its contract is not measured.
    """

    tasks: tuple[Task, ...]
    points: tuple[Point, ...]
    measured: tuple[Throughput, ...]

    @property
    def broken(self) -> int:
        """Number of points that are not kept."""
        return sum(bool(point.broken) for point in self.points)


def check_environment_kind(
    name: str,
    *,
    tasks: int = 2,
    seconds: float,
    slots: Sequence[int] = (1, 4),
    options: Mapping[str, object] | None = None,
    deadline_s: float = POINT_DEADLINE_S,
) -> EnvironmentFindings:
    """Examine the environment called ``name`` (see ``KINDS``); measure it ``seconds`` for each of ``slots``.

    It is examined on ``tasks`` training tasks, of different templates where there are such, until one breaks a point.
    ``options`` become its settings; each point of the contract may take ``deadline_s`` seconds.

    Raises:
        ValueError: when there is no such environment, its options are wrong, or it brings no training task.
        EpisodeFailed: when its host does not start.
    """
    return asyncio.run(_check(name, options, tasks, seconds, slots, deadline_s))


async def _check(
    name: str, options: Mapping[str, object] | None, most: int, seconds: float, slots: Sequence[int], deadline_s: float
) -> EnvironmentFindings:
    async with hosted(name, options) as running:
        tasks = running.tasks.task_set(0, "train", _MOST_TASKS, at_least=1)
        examined: list[Task] = []
        points: list[Point] = []
        for task in _unlike(tasks)[:most]:
            one, other = await running.environment(), await running.environment()
            points = await contract_points(one, other, task, deadline_s=deadline_s)
            examined.append(task)
            if any(point.broken for point in points):
                break
        kept = not any(point.broken for point in points)
        measured = [await _measure(running, tasks, seconds, count) for count in slots if kept]
    return EnvironmentFindings(tuple(examined), tuple(points), tuple(measured))


def _unlike(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks, the first of each template before the others."""
    firsts = {task.template: task for task in reversed(tasks)}
    return sorted(tasks, key=lambda task: firsts[task.template] is not task)


async def _measure(running: Hosted, tasks: list[Task], seconds: float, slots: int) -> Throughput:
    """Let ``slots`` environments click about at the same time."""
    found = Throughput(slots)
    environments = [await running.environment() for _ in range(slots)]
    started = time.perf_counter()
    try:
        await asyncio.gather(
            *(_wander(env, tasks, found, random.Random(i), started + seconds) for i, env in enumerate(environments))
        )
    finally:
        found.seconds = time.perf_counter() - started
        for env in environments:
            await env.close()
    return found


async def _wander(env: Environment, tasks: list[Task], found: Throughput, rng: random.Random, ends: float) -> None:
    """Play episodes of a few random clicks until time is up."""
    number = 0
    while time.perf_counter() < ends:
        number += 1
        try:
            started = time.perf_counter()
            seen = await env.reset(rng.choice(tasks), seed=number, episode_id=f"throughput-{number}")
            found.resets_s.append(time.perf_counter() - started)
            for _ in range(_STEPS_AN_EPISODE):
                if not seen.elements or time.perf_counter() > ends:
                    break
                started = time.perf_counter()
                seen = await env.step(Action("click", element_id=rng.randrange(len(seen.elements))))
                found.steps_s.append(time.perf_counter() - started)
        except EpisodeFailed as error:
            found.failures[f"{error.failure.code}"] += 1
            # An environment that only fails must not turn this into a busy loop.
            await asyncio.sleep(0.1)
