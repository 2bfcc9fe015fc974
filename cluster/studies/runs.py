"""``waymark study``: which runs a study has, in which order they are played, and what its grid chose.

Owns the order and the runs' names, which are their folders' too: ``start/seed-S``, ``grid/ARM/POINT``,
``arms/ARM/seed-S``. Invariants: a run that has a record is not run again, wherever it was made; the test splits are
not looked at before every choice is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from cluster.errors import RunStopped
from cluster.studies.design import StudyFile
from cluster.studies.processes import Say, StartPolicy, StudyProcesses, StudyRun, study_processes
from cluster.studies.records import RunRecord


@dataclass(frozen=True, slots=True)
class Tried:
    """Settings of the grid, with success and the share of milestones reached on its split (0 without milestones)."""

    settings: dict[str, Any]
    success: float
    milestones: float


@dataclass(slots=True)
class StudyRuns:
    """The records of a study's runs: of each arm by seed, the settings that the grid chose, and what failed and why."""

    arms: dict[str, dict[int, RunRecord]] = field(default_factory=dict)
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)
    tried: dict[str, list[Tried]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_study(study: StudyFile, out: Path, records: Path, jobs: int, say: Say, *, only_read: bool = False) -> StudyRuns:
    """Run what has no record yet, ``jobs`` at a time, and return all records; with ``only_read`` start nothing.

    Raises:
        RunStopped: not one start policy could be made, or it was stopped by a signal; the same command goes on.
        ManifestError: a record cannot be read, or is of a run with other settings.
    """
    design, runs = study.design, StudyRuns()
    with study_processes(jobs, out, records, say, only_read=only_read) as processes:
        _choose(study, processes, runs)
        asked = {
            f"arms/{arm}/seed-{seed}": (arm, seed)
            for arm in design.arms
            for seed in design.seeds_of(arm)
            if arm in runs.chosen or design.grid is None
        }
        found = _played(study, processes, runs, [
            StudyRun(name, seed, study.recipe, study.settings_of(arm, seed, runs.chosen.get(arm, {}), design.splits))
            for name, (arm, seed) in asked.items()
        ])  # fmt: skip
    for name, record in found.items():
        arm, seed = asked[name]
        runs.arms.setdefault(arm, {})[seed] = record
    return runs


def _choose(study: StudyFile, processes: StudyProcesses, runs: StudyRuns) -> None:
    """Try the grid for every arm, and note what is best on its split: by success, then by milestones reached.

    An arm waits until all of its grid is complete; of points that are alike the first counts.
    """
    grid = study.design.grid
    if grid is None:
        return
    points = dict(enumerate(grid.points()))
    asked = {f"grid/{arm}/{number}": (arm, number) for arm in study.design.tries_grid for number in points}
    found = _played(study, processes, runs, [
        StudyRun(name, grid.seed, study.recipe, study.settings_of(arm, grid.seed, points[number], [grid.split]))
        for name, (arm, number) in asked.items()
    ])  # fmt: skip
    for name, (arm, number) in asked.items():
        if (record := found.get(name)) is None:
            continue
        success = fmean(record.outcomes_of(record.phases, grid.split).values())
        reached = record.milestones_of(record.phases, grid.split).values()
        tried = Tried(dict(points[number]), success, fmean(reached) if reached else 0.0)
        runs.tried.setdefault(arm, []).append(tried)
    for arm, of_arm in runs.tried.items():
        if len(of_arm) == len(points):
            runs.chosen[arm] = max(of_arm, key=lambda one: (one.success, one.milestones)).settings
    likes = {name: arm.like for name, arm in study.design.arms.items() if arm.like in runs.chosen}
    runs.chosen |= {name: runs.chosen[like] for name, like in likes.items()}
    waiting = {name: arm.like or name for name, arm in study.design.arms.items() if name not in runs.chosen}
    runs.failed |= {f"arms/{name}": f"the grid of {tries} is not complete" for name, tries in waiting.items()}


def _played(
    study: StudyFile, processes: StudyProcesses, runs: StudyRuns, asked: Sequence[StudyRun]
) -> dict[str, RunRecord]:
    """Return the records of these runs, seed by seed; what has none is noted in ``runs.failed``.

    A seed's start is made where one of its runs is missing, while those of the seed before it are trained.
    """
    found = {run.name: record for run in asked if (record := processes.recorded(run)) is not None}
    missing = [run for run in asked if run.name not in found]
    seeds = sorted({run.seed for run in missing})
    starts: dict[int, Future[StartPolicy | str] | None] = {}
    begun: dict[str, Future[RunRecord | str]] = {}
    same = {
        seed: {found[run.name].start: run.name for run in asked if run.seed == seed and run.name in found}
        for seed in seeds
    }
    for number, seed in enumerate(seeds):
        for near in seeds[number : number + 2]:
            if near not in starts:
                start = None if study.design.start is None else processes.start(_start_run(study, near), same[near])
                starts[near] = start
        begun |= {run.name: processes.arm(run, starts[seed], same[seed]) for run in missing if run.seed == seed}
    ended = {seed: made.result() for seed, made in starts.items() if made is not None}
    runs.failed |= {f"start/seed-{seed}": made for seed, made in ended.items() if isinstance(made, str)}
    if ended and not found and not processes.only_read and all(isinstance(made, str) for made in ended.values()):
        raise RunStopped(f"no start policy could be made: {next(iter(ended.values()))}")
    results = {name: future.result() for name, future in begun.items()}
    runs.failed |= {name: said for name, said in results.items() if isinstance(said, str)}
    return found | {name: record for name, record in results.items() if isinstance(record, RunRecord)}


def _start_run(study: StudyFile, seed: int) -> StudyRun:
    assert study.design.start is not None
    return StudyRun(f"start/seed-{seed}", seed, study.folder / study.design.start.recipe, study.start_settings(seed))
