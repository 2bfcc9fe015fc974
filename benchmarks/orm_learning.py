"""Can a policy learn from an outcome model's verdicts in place of the rules'?

Trains MiRA from one start with the verdicts of the rules, of an outcome model that ``benchmarks.orm`` trained, and of
its control, a model that was trained on other episodes' verdicts. All are evaluated by the rules, and compared by seed
and task. What was trained already lies under ``--out`` and is not trained again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.comparison import Seeds, difference, level
from benchmarks.orm import MODEL, SHUFFLED
from benchmarks.recording import Recording, met, option_parser, percent, points
from benchmarks.runs import FOLDER, ROOT, RecordedRun, train
from cluster.run_folder.stage_results import Labelled

NAME = "orm_learning"
RECIPE = ROOT / "benchmarks" / "from_checkpoint.yaml"
RULES, TRAINED, CONTROL = "rules", "outcome model", "shuffled model"
PAIRS = ((TRAINED, RULES), (CONTROL, RULES), (TRAINED, CONTROL))
SPLIT = "test"
BELOW = 0.05
"""Share of test tasks that learning from a model may cost."""
Numbers = dict[str, Any]


def main() -> None:
    """Print and write what was learned from whom, and how often each judge agreed with the rules."""
    options = _options()
    recording = Recording(NAME, options.results)
    runs = {
        source: {seed: _learned(source, seed, settings, options) for seed in options.seeds}
        for source, settings in _sources(options.models).items()
    }
    arms = {source: _outcomes(found) for source, found in runs.items()}
    start = {seed: {SPLIT: run.outcomes(0, SPLIT)} for seed, run in runs[RULES].items()}
    levels = {"start": level(start, SPLIT), **{source: level(arm, SPLIT) for source, arm in arms.items()}}
    compared = {f"{one} - {other}": difference(arms[one], arms[other], SPLIT) for one, other in PAIRS}
    gains = {source: difference(arm, start, SPLIT) for source, arm in arms.items()}
    rows = [
        [name, *_cells(found)] for name, found in [*compared.items(), *((f"{k} - start", v) for k, v in gains.items())]
    ]
    recording.table("Success by the rules, points", ["pair", "difference", "from", "to", "p"], rows)
    agreed = {source: _agreement(found) for source, found in runs.items() if source != RULES}
    verdicts = _verdicts(compared, gains)
    recording.write(
        {
            "levels": levels,
            "differences": compared,
            "gains": gains,
            "agreement": agreed,
            "seeds": options.seeds,
            "overrides": options.set,
            "verdicts": verdicts,
        }
    )


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--models", type=Path, default=FOLDER / "orm", help="where `benchmarks.orm` left its models")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--environment", default="browserless", help="embedded (browser) or browserless")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all runs")
    return parser.parse_args()


def _sources(models: Path) -> dict[str, list[str]]:
    """Return each source of verdicts with the settings that make it one."""
    return {
        RULES: [],
        TRAINED: _judged_by(models / MODEL),
        CONTROL: _judged_by(models / SHUFFLED.replace(" ", "-")),
    }


def _judged_by(model: Path) -> list[str]:
    return ["replay.outcomes=trained", f"judges.trained.folder={model.resolve()}"]


def _learned(source: str, seed: int, more: Sequence[str], options: argparse.Namespace) -> RecordedRun:
    settings = [f"run.seed={seed}", f"run.environment={options.environment}", *more, *options.set]
    return train(RECIPE, options.out / f"{source.replace(' ', '-')}-seed{seed}", settings)


def _outcomes(runs: dict[int, RecordedRun]) -> Seeds:
    return {seed: {SPLIT: run.outcomes(run.phases, SPLIT)} for seed, run in runs.items()}


def _agreement(runs: dict[int, RecordedRun]) -> list[Numbers]:
    """Return how a model's labels of each phase agreed with the rules, over all seeds."""
    return [
        asdict(found)
        for run in runs.values()
        for phase in range(1, run.phases + 1)
        if (found := run.manifest.result(phase, Labelled).agreement) is not None
    ]


def _verdicts(compared: dict[str, Numbers], gains: dict[str, Numbers]) -> list[str]:
    cost, control = compared[f"{TRAINED} - {RULES}"]["mean"], compared[f"{TRAINED} - {CONTROL}"]["mean"]
    gained = gains[RULES]["mean"]
    return [
        f"MiRA gains {points(gained)} from the rules' verdicts; target an interval above 0 {met(gained['low'] > 0)}",
        f"From the outcome model's verdicts it ends {points(cost)} beside the rules'; target no lower end below "
        f"-{100 * BELOW:.0f} points {met(cost['low'] >= -BELOW)}",
        f"The model is {points(control)} above its shuffled control; target an interval above 0 "
        f"{met(control['low'] > 0)}",
    ]


def _cells(found: Numbers) -> list[str]:
    return [*(percent(found["mean"][name]) for name in ("value", "low", "high")), f"{found['p_permutation']:.3f}"]


if __name__ == "__main__":
    main()
