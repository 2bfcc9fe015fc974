"""Does a second run with the same seed and one worker give the same trajectories and the same losses?

Trains ``benchmarks/deterministic.yaml`` twice from nothing, in real Chromium, and compares every episode
token by token, every number that the learner reports, and the bytes of the final weights. Nothing is
rounded: equal means equal.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from benchmarks.recording import Recording, met, option_parser
from benchmarks.runs import FOLDER, RecordedRun, train
from benchmarks.same_runs import Comparison

NAME = "determinism"
RECIPE = Path(__file__).with_name("deterministic.yaml")


def main() -> None:
    """Run twice, print what was compared and what differs; exit code 1 where anything does."""
    options = _options()
    recording = Recording(NAME, options.results)
    first, second = (_fresh(options, name) for name in ("first", "second"))
    found = Comparison.of(first, second)
    recording.table("Two runs with the same seed", ["what", "compared", "different"], found.rows)
    for example in found.examples[:5]:
        recording.note(f"different: {example}")
    compared, different = found.compared.total(), found.unequal.total()
    verdict = f"Two runs with the same seed are the same: {different} of {compared} things differ: {met(not different)}"
    recording.write({
        "compared": dict(found.compared),
        "different": dict(found.unequal),
        "first_differences": found.examples[:50],
        "seconds": [sum(sum(stages.values()) for stages in run.manifest.seconds.values()) for run in (first, second)],
        "verdicts": [verdict],
    })  # fmt: skip
    sys.exit(1 if different else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="recipe of both runs")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    return parser.parse_args()


def _fresh(options: argparse.Namespace, name: str) -> RecordedRun:
    shutil.rmtree(options.out / name, ignore_errors=True)
    return train(options.recipe, options.out / name, options.overrides)


if __name__ == "__main__":
    main()
