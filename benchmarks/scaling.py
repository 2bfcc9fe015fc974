"""Does a trained policy solve more where it may act longer (WebAgent-R1, test-time scaling)? The policies of a study.

Each seed's start and the last policy of each arm play the study's first split again, greedily and without a browser,
with ``--factor`` times the actions that a task allows. One evaluation gives the whole curve: no prompt tells the limit,
so that an episode acts under a lower one as it did, up to there. What is cut off is judged by the state that it leaves,
as in a run: a success whose milestones all hold there has nothing left to do but to say so. The control holds that
against what the study recorded at the tasks' own limit, task by task: none may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.comparison import Outcomes, Seeds, difference, level
from analysis.routes import Route
from benchmarks.recording import Recording, met, percent, points
from benchmarks.study_policies import StudyPolicies, study_options
from cluster.studies.design import START
from sites.tasks import most_steps

NAME = "scaling"
SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Points of the curve: how many actions an episode may take, as a share of its task's limit."""
SPLIT = "played"


def main() -> None:
    """Play what was not played yet, read the curves, write."""
    parser = study_options(NAME, __doc__ or "", "webagent_r1")
    parser.add_argument("--factor", type=int, choices=(2, 3), default=2, help="times the actions that a task allows")
    options = parser.parse_args()
    recording = Recording(NAME, options.results)
    policies = StudyPolicies.of(options, recording.note)
    split = policies.study.design.splits[0]
    played = {name: policies.played(name, split, options.factor) for name in (START, *(options.arms or policies.arms))}
    shares = [share for share in SHARES if share <= options.factor]
    curves = {name: {share: at_share(routes, share) for share in shares} for name, routes in played.items()}
    levels = {name: {share: level(found, SPLIT) for share, found in curve.items()} for name, curve in curves.items()}
    recording.table(
        f"{options.study}, {split}: success in percent by actions allowed, as a share of the limit",
        ["policy", "seeds", *(f"x {share:g}" for share in shares)],
        [
            [name, len(played[name]), *(percent(found["mean"]["value"]) for found in levels[name].values())]
            for name in curves
        ],
    )
    rows = {
        name: gain_and_control(curve, options.factor, policies.recorded(name, split)) for name, curve in curves.items()
    }
    verdicts = [line for name, row in rows.items() for line in _verdicts(name, row, options.factor)]
    told = {
        name: {**row, "curve": {f"{share:g}": at for share, at in levels[name].items()}} for name, row in rows.items()
    }
    recording.write(
        {"study": options.study, "split": split, "factor": options.factor, "policies": told, "verdicts": verdicts}
    )


def at_share(routes: Mapping[int, Sequence[Route]], share: float) -> Seeds:
    """Return outcomes by seed and task, had each episode been allowed ``share`` times the actions of its task's limit.

    As a run allows them: a part of an action is none. Of tasks without milestones what is cut off counts as failed.
    """
    return {
        seed: {SPLIT: {route.task_id: float(_within(route, share)) for route in of_seed if route.outcome is not None}}
        for seed, of_seed in routes.items()
    }


def _within(route: Route, share: float) -> bool:
    allowed = int(share * most_steps(route.horizon))
    if allowed >= len(route.moves):
        return route.success
    held = route.milestones[allowed]
    return route.success and bool(held) and all(held)


def gain_and_control(curve: Mapping[float, Seeds], factor: int, recorded: Mapping[int, Outcomes]) -> dict[str, Any]:
    """Return what more actions bring, paired by task, and how many outcomes at the limit are not as ``recorded``."""
    own = curve[1.0]
    pairs = [
        (own[seed][SPLIT][task], outcome)
        for seed in own.keys() & recorded.keys()
        for task, outcome in recorded[seed].items()
        if task in own[seed][SPLIT]
    ]
    return {
        "gain": difference(curve[float(factor)], own, SPLIT),
        "compared": len(pairs),
        "differ": sum(a != b for a, b in pairs),
    }


def _verdicts(name: str, row: Mapping[str, Any], factor: int) -> list[str]:
    gain = row["gain"]["mean"]
    said = [
        f"{name} solves more with {factor} times the actions: {points(gain)}; target an interval above 0: "
        f"{met(gain['low'] > 0)}"
    ]
    if row["compared"]:
        said.append(
            f"{name} does up to its tasks' limit what the study recorded: {row['differ']} of {row['compared']} "
            f"episodes differ; target none: {met(row['differ'] == 0)}"
        )
    return said


if __name__ == "__main__":
    main()
