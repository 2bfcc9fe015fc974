"""Dense progress labels from milestones: how far along was each state of a successful episode?

Owns the label of MiRA's potential critic (MiRA eq. 2). Pure functions of milestone vectors. Labels lie in [0, 1], never
fall, and no segment of length zero is ever divided by.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from records.episodes import Trajectory

BoolMatrix = npt.NDArray[np.bool_]


def reached_after(trajectory: Trajectory) -> BoolMatrix:
    """Return (T + 1, K): which milestones were reached before each action, and after the last; none is lost again."""
    rows = [step.milestones for step in trajectory.steps]
    rows.append(trajectory.final_milestones or rows[-1])
    return np.logical_or.accumulate(np.asarray(rows, dtype=np.bool_).reshape(len(rows), -1), axis=0)


def milestones_reached(trajectory: Trajectory) -> float | None:
    """Return the share of its milestones that an episode reached, in [0, 1], None for a task without milestones."""
    reached = reached_after(trajectory)[-1]
    return float(reached.mean()) if reached.size else None


def hit_in_order(reached: BoolMatrix) -> npt.NDArray[np.int64]:
    """Return (T + 1,) how many milestones were hit, by ADMIRE's pointer (section 3.2.1): only the next one counts.

    ``reached`` is (T + 1, K), as of ``reached_after``. What is reached before its turn is no hit, then or later; what
    the first state has already is passed over when its turn comes.
    """
    count = reached.shape[1]
    pointer = int(np.logical_and.accumulate(reached[0]).sum())
    hit = np.full(len(reached), pointer, dtype=np.int64)
    for t in range(1, len(reached)):
        while pointer < count and reached[t, pointer] and (reached[0, pointer] or not reached[t - 1, pointer]):
            pointer += 1
        hit[t] = pointer
    return hit


def progress_curve(
    milestones: BoolMatrix | Sequence[Sequence[bool]],
    milestone_count: int,
    final_milestones: Sequence[bool] | None = None,
) -> npt.NDArray[np.float64]:
    """Return p* (T + 1,), the last value being the state after the last action, which is always 1.

    The key step t_j is the first state in which at least j milestones are done, t_0 = 0. With
    m = min(milestones done at the end, K - 1), p* runs linearly from j/K at t_j to (j + 1)/K at t_{j+1} for
    j < m, and from m/K at t_m to 1 at the end T. Where key steps coincide the highest one holds.

    Args:
        milestones: (T, K), whether each milestone was done in the state before each action.
        milestone_count: K.
        final_milestones: (K,), the same for the state after the last action; None means as before it.

    Raises:
        ValueError: for T = 0, K = 0, or a matrix of another width.
    """
    done = _done_matrix(milestones, milestone_count, final_milestones)
    counts = np.logical_or.accumulate(done, axis=0).sum(axis=1)
    end = len(counts) - 1
    reached = min(int(counts[-1]), milestone_count - 1)
    # counts never fall, so the first state with at least j done is found by bisection.
    key_steps = np.searchsorted(counts, np.arange(reached + 1), side="left")
    states = np.arange(end + 1)
    segment = np.searchsorted(key_steps, states, side="right") - 1
    starts = key_steps[segment]
    last = segment == reached
    stops = np.where(last, end, key_steps[np.minimum(segment + 1, reached)])
    low = segment / milestone_count
    high = np.where(last, 1.0, (segment + 1) / milestone_count)
    # Only the end of an episode whose m-th milestone came with its last action is a segment of length zero.
    length = stops - starts
    share = np.where(length > 0, (states - starts) / np.maximum(length, 1), 1.0)
    return np.minimum(low + share * (high - low), 1.0)


def trajectory_progress(trajectory: Trajectory) -> npt.NDArray[np.float64]:
    """Return p* (T + 1,) of a successful trajectory; see ``progress_curve``.

    Raises:
        ValueError: where it is not a success: progress of a failure is not defined.
    """
    if not trajectory.success:
        raise ValueError(
            f"episode {trajectory.episode_id}: progress labels need a success, found outcome {trajectory.outcome!r}; "
            "label successes only"
        )
    rows = [step.milestones for step in trajectory.steps]
    final = trajectory.final_milestones
    return progress_curve(rows, len(final) or len(rows[0]), final or None)


def _done_matrix(
    milestones: BoolMatrix | Sequence[Sequence[bool]], milestone_count: int, final: Sequence[bool] | None
) -> BoolMatrix:
    """Return (T + 1, K) with the final state's row, checked."""
    done = np.asarray(milestones, dtype=np.bool_)
    if milestone_count < 1 or done.ndim != 2 or len(done) == 0 or done.shape[1] != milestone_count:
        raise ValueError(
            f"progress labels: expected a (T, K) matrix with T >= 1 and K = {milestone_count} >= 1, found "
            f"{done.shape}; record every step's milestones"
        )
    last = done[-1] if final is None else np.asarray(final, dtype=np.bool_)
    if last.shape != (milestone_count,):
        raise ValueError(f"progress labels: expected {milestone_count} final milestones, found {last.shape}")
    return np.concatenate([done, last[None]])
