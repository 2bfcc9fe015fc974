"""Steps are right where they lead to a milestone; what comes after the last one, and long ways round, are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judges.kinds import Judges
from judges.of_milestones.steps import steps_to_milestones
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.labels import LabelSubject
from tests.judges.of_milestones.test_recorded import episode, step

TASK = Task("t", ("shop",), "Buy it", "__SHOP__/", {}, "t")


def played(reached: list[int], *, outcome: float = 0.0, horizon: int = 0) -> Trajectory:
    """An episode with so many of two milestones reached before each of its steps, and after the last."""
    rows = [tuple(number < count for number in range(2)) for count in reached]
    steps = [replace(step(""), milestones=row) for row in rows[:-1]]
    return replace(episode(*steps), outcome=outcome, horizon=horizon, final_milestones=rows[-1])


@pytest.mark.parametrize(
    ("reached", "outcome", "horizon", "within", "right"),
    [
        # Nothing reached, nothing right.
        ([0, 0, 0, 0], 0.0, 4, 0, [0, 0, 0]),
        # The expert needs two steps for each of two: the first of three steps to a milestone was a detour.
        ([0, 0, 0, 1, 1, 1], 0.0, 4, 0, [0, 1, 1, 0, 0]),
        # Unknown horizon: all since the milestone before.
        ([0, 0, 0, 1, 1, 1], 0.0, 0, 0, [1, 1, 1, 0, 0]),
        ([0, 0, 0, 1, 1, 1], 0.0, 4, 1, [0, 0, 1, 0, 0]),
        # What led to the first milestone is not counted for the second.
        ([0, 1, 2, 2], 0.0, 6, 0, [1, 1, 0]),
        # A milestone that a page no longer shows was reached all the same.
        ([0, 1, 0, 1, 2], 0.0, 0, 0, [1, 1, 1, 1]),
        # The exit of a success is right.
        ([0, 0, 1, 2, 2], 1.0, 2, 0, [0, 1, 1, 1]),
        # Both at once.
        ([0, 0, 2, 2], 0.0, 4, 0, [1, 1, 0]),
    ],
)
def test_steps_up_to_a_milestone_are_right(reached, outcome, horizon, within, right):
    found = steps_to_milestones(played(reached, outcome=outcome, horizon=horizon), within)
    assert found.tolist() == right


async def test_the_judge_labels_steps_and_asks_nobody():
    seen = played([0, 1, 1], horizon=2)
    judge = Judges({"milestone_steps": {"within": 3}}).of_episodes("milestone_steps")
    label = await judge.label(seen, TASK, Deadline(1.0))
    assert (label.subject, label.judge, label.values.tolist()) == (LabelSubject.STEPS, "milestone_steps", [1.0, 0.0])
    assert label.cost_usd == 0
    other = await Judges().of_episodes("milestone_steps").label(seen, TASK, Deadline(1.0))
    assert other.prompt != label.prompt
    with pytest.raises(ValueError, match=r"judges.milestone_steps"):
        Judges({"milestone_steps": {"within": -1}}).of_episodes("milestone_steps")
