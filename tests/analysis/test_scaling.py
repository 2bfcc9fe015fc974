"""What the benchmark of test-time scaling reads from one long evaluation, worked by hand."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scaling import SPLIT, at_share, gain_and_control
from sites.tasks import most_steps
from tests.analysis.played import EXIT, click, route

LOOK = click(1, "Help")
LIMIT = most_steps(4)
HALF, WHOLE = (True, False), (True, True)
PLAYED = [
    replace(played, horizon=4, task_id=played.episode_id)
    for played in (
        route(*[LOOK] * (LIMIT - 1), EXIT, outcome=1.0, name="at the limit"),
        route(*[LOOK] * LIMIT, EXIT, outcome=1.0, name="after it"),
        route(*[LOOK] * 2 * LIMIT, outcome=0.0, name="never"),
        route(EXIT, outcome=1.0, name="at once"),
        route(*[LOOK] * LIMIT, EXIT, outcome=1.0, name="all held", milestones=[HALF] * LIMIT + [WHOLE]),
        route(*[LOOK] * LIMIT, LOOK, outcome=1.0, name="one was missing", milestones=[HALF] * (LIMIT + 1)),
        route(*[LOOK] * LIMIT, EXIT, outcome=0.0, name="held, and spoilt", milestones=[WHOLE] * (LIMIT + 1)),
    )
]
ALL = {7: PLAYED}


def solved(share: float) -> set[str]:
    return {task for task, outcome in at_share(ALL, share)[7][SPLIT].items() if outcome}


def test_an_episode_is_solved_from_the_share_of_its_tasks_limit_that_it_needs() -> None:
    assert solved(0.25) == {"at once"}
    assert solved((LIMIT - 0.1) / LIMIT) == {"at once"}, "a part of an action is none"
    assert solved(1.0) == {"at once", "at the limit", "all held"}
    assert solved((LIMIT + 0.9) / LIMIT) == {"at once", "at the limit", "all held"}, "a part of an action is none"
    assert solved(2.0) == {"at once", "at the limit", "after it", "all held", "one was missing"}
    lost = [replace(PLAYED[0], outcome=None)]
    assert at_share({7: lost}, 1.0) == {7: {SPLIT: {}}}, "no verdict, no failure"


def test_the_gain_is_paired_and_what_was_recorded_is_held_against_it() -> None:
    curve = {share: at_share(ALL, share) for share in (1.0, 2.0)}
    recorded = {7: {"at the limit": 1.0, "after it": 0.0, "never": 0.0, "at once": 0.0, "of another split": 1.0}}
    row = gain_and_control(curve, 2, recorded)
    assert row["gain"]["mean"]["value"] == 2 / 7
    assert (row["compared"], row["differ"]) == (4, 1)
    assert gain_and_control(curve, 2, {})["compared"] == 0
