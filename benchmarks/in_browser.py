"""Do the policies that a study trained without a browser do the same in Chromium? The last policy of each main arm.

Each plays the study's first split again, greedily, in real Chromium, on the same tasks, and is held against what the
study recorded of it: success, share of milestones, and the tasks whose outcome differs. The control holds each policy
against the record of the arm that plays most differently from it, which must differ more. Finished evaluations are kept
in OUT/browser, so that a stopped benchmark goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from analysis.comparison import Outcomes, difference
from benchmarks.recording import Recording, met, points, shown
from benchmarks.runs import train
from benchmarks.study_policies import StudyPolicies, study_options
from cluster.recipe.override import override
from cluster.recorded_run import RecordedRun
from cluster.studies.records import ByPhase

NAME = "in_browser"
WITHIN = 0.04
"""Difference of success that counts as none, as in the studies' predictions."""


def main() -> None:
    """Play what was not played yet, compare, write."""
    parser = study_options(NAME, __doc__ or "", "chains")
    parser.add_argument("--seed", type=int, default=0, help="seed of the runs whose policies play")
    parser.add_argument("--contexts", type=int, default=4, help="browser slots")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    policies, seed = StudyPolicies.of(options, recording.note), options.seed
    split = policies.study.design.splits[0]
    known = {arm: of_seed[seed] for arm, of_seed in policies.runs.arms.items() if seed in of_seed}
    wanted = options.arms or policies.arms
    if missing := [name for name in wanted if name not in known or not policies.trained(name, seed).is_dir()]:
        sys.exit(
            f"expected records and policies of seed {seed}, found none of {', '.join(missing)}; run the study first"
        )
    rows = []
    for name in wanted:
        run = _played(policies, name, seed, split, options.contexts)
        played, solved = run.outcomes(0, split), {arm: _last(one.outcomes, split) for arm, one in known.items()}
        rows.append(
            {
                "arm": name,
                **compared(played, solved[name]),
                "milestones": compared(run.milestones(0)[split], _last(known[name].milestones, split)),
                "control": max((_differ(played, solved[other]) for other in known if other != name), default=None),
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


def _played(policies: StudyPolicies, arm: str, seed: int, split: str, contexts: int) -> RecordedRun:
    said = [
        *policies.study.settings_of(arm, seed, {}, [split]),
        "run.phases=0", "run.environment=embedded", "learner.algorithm=sft", "run.evaluation.before_rl=true",
        "replay.step_rewards=''",  # nothing is learned, and sft pays no step
        override("warm_start.checkpoint", str(policies.trained(arm, seed).resolve())),
        f"rollout.contexts_per_worker={contexts}",
    ]  # fmt: skip
    return train(policies.study.recipe, policies.out / "browser" / arm / f"seed-{seed}", said)


def _verdict(row: Mapping[str, Any]) -> str:
    alike = row["mean"]["low"] >= -WITHIN and row["mean"]["high"] <= WITHIN
    figures = f"{points(row['mean'])}, {row['differ']} of {row['tasks']} tasks differ (control {shown(row['control'])})"
    return f"{row['arm']} solves as much in Chromium as without a browser: {figures}: {met(alike)}"


if __name__ == "__main__":
    main()
