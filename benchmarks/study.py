"""A study of ``benchmarks/studies``: its missing runs, its page, and what came of its predictions as a result file.

The records of its runs are in ``results/studies/NAME`` and go with the repository, so that a study of hours is run in
parts, on one machine after another.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from analysis.predictions import Bearing
from benchmarks.recording import RESULTS, Recording, met, option_parser, percent, points
from benchmarks.runs import FOLDER, ROOT
from cluster.errors import RunError
from cluster.studies.design import StudyDesign, read_study
from cluster.studies.results import Outcome, StudyResults
from cluster.studies.runs import StudyRuns
from cluster.studies.whole import conduct

STUDIES = ROOT / "benchmarks" / "studies"
ARM_MINUTES = 20.0


def main(arguments: Sequence[str] | None = None, studies: Path = STUDIES) -> None:
    """Run what is missing, print what was predicted and what came out, write the numbers."""
    options = _options(arguments)
    records, out = options.records / options.name, options.out / options.name
    recording = Recording(options.name, options.results)
    try:
        study = read_study(studies / f"{options.name}.yaml")
        conducted = conduct(study, out, records, options.jobs, recording.note, only_read=options.only_read)
    except RunError as error:
        sys.exit(str(error))
    runs, results = conducted.runs, conducted.results
    _show(recording, results)
    numbers = {name: value for name, value in asdict(results).items() if name != "name"}
    verdicts = verdicts_of(study.design, runs, results)
    recording.write({**numbers, "seconds_of_arms": seconds_of(runs), "verdicts": verdicts})


def verdicts_of(design: StudyDesign, runs: StudyRuns, results: StudyResults) -> list[str]:
    """Return one sentence a prediction, whether what was planned is complete, and whether arms keep their time."""
    planned = sum(len(design.seeds_of(arm)) for arm in design.arms)
    done = sum(map(len, runs.arms.values()))
    whole = [seconds for of_seed in seconds_of(runs).values() for seconds in of_seed.values() if seconds is not None]
    longest = max(whole, default=math.nan) / 60
    complete = f"The study is complete, {planned} runs of arms: {done} are done"
    in_time = (
        f"An arm takes {ARM_MINUTES:.0f} minutes on one core at most: the longest of {len(whole)} whose time is known "
        f"took {longest:.1f}"
    )
    return [
        *(_verdict(outcome) for outcome in results.outcomes),
        f"{complete}: {met(done == planned)}",
        f"{in_time}: {met(longest <= ARM_MINUTES)}",
    ]


def _verdict(outcome: Outcome) -> str:
    said, found = outcome.prediction.says, outcome.found
    if found is None:
        return f"{said}: no runs yet: missed"
    figures = f"{points(asdict(found.mean))}, {len(found.by_seed)} of {outcome.seeds} seeds"
    return f"{said}: {figures}, {outcome.bearing}: {met(outcome.bearing is Bearing.HELD)}"


def seconds_of(runs: StudyRuns) -> Mapping[str, Mapping[int, float | None]]:
    """Return the wall time of each arm's runs by seed, None of those that were resumed; each runs on a core."""
    return {arm: {seed: record.seconds for seed, record in found.items()} for arm, found in runs.arms.items()}


def _show(recording: Recording, results: StudyResults) -> None:
    for table in results.tables:
        rows = [
            [arm, *map(percent, (one.mean.value, one.mean.low, one.mean.high)), one.tasks, len(one.by_seed)]
            for arm, one in table.levels.items()
        ]
        title = f"{table.split} {table.group}".strip()
        recording.table(f"{title}: {table.measure.value} in %", ["arm", "mean", "low", "high", "tasks", "seeds"], rows)
    numbers: dict[str, Any] = {
        name: {arm: median(by_phase.values()) for arm, by_phase in arms.items() if by_phase}
        for name, arms in results.mechanism.items()
    }
    recording.table(
        "The mechanism, median over phases",
        ["number", "arm", "value"],
        [[name, arm, value] for name, arms in numbers.items() for arm, value in arms.items()],
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = option_parser("study", __doc__ or "")
    parser.add_argument("name", help="the study: NAME of studies/NAME.yaml")
    parser.add_argument("--out", type=Path, default=FOLDER / "studies", help="folder of the runs")
    parser.add_argument("--records", type=Path, default=RESULTS / "studies", help="folder of the runs' records")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--only-read", action="store_true", help="start nothing; tell of what is complete")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
