"""Progress labels: the worked example of docs/algorithms.md, and properties that hold for any episode."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import failure_codes as codes
from records.episodes import Source, Step, Termination, Trajectory
from records.failures import Failure
from replay.progress import milestones_reached, progress_curve, trajectory_progress


def milestones(steps: int, first_done: list[int]) -> np.ndarray:
    """(steps, K) matrix in which milestone k is done from step ``first_done[k]`` on."""
    return np.arange(steps)[:, None] >= np.array(first_done)[None]


def trajectory(rows: list[tuple[bool, ...]], final: tuple[bool, ...], outcome: float | None) -> Trajectory:
    empty = np.empty(0, np.int32)
    steps = tuple(
        Step(i, "__SHOP__/", "", empty, empty, np.empty(0, np.float32), 0, 1.0, "", milestones=row)
        for i, row in enumerate(rows)
    )
    failure = None if outcome is not None else Failure(codes.BROWSER_CRASHED)
    return Trajectory(
        "e", "t", "shop.buy", "shop", "train", "Buy it", Source.ROLLOUT, 0, 0, steps, Termination.EXIT, "",
        outcome, failure, final,
    )  # fmt: skip


def test_worked_example():
    curve = progress_curve(milestones(9, [2, 4, 6]), 3)
    assert curve[[1, 3, 7, 9]] == pytest.approx([1 / 6, 1 / 2, 0.4 * 2 / 3 + 0.6, 1.0])
    assert curve == pytest.approx([0, 1 / 6, 1 / 3, 1 / 2, 2 / 3, 11 / 15, 12 / 15, 13 / 15, 14 / 15, 1])


def test_two_milestones_in_one_step_take_the_upper_end():
    # t_1 = t_2 = 2 of K = 4, T = 4, nothing else: from 0 to 1/4 before, then 2/4 at once, then up to 1.
    assert progress_curve(milestones(4, [2, 2, 9, 9]), 4) == pytest.approx([0, 0.125, 0.5, 0.75, 1])


def test_a_milestone_that_is_true_at_the_start_starts_the_curve_there():
    assert progress_curve(milestones(2, [0, 9]), 2) == pytest.approx([0.5, 0.75, 1])


def test_no_milestone_at_all_is_a_straight_line():
    assert progress_curve(milestones(4, [9, 9]), 2) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_all_milestones_with_the_last_action_anchor_to_the_end():
    # The final state alone has both: t_1 = T = 3, so the first segment runs to the end and ends at 1.
    curve = progress_curve(milestones(3, [9, 9]), 2, final_milestones=(True, True))
    assert curve == pytest.approx([0, 1 / 6, 1 / 3, 1])


def test_a_milestone_that_comes_undone_stays_done():
    flickering = np.array([[0, 0], [1, 0], [0, 0], [0, 0]], dtype=bool)
    held = np.array([[0, 0], [1, 0], [1, 0], [1, 0]], dtype=bool)
    assert progress_curve(flickering, 2) == pytest.approx(progress_curve(held, 2))


@given(
    st.integers(1, 6).flatmap(
        lambda k: st.tuples(
            st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=30),
            st.none() | st.lists(st.booleans(), min_size=k, max_size=k),
        )
    )
)
def test_labels_are_monotone_bounded_and_end_at_one(case):
    rows, final = case
    k = len(rows[0])
    with np.errstate(all="raise"):
        curve = progress_curve(rows, k, final)
    assert curve.shape == (len(rows) + 1,)
    assert np.all(np.isfinite(curve))
    assert np.all(np.diff(curve) >= -1e-12)
    assert curve[0] >= 0
    assert curve[-1] == 1.0
    counts = np.logical_or.accumulate(np.array(rows, dtype=bool)).sum(axis=1)
    # Before the last milestone, a state with j milestones done lies between j/K and (j + 1)/K.
    early = counts < k
    assert np.all(curve[:-1][early] >= counts[early] / k - 1e-12)


@pytest.mark.parametrize(
    ("rows", "k", "final"),
    [([], 2, None), ([[True]], 2, None), ([[]], 0, None), ([[True, False]], 2, [True])],
)
def test_malformed_milestones_are_refused(rows, k, final):
    with pytest.raises(ValueError, match="progress labels: expected"):
        progress_curve(rows, k, final)


def test_a_trajectory_is_labelled_from_its_own_milestones():
    labels = trajectory_progress(trajectory([(False, False), (True, False)], (True, True), 1.0))
    assert labels == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize(
    ("rows", "final", "share"),
    [
        ([(False, False), (True, False)], (True, True), 1.0),
        ([(True, False), (False, False)], (False, False), 0.5),
        ([(False, True), (False, True)], (), 0.5),
        ([()], (), None),
    ],
)
def test_a_reached_milestone_counts_though_it_comes_undone(rows, final, share):
    assert milestones_reached(trajectory(rows, final, 0.0)) == share


@pytest.mark.parametrize("outcome", [0.0, None])
def test_only_successes_have_progress(outcome):
    with pytest.raises(ValueError, match="need a success"):
        trajectory_progress(trajectory([(False,)], (True,), outcome))
