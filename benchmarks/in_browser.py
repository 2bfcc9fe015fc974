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
from statistics import fmean
from typing import Any

from analysis.comparison import Outcomes, difference
from benchmarks.recording import RESULTS, Recording, met, option_parser, points
from benchmarks.runs import FOLDER, train
from benchmarks.study import STUDIES
from cluster.finished_run import FinishedRun
from cluster.study import run_study
from cluster.study_design import read_study
from cluster.study_records import ByPhase

NAME = "in_browser"
WITHIN = 0.04
"""Difference of success that counts as none, as in the studies' predictions."""


def main() -> None:
    """Play what was not played yet, compare, write."""
    options = _options()
    recording = Recording(NAME, options.results)
    study = read_study(STUDIES / f"{options.study}.yaml")
    design, seed, split = study.design, options.seed, study.design.splits[0]
    out, records = options.out / options.study, options.records / options.study
    recorded = run_study(study, out, records, 1, recording.note, only_read=True).arms
    known = {arm: of_seed[seed] for arm, of_seed in recorded.items() if seed in of_seed}
    wanted = options.arms or [name for name, arm in design.arms.items() if arm.seeds is None]
    if missing := [name for name in wanted if name not in known or not _trained(out, name, seed).is_dir()]:
        sys.exit(
            f"expected records and policies of seed {seed}, found none of {', '.join(missing)}; run the study first"
        )
    rows = []
    for name in wanted:
        run = _played(study.recipe, out, name, seed, split, options.contexts)
        played, solved = run.outcomes(0, split), {arm: _last(one.outcomes, split) for arm, one in known.items()}
        rows.append(
            {
                "arm": name,
                **compared(played, solved[name]),
                "milestones": compared(run.milestones(0)[split], _last(known[name].milestones, split)),
                "control": max(_differ(played, solved[other]) for other in known if other != name),
            }
        )
    recording.table(
        f"{options.study}, seed {seed}, {split}: in Chromium and without a browser",
        ["arm", "tasks", "Chromium %", "without %", "difference, points", "tasks differ", "control", "McNemar's p"],
        [
            [row["arm"], row["tasks"], 100 * row["browser"], 100 * row["recorded"], points(row["mean"]), row["differ"],
             row["control"], row["p_mcnemar"][0]]
            for row in rows
        ],
    )  # fmt: skip
    verdicts = [_verdict(row) for row in rows]
    for verdict in verdicts:
        recording.note(verdict)
    recording.write({"study": options.study, "seed": seed, "split": split, "arms": rows, "verdicts": verdicts})


def compared(browser: Outcomes, recorded: Outcomes) -> dict[str, Any]:
    """Return both means over the tasks that both have, their paired difference, and how many tasks differ."""
    tasks = browser.keys() & recorded.keys()
    means = {"browser": fmean(browser[task] for task in tasks), "recorded": fmean(recorded[task] for task in tasks)}
    paired = difference({0: {"": browser}}, {0: {"": recorded}}, "")
    return {"tasks": len(tasks), **means, **paired, "differ": _differ(browser, recorded)}


def _differ(browser: Outcomes, recorded: Outcomes) -> int:
    return sum(browser[task] != recorded[task] for task in browser.keys() & recorded.keys())


def _last(by_phase: ByPhase, split: str) -> Outcomes:
    """Return what was recorded after the last phase."""
    return by_phase[max(by_phase)][split]


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


def _verdict(row: Mapping[str, Any]) -> str:
    alike = row["mean"]["low"] >= -WITHIN and row["mean"]["high"] <= WITHIN
    figures = f"{points(row['mean'])}, {row['differ']} of {row['tasks']} tasks differ (control {row['control']})"
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
