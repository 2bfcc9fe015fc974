"""What the failures of a run have in common: modes by group, milestones by step, success by horizon, pass@k.

Owns the records of ``analysis.json`` and their computation. Invariants: an episode without a verdict is counted apart
and enters no rate; demonstrations are held against, never analysed; every rate has its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from analysis.failure_modes import Diagnosis, Mode, diagnose
from analysis.interactions import LimitResult, by_limit
from analysis.metrics import Rate, mean_pass_at_k, success_table
from analysis.references import References
from analysis.results import GroupResult
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from records.episodes import Source

K = TypeVar("K")
PASSES = (1, 2, 4, 8, 16, 32)
"""The k of pass@k."""


@dataclass(frozen=True, slots=True)
class ModeShares:
    """The failures of one group of episodes: each mode's share of them, and of all its judged episodes the stuck."""

    judged: int
    failures: int
    shares: dict[str, GroupResult]
    stuck_rate: GroupResult


@dataclass(frozen=True, slots=True)
class MilestoneMap:
    """The share of a group's episodes that had reached each milestone before each step: ``share[milestone][step]``.

    An episode that has ended counts as it ended. Episodes are those with as many milestones as most of them.
    """

    episodes: int
    share: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """One failure with its diagnosis; ``action`` is that of the key step.

    ``explanation`` is what the language model ``explained_by`` says of it, empty where none was asked, and
    ``explained_step`` the step (from 0) that it calls the first wrong one.
    """

    episode_id: str
    group: str
    site: str
    template: str
    steps: int
    mode: str
    rule: str
    key_step: int | None
    reason: str
    action: str
    explanation: str = ""
    explained_step: int | None = None
    explained_by: str = ""


@dataclass(frozen=True, slots=True)
class FailureReport:
    """All that is known of a run's failures. Groups are phases (``evaluation 3``), policies (``version 3``), sites.

    ``lost`` counts episodes without a verdict by ``kind/code``; ``pass_at`` is by group and k. ``by_limit`` is of
    evaluations, by split (``evaluation 3, test``) and by the interactions allowed.
    """

    name: str
    episodes: int
    lost: dict[str, int]
    everything: ModeShares
    by_phase: dict[str, ModeShares]
    by_policy: dict[str, ModeShares]
    by_site: dict[str, ModeShares]
    by_horizon: dict[str, dict[str, GroupResult]]
    milestones: dict[str, MilestoneMap]
    pass_at: dict[str, dict[str, float]]
    by_limit: dict[str, dict[str, LimitResult]]
    failed: tuple[FailedEpisode, ...]


def failure_report(name: str, routes: Iterable[Route], settings: AnalysisSettings) -> FailureReport:
    """Return what the failures among ``routes`` have in common; their successes are what they are held against."""
    everything = list(routes)
    references = References(everything)
    played = [route for route in everything if not route.demonstrated]
    judged = [route for route in played if route.outcome is not None]
    failed = [route for route in judged if route.failed and route.moves]
    found = {route.episode_id: diagnose(route, references, settings) for route in failed}
    phases = _groups(judged, phase_group)
    return FailureReport(
        name=name,
        episodes=len(played),
        lost=dict(sorted(Counter(route.lost for route in played if route.lost).items())),
        everything=_shares(judged, found),
        by_phase={group: _shares(members, found) for group, members in phases.items()},
        by_policy={
            f"version {version}": _shares(members, found)
            for version, members in sorted(_groups(judged, lambda route: route.policy_version).items())
        },
        by_site={
            site: _shares(members, found) for site, members in sorted(_groups(judged, lambda route: route.site).items())
        },
        by_horizon={group: _by_horizon(members) for group, members in phases.items()},
        milestones={group: drawn for group, members in phases.items() if (drawn := milestone_map(members))},
        pass_at={group: passes for group, members in phases.items() if (passes := _pass_at(members))},
        by_limit={
            group: by_limit(members)
            for group, members in _groups([r for r in judged if r.source is Source.EVALUATION], split_group).items()
        },
        failed=tuple(_failed(route, found[route.episode_id]) for route in failed),
    )


def newest_failures(report: FailureReport) -> list[FailedEpisode]:
    """Return the failures of a report, those of its last group first."""
    groups = list(report.by_phase)
    return sorted(report.failed, key=lambda failed: -groups.index(failed.group))


def phase_group(route: Route) -> str:
    """Return the name of the episodes that a route belongs with: what it was played for, and in which phase."""
    return f"{route.source.value} {route.phase}"


def split_group(route: Route) -> str:
    """Return the name of the evaluation and the split that a route belongs with."""
    return f"{phase_group(route)}, {route.split}"


def milestone_map(routes: Sequence[Route]) -> MilestoneMap | None:
    """Return how far these episodes were at each step; None where none of them has milestones."""
    counts = Counter(len(route.milestones[-1]) for route in routes if route.milestones[-1])
    if not counts:
        return None
    width = counts.most_common(1)[0][0]
    chosen = [route for route in routes if len(route.milestones[-1]) == width]
    steps = max(len(route.milestones) for route in chosen)
    total = np.zeros((width, steps))
    for route in chosen:
        vectors = np.array([vector or (False,) * width for vector in route.milestones], dtype=float)
        total += np.vstack([vectors, np.repeat(vectors[-1:], steps - len(vectors), axis=0)]).T
    return MilestoneMap(len(chosen), tuple(tuple(map(float, row)) for row in total / len(chosen)))


def _groups(routes: Iterable[Route], key: Callable[[Route], K]) -> dict[K, list[Route]]:
    groups: dict[K, list[Route]] = {}
    for route in sorted(routes, key=lambda route: (route.source.value, route.phase)):
        groups.setdefault(key(route), []).append(route)
    return groups


def _shares(routes: Sequence[Route], found: dict[str, Diagnosis]) -> ModeShares:
    modes = [(route.task_id, found[route.episode_id].mode) for route in routes if route.episode_id in found]
    stuck = [(r.task_id, r.episode_id in found and found[r.episode_id].mode is Mode.STUCK) for r in routes]
    shares = {
        mode.value: GroupResult.of(Rate.of_tasks((task, other is mode) for task, other in modes)) for mode in Mode
    }
    return ModeShares(len(routes), len(modes), shares, GroupResult.of(Rate.of_tasks(stuck)))


def _by_horizon(routes: Sequence[Route]) -> dict[str, GroupResult]:
    return {bucket: GroupResult.of(rate) for bucket, rate in success_table(routes).by_horizon.items()}


def _pass_at(routes: Sequence[Route]) -> dict[str, float]:
    """Return pass@k for each k that most tasks were played for; nothing where most were played once."""
    played = Counter(route.task_id for route in routes)
    often = [k for k in PASSES if 2 * sum(count >= k for count in played.values()) > len(played)]
    return {str(k): mean_pass_at_k(routes, k) for k in often} if often[1:] else {}


def _failed(route: Route, diagnosis: Diagnosis) -> FailedEpisode:
    step = diagnosis.key_step
    return FailedEpisode(
        route.episode_id, phase_group(route), route.site, route.template, len(route.moves), diagnosis.mode.value,
        diagnosis.rule, step, diagnosis.reason, "" if step is None else route.moves[step].action,
    )  # fmt: skip
