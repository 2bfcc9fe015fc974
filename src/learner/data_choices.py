"""Which steps of a phase's batch the actor learns from.

Owns ``MASKS``: one pure function for each name in ``algorithms.DATA``, from a batch to a mask over its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from learner.phase_batch import Mask, PhaseBatch
from learner.settings import LearnerSettings
from records.episodes import Trajectory

DataMask = Callable[[PhaseBatch, LearnerSettings], Mask]


def no_step(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) False: the algorithm ends with cloning."""
    return np.zeros_like(batch.released)


def every_step(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) whether the replay filter released the step; those of rollouts it always does."""
    return batch.released


def steps_of_rollouts(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) whether the step was played in this phase."""
    return batch.steps(batch.is_fresh)


def steps_of_successes(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) whether the step was released and its trajectory solved its task."""
    return batch.released & batch.steps(batch.succeeded)


def steps_of_successful_rollouts(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) whether the step was played in this phase by a trajectory that solved its task."""
    return batch.steps(batch.is_fresh & batch.succeeded)


def steps_by_instruction(batch: PhaseBatch, settings: LearnerSettings) -> Mask:
    """Return (N,) whether the step was released and its trajectory passes DigiRL's instruction-level filter."""
    starts = np.asarray([values[0] for values in batch.answers["value"]])
    best = best_against_start(batch.trajectories, starts, settings.instruction_filter.keep)
    return batch.released & batch.steps(best)


def best_against_start(
    trajectories: Sequence[Trajectory], start_values: npt.NDArray[np.floating], share: float
) -> Mask:
    """Return (K,) whether a trajectory is among the ``share`` with the largest outcome - V(s_0).

    The instruction-level filter of DigiRL; the value of the first state, which shows the instruction and the
    first page, stands for the value of the instruction. Ties go to the earlier one.
    """
    margin = np.asarray([t.outcome or 0.0 for t in trajectories]) - np.asarray(start_values, dtype=np.float64)
    kept = np.zeros(len(trajectories), dtype=np.bool_)
    kept[np.argsort(-margin, kind="stable")[: int(np.ceil(share * len(trajectories)))]] = True
    return kept


MASKS: dict[str, DataMask] = {
    "demonstrations": no_step,
    "successful_rollouts": steps_of_successful_rollouts,
    "successful_rollouts_and_replay": steps_of_successes,
    "rollouts": steps_of_rollouts,
    "rollouts_and_replay": every_step,
    "rollouts_and_replay_by_instruction": steps_by_instruction,
    "rollouts_and_filtered_replay": every_step,
}
"""Choices of data by name."""
