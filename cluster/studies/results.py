"""What came of a study: levels and paired differences of its arms, its predictions, and the mechanism's numbers.

Owns ``StudyResults``. Invariants: arms are compared on the tasks and seeds that
both have; what failed is named and in no number; nothing is computed that the page does not show or the file keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from analysis.comparison import Outcomes, Seeds, difference, level
from analysis.intervals import Interval
from analysis.predictions import Bearing, Measure, Prediction, smallest_shown
from cluster.studies.design import START, StudyDesign
from cluster.studies.records import RunRecord
from cluster.studies.runs import StudyRuns, Tried


@dataclass(frozen=True, slots=True)
class Level:
    """A measure of an arm: mean over seeds of its mean over tasks, with its 95 % interval."""

    mean: Interval
    by_seed: dict[int, float]
    tasks: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of ``arm`` less that of ``over``, paired by seed and task; ``shown`` is what such a study would show.

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
    """One measure on a split, or on one group of its tasks: levels by arm, and each arm less what it is compared with.

    That is the baseline, the start, and every arm that a prediction names as ``over``: what was predicted of one
    measure is told of all.
    """

    measure: Measure
    split: str
    group: str
    levels: dict[str, Level]
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prediction beside what came out; ``found`` is None where an arm has no runs.

    ``seeds`` are those that both arms are trained with. Before all of them are there it is undecided, whatever those
    that are say: who looks at every new run, and may stop at any, finds what was predicted sooner or later. With one
    seed it stays so: how much seeds differ is not known then.
    """

    prediction: Prediction
    bearing: Bearing
    found: Difference | None
    seeds: int

    @property
    def missing(self) -> int:
        """How many of the seeds are not there yet."""
        return self.seeds - (0 if self.found is None else len(self.found.by_seed))


@dataclass(frozen=True, slots=True)
class StudyResults:
    """A whole study. ``curves`` is each measure of sampled rollouts by arm and phase, the mean over seeds.

    ``mechanism`` is the learner's numbers by name, arm and phase, likewise; ``chosen`` and ``tried`` what the grid took
    and all that it tried, with success on its split; ``failed`` is why a run is missing.
    """

    name: str
    registered: dict[str, Any]
    tables: list[Table]
    outcomes: list[Outcome]
    curves: dict[Measure, dict[str, dict[int, float]]]
    mechanism: dict[str, dict[str, dict[int, float]]]
    chosen: dict[str, dict[str, Any]]
    tried: dict[str, list[Tried]]
    failed: dict[str, str] = field(default_factory=dict)


def results_of(design: StudyDesign, runs: StudyRuns, registered: dict[str, Any]) -> StudyResults:
    """Return what the finished runs of a study come to."""
    groups = {"": "", **design.groups}
    asked = [(measure, split, name) for split in design.splits for name in groups for measure in Measure]
    tables = {
        (measure, split, name): _table(design, runs, (measure, split, name), arms)
        for measure, split, name in asked
        if (arms := outcomes_by_arm(runs, measure, split, groups[name]))
    }
    outcomes = [_outcome(design, one, tables.get((one.measure, one.split, one.group))) for one in design.predictions]
    every = {arm: list(of_seed.values()) for arm, of_seed in runs.arms.items()}
    curves = {
        Measure.SUCCESS: {arm: _curve(run.sampled for run in found) for arm, found in every.items()},
        Measure.MILESTONES: {arm: _curve(run.sampled_milestones for run in found) for arm, found in every.items()},
    }
    named = {name for found in every.values() for run in found for name in run.mechanism}
    mechanism = {
        name: {arm: _curve(run.mechanism.get(name, {}) for run in found) for arm, found in every.items()}
        for name in sorted(named)
    }
    templates = {template for found in every.values() for run in found for template in run.templates.values()}
    unknown = {name: template for name, template in design.groups.items() if template not in templates}
    failed = {f"groups: {name}": f"no task has the template {template!r}" for name, template in unknown.items()}
    told = list(tables.values())
    return StudyResults(
        design.name, registered, told, outcomes, curves, mechanism, runs.chosen, runs.tried, runs.failed | failed
    )


