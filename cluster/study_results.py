"""What came of a study: levels and paired differences of its arms, its predictions, and the mechanism's numbers.

Owns ``StudyResults``. Invariants: arms are compared on the tasks and seeds that
both have; what failed is named and in no number; nothing is computed that the page does not show or the file keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.comparison import Seeds, difference, level
from analysis.intervals import Interval
from analysis.predictions import Bearing, Prediction, smallest_shown
from cluster.study import StudyRuns
from cluster.study_design import StudyDesign
from cluster.study_records import RunRecord

START = "start"
"""Names the policies that the arms start from, as the first arm of every table."""


@dataclass(frozen=True, slots=True)
class Level:
    """Success of an arm: mean over seeds of the share of tasks, with its 95 % bootstrap interval."""

    mean: Interval
    by_seed: dict[int, float]
    tasks: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Success of ``arm`` less that of ``over``, paired by seed and task; ``shown`` is what such a study would show.

    ``shown`` is the difference found in 8 of 10 repetitions (power 0.8 at 95 %).
    """

    arm: str
    over: str
    mean: Interval
    by_seed: list[float]
    p: float
    shown: float


@dataclass(frozen=True, slots=True)
class Table:
    """One split, or one group of its tasks: levels by arm, and each arm against the baseline and against the start."""

    split: str
    group: str
    levels: dict[str, Level]
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prediction beside what came out; ``found`` is None where an arm has no runs."""

    prediction: Prediction
    bearing: Bearing
    found: Difference | None


@dataclass(frozen=True, slots=True)
class StudyResults:
    """A whole study. ``curves`` is the success of sampled rollouts by arm and phase, the mean over seeds.

    ``mechanism`` is the learner's numbers by name, arm and phase, likewise; ``chosen`` and ``tried`` what the grid took
    and all that it tried, with success on its split; ``failed`` is why a run is missing.
    """

    name: str
    registered: dict[str, Any]
    tables: list[Table]
    outcomes: list[Outcome]
    curves: dict[str, dict[int, float]]
    mechanism: dict[str, dict[str, dict[int, float]]]
    chosen: dict[str, dict[str, Any]]
    tried: dict[str, list[tuple[dict[str, Any], float]]]
    failed: dict[str, str] = field(default_factory=dict)


def results_of(design: StudyDesign, runs: StudyRuns, registered: dict[str, Any]) -> StudyResults:
    """Return what the finished runs of a study come to."""
    groups = {"": "", **design.groups}
    arms = {(split, name): _arms(runs, split, groups[name]) for split in design.splits for name in groups}
    tables = [_table(design, *where, found) for where, found in arms.items() if found]
    outcomes = [_outcome(one, arms[one.split, one.group]) for one in design.predictions]
    curves, mechanism = _curves(runs)
    return StudyResults(
        design.name, registered, tables, outcomes, curves, mechanism, runs.chosen, runs.tried, runs.failed
    )


def _arms(runs: StudyRuns, split: str, template: str) -> dict[str, Seeds]:
    """Return what the start and each arm did on these tasks, without the arms that played none."""
    arms = {START: _starts(runs, split, template)}
    arms |= {arm: _seeds(found, split, template) for arm, found in runs.arms.items()}
    return {arm: seeds for arm, seeds in arms.items() if any(of[split] for of in seeds.values())}


def _seeds(runs: Mapping[int, RunRecord], split: str, template: str) -> Seeds:
    return {seed: {split: run.outcomes_of(run.phases, split, template)} for seed, run in runs.items()}


def _starts(runs: StudyRuns, split: str, template: str) -> Seeds:
    """Return what the start policies did, from a run of each seed that was evaluated before RL."""
    of_seed = {seed: run for arm in runs.arms.values() for seed, run in arm.items() if 0 in run.outcomes}
    return {seed: {split: run.outcomes_of(0, split, template)} for seed, run in of_seed.items()}


def _table(design: StudyDesign, split: str, group: str, arms: Mapping[str, Seeds]) -> Table:
    levels = {arm: _level(seeds, split) for arm, seeds in arms.items()}
    pairs = [(arm, over) for over in (design.baseline, START) for arm in arms if arm not in (over, START)]
    found = [_difference(arm, over, arms, split) for arm, over in pairs if over in arms]
    return Table(split, group, levels, [one for one in found if one is not None])


def _level(seeds: Seeds, split: str) -> Level:
    played = {seed: of for seed, of in seeds.items() if of[split]}
    found = level(played, split)
    mean = Interval(**found["mean"])
    by_seed = dict(zip(found["seeds"], found["by_seed"], strict=True))
    return Level(mean, by_seed, max(len(of[split]) for of in played.values()))


def _difference(arm: str, over: str, arms: Mapping[str, Seeds], split: str) -> Difference | None:
    both = {s for s in arms[arm] if s in arms[over] and set(arms[arm][s][split]) & set(arms[over][s][split])}
    if not both:
        return None
    first, second = ({s: arms[name][s] for s in both} for name in (arm, over))
    found = difference(first, second, split)
    mean = Interval(**found["mean"])
    return Difference(arm, over, mean, found["by_seed"], found["p_permutation"], smallest_shown(mean))


def _outcome(prediction: Prediction, arms: Mapping[str, Seeds]) -> Outcome:
    there = prediction.arm in arms and prediction.over in arms
    found = _difference(prediction.arm, prediction.over, arms, prediction.split) if there else None
    return Outcome(prediction, Bearing.OPEN if found is None else prediction.borne_out(found.mean), found)


def _curves(runs: StudyRuns) -> tuple[dict[str, dict[int, float]], dict[str, dict[str, dict[int, float]]]]:
    curves: dict[str, dict[int, float]] = {}
    mechanism: dict[str, dict[str, dict[int, float]]] = {}
    for arm, of_seed in runs.arms.items():
        sampled: dict[int, list[float]] = {}
        numbers: dict[str, dict[int, list[float]]] = {}
        for run in of_seed.values():
            for phase, success in run.sampled.items():
                sampled.setdefault(phase, []).append(success)
            for name, values in run.mechanism.items():
                for phase, value in values.items():
                    numbers.setdefault(name, {}).setdefault(phase, []).append(value)
        curves[arm] = _means(sampled)
        for name, by_phase in numbers.items():
            mechanism.setdefault(name, {})[arm] = _means(by_phase)
    return curves, mechanism


def _means(by_phase: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return {phase: float(np.mean(found)) for phase, found in sorted(by_phase.items())}
