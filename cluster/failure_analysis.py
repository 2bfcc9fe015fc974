"""``waymark analyze``: the failures of run folders and of evaluations that were kept, by rules.

Owns where episodes are found and what is written: ``DIR/analysis.json`` and ``DIR/analysis.html``. Invariant: nothing
else in a folder is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from analysis.failure_page import render_failures
from analysis.failures import FailureReport, failure_report
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from cluster.errors import ManifestError
from cluster.recorded_run import RecordedRun
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import FILE_NAME
from replay.buffer import ReplayBuffer
from replay.shards import SUFFIX

RESULT, PAGE = "analysis.json", "analysis.html"
_AT_A_TIME = 64
"""So many episodes are held in memory."""
Explain = Callable[[Path, ReplayBuffer, FailureReport], FailureReport]


def _as_it_is(folder: Path, buffer: ReplayBuffer, report: FailureReport) -> FailureReport:
    return report


def analyze(folders: Sequence[Path], settings: AnalysisSettings, explain: Explain = _as_it_is) -> list[FailureReport]:
    """Analyse each folder, write what was found into it, and return it; see ``episodes_of`` for what is refused.

    ``explain`` may add to what the rules found, before it is written.
    """
    reports = []
    for folder in folders:
        buffer = episodes_of(folder)
        report = explain(folder, buffer, failure_report(folder.resolve().name, routes_of(buffer), settings))
        content = {"settings": asdict(settings), **asdict(report)}
        write_atomic(folder / RESULT, json.dumps(content, indent=1, allow_nan=False) + "\n")
        write_atomic(folder / PAGE, render_failures(f"Failures of {report.name}", [report]))
        reports.append(report)
    return reports


def episodes_of(folder: Path) -> ReplayBuffer:
    """Return the episodes of a run folder, of an evaluation's, or of a folder of shards.

    Raises ``ManifestError`` where there are none, or where the run's manifests cannot be read.
    """
    found = RunFolders(folder).episodes if RunFolders(folder).episodes.is_dir() else folder
    if not any(found.rglob(f"*{SUFFIX}")):
        raise ManifestError(
            f"{folder}: expected a run folder or an evaluation's with episodes, found no *{SUFFIX} there"
        )
    return RecordedRun(folder).buffer if (folder / FILE_NAME).exists() else ReplayBuffer(found)


def routes_of(buffer: ReplayBuffer, episode_ids: Sequence[str] | None = None) -> Iterator[Route]:
    """Yield the routes of these episodes (None: all), a few of which are in memory at a time."""
    ids = buffer.ids() if episode_ids is None else episode_ids
    for start in range(0, len(ids), _AT_A_TIME):
        yield from map(Route.of, buffer.trajectories(ids[start : start + _AT_A_TIME]))
