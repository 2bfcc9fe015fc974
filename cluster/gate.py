"""``waymark gate``: the last evaluations of two folders against each other, on the long tasks that both played.

Owns which episodes are compared. Invariant: an episode without a verdict is left out, and its task with it where it
has no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from analysis.gate import GateResult, gate
from analysis.routes import Route
from cluster.errors import ExitCode, ManifestError, RunError
from cluster.failure_analysis import episodes_of, routes_of
from records.episodes import Source


class Regression(RunError):
    """The new policy is worse."""


class TooFewTasks(RunError):
    """There are too few tasks to tell."""

    code = ExitCode.MISSING


def compare(old: Path, new: Path, *, longer_than: int, margin: float, level: float) -> GateResult:
    """Compare what two run folders, or folders of ``eval --out``, last evaluated, on tasks of more steps than that.

    A task's steps are its expert's; without an expert, those of the shortest success of either side.

    Raises:
        ManifestError: a folder holds no evaluation.
    """
    sides = [_last_evaluation(folder) for folder in (old, new)]
    steps = _steps([route for side in sides for route in side])
    before, after = ({task: r for task, r in _success(side).items() if steps[task] > longer_than} for side in sides)
    return gate(before, after, margin=margin, level=level)


def _last_evaluation(folder: Path) -> list[Route]:
    buffer = episodes_of(folder)
    ids = buffer.ids(sources=(Source.EVALUATION,))
    if not ids:
        raise ManifestError(f"{folder}: holds no evaluation; make one with `waymark eval --out`")
    last = max(buffer.entry(episode).phase for episode in ids)
    return [route for route in routes_of(buffer, [e for e in ids if buffer.entry(e).phase == last])]


def _steps(routes: Sequence[Route]) -> dict[str, int]:
    """Return the number of steps that each task takes, 0 where nothing tells."""
    steps: dict[str, int] = {}
    for route in sorted(routes, key=lambda route: (not route.success, len(route.moves))):
        known = route.horizon or (len(route.moves) if route.success else 0)
        steps[route.task_id] = steps.get(route.task_id) or known
    return steps


def _success(routes: Sequence[Route]) -> dict[str, float]:
    """Return each task's mean success over its judged episodes."""
    outcomes: dict[str, list[float]] = defaultdict(list)
    for route in routes:
        if route.outcome is not None:
            outcomes[route.task_id].append(float(route.success))
    return {task: fmean(found) for task, found in outcomes.items()}