def outcomes_by_arm(runs: StudyRuns, measure: Measure, split: str, template: str = "") -> dict[str, Seeds]:
    """Return what the start and each arm did on a split, or on one template of it, without the arms that played none.

    What the start policies did is told by the runs of each seed that were evaluated before RL: by one where all have
    one start, by their mean where each has its own.
    """
    before: dict[int, list[Outcomes]] = {}
    for found in runs.arms.values():
        for seed, run in found.items():
            if 0 in run.outcomes:
                before.setdefault(seed, []).append(_did(run, 0, measure, split, template))
    arms: dict[str, Seeds] = {START: {seed: {split: _mean(before[seed])} for seed in sorted(before)}}
    arms |= {
        arm: {seed: {split: _did(run, run.phases, measure, split, template)} for seed, run in found.items()}
        for arm, found in runs.arms.items()
    }
    return {arm: seeds for arm, seeds in arms.items() if any(of[split] for of in seeds.values())}


def _did(run: RunRecord, phase: int, measure: Measure, split: str, template: str) -> Outcomes:
    of = run.outcomes_of if measure is Measure.SUCCESS else run.milestones_of
    return of(phase, split, template)


def _mean(outcomes: Sequence[Outcomes]) -> Outcomes:
    """Return the mean outcome of each task over those who played it."""
    tasks = dict.fromkeys(task for one in outcomes for task in one)
    return {task: fmean(one[task] for one in outcomes if task in one) for task in tasks}


def _table(design: StudyDesign, runs: StudyRuns, where: tuple[Measure, str, str], arms: Mapping[str, Seeds]) -> Table:
    measure, split, group = where
    template = design.groups.get(group, "")
    levels = {arm: _level(seeds, split) for arm, seeds in arms.items()}

    def start_of(arm: str) -> Seeds:
        """Return what an arm started from: the common start, or its own."""
        if design.start is not None:
            return arms.get(START, {})
        own = {seed: run for seed, run in runs.arms[arm].items() if 0 in run.outcomes}
        return {seed: {split: _did(run, 0, measure, split, template)} for seed, run in own.items()}

    pairs = [(arm, over) for over in design.compared_with for arm in arms if arm not in (over, START)]
    found = [_difference(arm, over, arms[arm], arms.get(over, {}), split) for arm, over in pairs]
    found += [_difference(arm, START, arms[arm], start_of(arm), split) for arm in arms if arm != START]
    return Table(measure, split, group, levels, [one for one in found if one is not None])


def _level(seeds: Seeds, split: str) -> Level:
    played = {seed: of for seed, of in seeds.items() if of[split]}
    found = level(played, split)
    mean = Interval(**found["mean"])
    by_seed = dict(zip(found["seeds"], found["by_seed"], strict=True))
    return Level(mean, by_seed, max(len(of[split]) for of in played.values()))


def _difference(arm: str, over: str, first: Seeds, second: Seeds, split: str) -> Difference | None:
    both = sorted(s for s in first if s in second and set(first[s][split]) & set(second[s][split]))
    if not both:
        return None
    found = difference({s: first[s] for s in both}, {s: second[s] for s in both}, split)
    mean = Interval(**found["mean"])
    return Difference(arm, over, mean, found["by_seed"], found["p_permutation"], smallest_shown(mean))


def _outcome(design: StudyDesign, prediction: Prediction, table: Table | None) -> Outcome:
    """Return the prediction beside the difference that its table has; there is none where an arm has no runs."""
    pair = (prediction.arm, prediction.over)
    differences = [] if table is None else table.differences
    found = next((one for one in differences if (one.arm, one.over) == pair), None)
    both = set(design.seeds_of(prediction.arm))
    if prediction.over != START:
        both &= set(design.seeds_of(prediction.over))
    outcome = Outcome(prediction, Bearing.OPEN, found, len(both))
    if found is None or outcome.missing or len(found.by_seed) < 2:
        return outcome
    return replace(outcome, bearing=prediction.borne_out(found.mean))


def _curve(by_phase: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return the mean over runs of a number by phase."""
    found: dict[int, list[float]] = {}
    for run in by_phase:
        for phase, value in run.items():
            found.setdefault(phase, []).append(value)
    return {phase: fmean(values) for phase, values in sorted(found.items())}
