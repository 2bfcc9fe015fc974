"""Does RL teach more than cloning? Held-out success of cloning, filtered cloning and MiRA over several seeds.

Each arm and seed is one run of the recipe (``waymark train``), complete or resumed in the output folder.
Cloning alone is the evaluation before RL of those very runs. Differences are paired: the same tasks, the
same seed, the same start.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from analysis.comparison import Outcomes, Seeds, difference, level
from benchmarks.critic_quality import critic_quality
from benchmarks.recording import Recording, met, option_parser, percent, points
from benchmarks.runs import FOLDER, LAPTOP, RecordedRun, RunFailed, train
from cluster.errors import ManifestError
from cluster.run_folder.summary import read_summary

NAME = "learning"
CLONING = "cloning"
TARGET_POINTS = 10.0


@dataclass(frozen=True)
class ArmRun:
    """One finished run: outcomes by split and task before RL and after the last phase, and its critics."""

    arm: str
    seed: int
    start: dict[str, Outcomes]
    final: dict[str, Outcomes]
    success_by_phase: dict[str, list[float | None]]
    seconds: float
    lost: dict[str, int]
    critics: dict[str, dict[str, Any]]


def main() -> None:
    """Run what is missing, print the tables, write the numbers; exit code 1 where a run failed."""
    options = _options()
    recording = Recording(NAME, options.results)
    jobs = [(arm, seed) for seed in options.seeds for arm in options.arms]
    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda job: _finished(options, *job), jobs))
    failures = [str(run) for run in found if isinstance(run, RunFailed)]
    runs = [_read(arm, seed, run) for (arm, seed), run in zip(jobs, found, strict=True) if isinstance(run, RecordedRun)]
    for failure in failures:
        recording.note(f"left out: {failure}")
    if not runs:
        sys.exit("no run is complete, so there is nothing to compare")
    splits = list(runs[0].final)
    arms = _arms(runs, options.arms)
    tasks = {split: _tasks(runs, split) for split in splits}
    numbers = {
        "arms": {arm: {split: level(seeds, split) for split in splits} for arm, seeds in arms.items()},
        "differences": _differences(runs, options.arms, splits),
        "runs": [_raw(run, tasks) for run in runs],
        "tasks": tasks,
        "failures": failures,
    }
    _show(recording, numbers, splits)
    verdicts = _verdicts(numbers["differences"], splits[0])
    recording.write(numbers | {"verdicts": verdicts})
    sys.exit(1 if failures else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds of the run and the learner")
    parser.add_argument("--arms", nargs="+", default=["filtered_bc", "mira"], help="algorithms beside cloning alone")
    parser.add_argument("--recipe", type=Path, default=LAPTOP, help="recipe of every run")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    parser.add_argument("--only-read", action="store_true", help="start no run; compare those that are complete")
    return parser.parse_args()


def _finished(options: argparse.Namespace, arm: str, seed: int) -> RecordedRun | RunFailed:
    out = options.out / f"{arm}-seed{seed}"
    if options.only_read:
        return RecordedRun(out) if _complete(out) else RunFailed(f"{out}: not complete")
    settings = [f"run.seed={seed}", f"learner.seed={seed}", f"learner.algorithm={arm}"]
    try:
        return train(options.recipe, out, [*options.overrides, *settings])
    except RunFailed as error:
        return error


def _complete(out: Path) -> bool:
    try:
        return bool(read_summary(out)["complete"])
    except ManifestError:
        return False


def _read(arm: str, seed: int, run: RecordedRun) -> ArmRun:
    summary, splits = read_summary(run.out), run.recipe.run.evaluation.splits
    return ArmRun(
        arm,
        seed,
        start={split: run.outcomes(0, split) for split in splits},
        final={split: run.outcomes(run.phases, split) for split in splits},
        success_by_phase={
            split: [phase["evaluation"].get(split, {}).get("success") for phase in summary["phases"]]
            for split in splits
        },
        seconds=summary["seconds"],
        lost=summary["episodes"]["by_failure"],
        critics=critic_quality(run),
    )


def _arms(runs: Sequence[ArmRun], order: Sequence[str]) -> dict[str, Seeds]:
    """Return outcomes by arm; cloning's are the start of the last arm's runs."""
    mine = {arm: [run for run in runs if run.arm == arm] for arm in order}
    last = next(arm for arm in reversed(order) if mine[arm])
    arms: dict[str, Seeds] = {CLONING: {run.seed: run.start for run in mine[last]}}
    return arms | {arm: {run.seed: run.final for run in mine[arm]} for arm in order if mine[arm]}


def _differences(runs: Sequence[ArmRun], order: Sequence[str], splits: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each arm minus its own start, and each later arm minus the one before it."""
    starts = {arm: {run.seed: run.start for run in runs if run.arm == arm} for arm in order}
    finals = {arm: {run.seed: run.final for run in runs if run.arm == arm} for arm in order}
    pairs = {f"{arm} - {CLONING}": (finals[arm], starts[arm]) for arm in order}
    pairs |= {f"{b} - {a}": (finals[b], finals[a]) for a, b in pairwise(order)}
    return {name: {split: difference(*pair, split) for split in splits} for name, pair in pairs.items()}


