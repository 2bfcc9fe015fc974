"""Does a trained policy solve more where it may act longer (WebAgent-R1, test-time scaling)? The policies of a study.

Each seed's start and the last policy of each arm play the study's first split again, greedily and without a browser,
with ``--factor`` times the actions that a task allows. One evaluation gives the whole curve: no prompt tells the limit,
so that an episode acts under a lower one as it did, up to there. The control holds that against what the study recorded
at the tasks' own limit, task by task: none may differ. Finished evaluations are kept in OUT/scaling.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.comparison import Outcomes, Seeds, difference, level
from analysis.routes import Route
from benchmarks.recording import RESULTS, Recording, met, option_parser, percent, points
from benchmarks.runs import FOLDER, evaluate
from benchmarks.study import STUDIES
from cluster.failure_analysis import episodes_of, routes_of
from cluster.study import run_study
from cluster.study_design import StudyFile, read_study
from cluster.study_records import RunRecord
from sites.tasks import most_steps

NAME = "scaling"
START = "start"
SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Points of the curve: how many actions an episode may take, as a share of its task's limit."""
SHOWN = "all"


def main() -> None:
    """Play what was not played yet, read the curves, write."""
    options = _options()
    recording = Recording(NAME, options.results)
    study = read_study(STUDIES / f"{options.study}.yaml")
    arms = options.arms or [name for name, arm in study.design.arms.items() if arm.seeds is None]
    records = run_study(
        study, options.out / options.study, options.records / options.study, 1, recording.note, only_read=True
    ).arms
    played = {name: _arm(study, name, arms, records, options) for name in (START, *arms)}
    shares = [share for share in SHARES if share <= options.factor]
    curves = {name: {share: at_share(routes, share) for share in shares} for name, routes in played.items()}
    recording.table(
        f"{options.study}, {study.design.splits[0]}: success in percent by actions allowed, as a share of the limit",
        ["policy", "seeds", *(f"x {share:g}" for share in shares)],
        [
            [name, len(played[name]), *(percent(_mean(curve[share])) for share in shares)]
            for name, curve in curves.items()
        ],
    )
    rows = [
        gain_and_control(name, curves[name], options.factor, _recorded(name, arms, records, study)) for name in curves
    ]
    verdicts = [line for row in rows for line in _verdicts(row, options.factor)]
    for verdict in verdicts:
        recording.note(verdict)
    recording.write(
        {
            "study": options.study,
            "split": study.design.splits[0],
            "factor": options.factor,
            "policies": {
                row["policy"]: {
                    **row,
                    "curve": {str(share): level(found, SHOWN) for share, found in curves[row["policy"]].items()},
                }
                for row in rows
            },
            "verdicts": verdicts,
        }
    )


def at_share(routes: Mapping[int, Sequence[Route]], share: float) -> Seeds:
    """Return outcomes by seed and task, had each episode been allowed ``share`` times the actions of its task's limit.

    As a run allows them: a part of an action is none.
    """
    return {
        seed: {SHOWN: {route.task_id: float(_within(route, share)) for route in of_seed if route.outcome is not None}}
        for seed, of_seed in routes.items()
    }


def _within(route: Route, share: float) -> bool:
    return route.success and len(route.moves) <= int(share * most_steps(route.horizon))


def _arm(
    study: StudyFile, name: str, arms: Sequence[str], records: Mapping[str, Mapping[int, RunRecord]],
    options: argparse.Namespace,
) -> dict[int, list[Route]]:  # fmt: skip
    """Return the routes of a policy's evaluations by seed; those of seeds that no folder is left of are not there."""
    found = {}
    settings_of = arms[0] if name == START else name
    for seed in sorted(records.get(settings_of, {})):
        run = f"start/seed-{seed}" if name == START else f"arms/{name}/seed-{seed}"
        policy = options.out / options.study / run / "trained"
        folder = options.out / options.study / NAME / f"{run}-x{options.factor}"
        if not policy.is_dir() and not folder.is_dir():
            continue
        split = study.design.splits[0]
        settings = study.settings_of(settings_of, seed, {}, [split])
        evaluate(study.recipe, policy.resolve(), split, folder, settings, options.factor)
        found[seed] = list(routes_of(episodes_of(folder)))
    if not found:
        sys.exit(f"expected policies of {name}, found none in {options.out / options.study}; run the study first")
    return found


def _recorded(
    name: str, arms: Sequence[str], records: Mapping[str, Mapping[int, RunRecord]], study: StudyFile
) -> Mapping[int, Outcomes]:
    """Return what the study recorded of a policy by seed; before RL only one arm of a seed was evaluated."""
    split, found = study.design.splits[0], dict[int, Outcomes]()
    for arm in study.design.arms if name == START else [name]:
        for seed, record in records.get(arm, {}).items():
            phase = 0 if name == START else record.phases
            if known := record.outcomes_of(phase, split):
                found.setdefault(seed, known)
    return found


def gain_and_control(
    name: str, curve: Mapping[float, Seeds], factor: int, recorded: Mapping[int, Outcomes]
) -> dict[str, Any]:
    """Return what more actions bring, paired by task, and how many outcomes at the limit are not as ``recorded``."""
    own = curve[1.0]
    pairs = [
        (own[seed][SHOWN][task], outcome)
        for seed in own.keys() & recorded.keys()
        for task, outcome in recorded[seed].items()
        if task in own[seed][SHOWN]
    ]
    return {
        "policy": name,
        "gain": difference(curve[float(factor)], own, SHOWN),
        "compared": len(pairs),
        "differ": sum(a != b for a, b in pairs),
    }


def _verdicts(row: Mapping[str, Any], factor: int) -> list[str]:
    gain = row["gain"]["mean"]
    said = [
        f"{row['policy']} solves more with {factor} times the actions: {points(gain)}; target an interval above 0: "
        f"{met(gain['low'] > 0)}"
    ]
    if row["compared"]:
        said.append(
            f"{row['policy']} does up to its tasks' limit what the study recorded: {row['differ']} of "
            f"{row['compared']} episodes differ; target none: {met(row['differ'] == 0)}"
        )
    return said


def _mean(found: Seeds) -> float:
    return float(level(found, SHOWN)["mean"]["value"])


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--study", default="webagent_r1", help="the study: NAME of studies/NAME.yaml")
    parser.add_argument("--out", type=Path, default=FOLDER / "studies", help="folder of the study's runs")
    parser.add_argument("--records", type=Path, default=RESULTS / "studies", help="folder of the runs' records")
    parser.add_argument("--arms", nargs="*", help="arms; those that run on all of the study's seeds if left out")
    parser.add_argument("--factor", type=int, choices=(2, 3), default=2, help="times the actions that a task allows")
    return parser.parse_args()


if __name__ == "__main__":
    main()
