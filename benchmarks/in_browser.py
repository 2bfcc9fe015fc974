"""Do the policies that a study trained without a browser do the same in Chromium? The last policy of each main arm.

Each plays the study's first split again, greedily, in real Chromium, on the same tasks, and is held against what the
study recorded of it: success, share of milestones, and the tasks whose outcome differs. The control holds each policy
against the record of the arm that plays most differently from it, which must differ more. Finished evaluations are kept
in OUT/browser, so that a stopped benchmark goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analysis.intervals import mcnemar
from benchmarks.recording import RESULTS, Recording, met, option_parser
from benchmarks.runs import FOLDER, train
from benchmarks.study import STUDIES
from cluster.finished_run import FinishedRun
from cluster.study_design import read_study
from cluster.study_records import RunRecord, read_record

NAME = "in_browser"
WITHIN = 0.04
"""Difference of success that counts as none, as in the studies' predictions."""
_RESAMPLES = 2000
ByTask = Mapping[str, float]


def main() -> None:
    """Play what was not played yet, compare, write."""
    options = _options()
    recording = Recording(NAME, options.results)
    study = read_study(STUDIES / f"{options.study}.yaml")
    design, seed, split = study.design, options.seed, study.design.splits[0]
    out, records = options.out / options.study, options.records / options.study
    wanted = options.arms or [name for name, arm in design.arms.items() if arm.seeds is None]
    known = {name: record for name in design.arms if (record := _recorded(records, name, seed)) is not None}
    if missing := [name for name in wanted if name not in known or not _trained(out, name, seed).is_dir()]:
        sys.exit(
            f"expected records and policies of seed {seed}, found none of {', '.join(missing)}; run the study first"
        )
    rows = []
    for name in wanted:
        run = _played(STUDIES / design.recipe, out, name, seed, split, options.contexts)
        own = known[name]
        rows.append(
            {
                "arm": name,
                **compared(run.outcomes(0, split), own.outcomes[max(own.outcomes)][split]),
                "milestones": compared(run.milestones(0)[split], own.milestones[max(own.milestones)][split]),
                "control": max(
                    compared(run.outcomes(0, split), one.outcomes[max(one.outcomes)][split])["differ"]
                    for other, one in known.items()
                    if other != name
                ),
            }
        )
    recording.table(
        f"{options.study}, seed {seed}, {split}: in Chromium and without a browser",
        ["arm", "tasks", "Chromium %", "without %", "difference, points", "tasks differ", "control", "McNemar's p"],
        [
            [row["arm"], row["tasks"], 100 * row["browser"], 100 * row["recorded"], _points(row), row["differ"],
             row["control"], row["p"]]
            for row in rows
        ],
    )  # fmt: skip
    verdicts = [_verdict(row) for row in rows]
    for verdict in verdicts:
        recording.note(verdict)
    recording.write({"study": options.study, "seed": seed, "split": split, "arms": rows, "verdicts": verdicts})


def compared(browser: ByTask, recorded: ByTask) -> dict[str, Any]:
    """Return both means over the tasks that both have, the difference with a 95 % interval, and what differs."""
    tasks = sorted(browser.keys() & recorded.keys())
    first, second = (np.array([one[task] for task in tasks]) for one in (browser, recorded))
    drawn = np.random.default_rng(0).integers(len(tasks), size=(_RESAMPLES, len(tasks)))
    low, high = np.percentile((first - second)[drawn].mean(axis=1), [2.5, 97.5])
    return {
        "tasks": len(tasks),
        "browser": float(first.mean()),
        "recorded": float(second.mean()),
        "difference": float((first - second).mean()),
        "low": float(low),
        "high": float(high),
        "differ": int((first != second).sum()),
        "p": mcnemar((first >= 1).tolist(), (second >= 1).tolist()),
    }


def _played(recipe: Path, out: Path, arm: str, seed: int, split: str, contexts: int) -> FinishedRun:
    policy = _trained(out, arm, seed).resolve()
    said = [
        "run.phases=0", f"run.seed={seed}", "run.environment=embedded", "learner.algorithm=sft",
        f'warm_start.checkpoint="{policy}"', f"run.evaluation.splits=[{split}]",
        f"rollout.contexts_per_worker={contexts}",
    ]  # fmt: skip
    return train(recipe, out / "browser" / arm / f"seed-{seed}", said)


def _trained(out: Path, arm: str, seed: int) -> Path:
    return out / "arms" / arm / f"seed-{seed}" / "trained"


def _recorded(records: Path, arm: str, seed: int) -> RunRecord | None:
    file = records / "arms" / arm / f"seed-{seed}.json"
    return read_record(file) if file.is_file() else None


def _points(found: Mapping[str, Any]) -> str:
    return f"{100 * found['difference']:+.1f} [{100 * found['low']:+.1f}, {100 * found['high']:+.1f}]"


def _verdict(row: Mapping[str, Any]) -> str:
    alike = row["low"] >= -WITHIN and row["high"] <= WITHIN
    figures = f"{_points(row)} points, {row['differ']} of {row['tasks']} tasks differ (control {row['control']})"
    return f"{row['arm']} solves as much in Chromium as without a browser: {figures}: {met(alike)}"


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--study", default="chains", help="the study: NAME of studies/NAME.yaml")
    parser.add_argument("--out", type=Path, default=FOLDER / "studies", help="folder of the study's runs")
    parser.add_argument("--records", type=Path, default=RESULTS / "studies", help="folder of the runs' records")
    parser.add_argument("--seed", type=int, default=0, help="seed of the runs whose policies play")
    parser.add_argument("--arms", nargs="*", help="arms; those that run on all of the study's seeds if left out")
    parser.add_argument("--contexts", type=int, default=4, help="browser slots")
    return parser.parse_args()


if __name__ == "__main__":
    main()