def _tasks(runs: Sequence[ArmRun], split: str) -> list[str]:
    return sorted({task for run in runs for side in (run.start, run.final) for task in side[split]})


def _raw(run: ArmRun, tasks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a run's numbers with the outcomes in the order of ``tasks``, null where a task has no verdict."""
    return asdict(run) | {
        side: {split: [outcomes[split].get(task) for task in of_split] for split, of_split in tasks.items()}
        for side, outcomes in (("start", run.start), ("final", run.final))
    }


def _show(recording: Recording, numbers: Mapping[str, Any], splits: Sequence[str]) -> None:
    recording.table(
        "Held-out success in percent: mean of the seeds [95 %, over seeds and tasks]",
        ["arm", "seeds", *splits],
        [
            [arm, len(levels[splits[0]]["seeds"]), *(_interval(levels[split]["mean"]) for split in splits)]
            for arm, levels in numbers["arms"].items()
        ],
    )
    recording.table(
        "Differences in points [95 %, over seeds and tasks], p by permutation of tasks, by McNemar for each seed",
        ["difference", *splits],
        [[name, *(_difference_text(of[split]) for split in splits)] for name, of in numbers["differences"].items()],
    )
    rows = [[run["arm"], run["seed"], *_critic_cells(run["critics"])] for run in numbers["runs"] if run["critics"]]
    recording.table(
        "Critics on held-out episodes of the last evaluation",
        ["run", "seed", "successes", "P Kendall", "P Spearman", "P pooled", "episodes", "V AUC", "V AUC, first page"],
        [*rows, *_critic_means(rows)],
    )


def _verdicts(differences: Mapping[str, Mapping[str, Any]], split: str) -> list[str]:
    """Return one sentence a difference on ``split``: cloning is to be beaten by the target, another arm at all."""
    verdicts = []
    for name, of in differences.items():
        if of[split]["by_seed"]:
            arm, other = name.split(" - ")
            target, mean = TARGET_POINTS if other == CLONING else 0.0, of[split]["mean"]
            holds = mean["low"] > 0 and 100 * mean["value"] >= target
            wanted = f"{target:g} points and " if target else ""
            said = f"{arm} is above {other} on {split}: {points(mean)}; target {wanted}an interval above 0"
            verdicts.append(f"{said}: {met(holds)}")
    return verdicts


def _critic_cells(critics: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    potential, value = critics.get("potential", {}), critics.get("value", {})
    names = ("successes", "kendall", "spearman", "pooled_spearman")
    return [*(potential.get(name) for name in names), *(value.get(n) for n in ("episodes", "auc", "auc_first_state"))]


def _critic_means(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return one row with the means over seeds of each arm."""
    means = []
    for arm in dict.fromkeys(row[0] for row in rows):
        columns = zip(*(row[2:] for row in rows if row[0] == arm), strict=True)
        known = [[x for x in column if x is not None and not math.isnan(x)] for column in columns]
        means.append([f"{arm}, mean", "", *(sum(column) / len(column) if column else None for column in known)])
    return means


def _difference_text(difference: Mapping[str, Any]) -> str:
    by_seed = ", ".join(f"{p:.2g}" for p in difference["p_mcnemar"])
    return f"{_interval(difference['mean'])}, p {difference['p_permutation']:.2g} ({by_seed})"


def _interval(interval: Mapping[str, float]) -> str:
    return f"{percent(interval['value'])} [{percent(interval['low'])}, {percent(interval['high'])}]"


if __name__ == "__main__":
    main()
