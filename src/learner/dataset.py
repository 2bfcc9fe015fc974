"""Which records a phase learns from, as flat lists of samples.

Owns selection: what has no verdict never enters, and what is left out is counted. Pure; records in, samples
and targets out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from learner.algorithms import DataChoice
from learner.batching import Sample
from learner.settings import PotentialDataSettings
from records.episodes import IntArray, Trajectory
from replay.progress import trajectory_progress

_Number = TypeVar("_Number", bound=np.generic)
_NO_TOKENS: IntArray = np.zeros(0, dtype=np.int32)


def with_verdict(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories that have a verdict and at least one step."""
    return [trajectory for trajectory in trajectories if trajectory.outcome is not None and trajectory.steps]


def not_among(replayed: Sequence[Trajectory], rollouts: Sequence[Trajectory]) -> list[Trajectory]:
    """Return replayed trajectories that are not among the rollouts: their union holds each episode once."""
    fresh = {trajectory.episode_id for trajectory in rollouts}
    return [trajectory for trajectory in replayed if trajectory.episode_id not in fresh]


def decisions(trajectories: Sequence[Trajectory]) -> list[Sample]:
    """Return every step as prompt and action, in order."""
    return [Sample(step.prompt_ids, step.action_ids) for trajectory in trajectories for step in trajectory.steps]


def states(trajectories: Sequence[Trajectory]) -> list[Sample]:
    """Return every step's prompt alone, in order, for a critic."""
    return [Sample(step.prompt_ids, _NO_TOKENS) for trajectory in trajectories for step in trajectory.steps]


def per_trajectory(flat: npt.NDArray[_Number], trajectories: Sequence[Trajectory]) -> list[npt.NDArray[_Number]]:
    """Split one number per step (N,) into one array (T,) per trajectory."""
    ends = np.cumsum([len(trajectory.steps) for trajectory in trajectories])
    return np.split(flat, ends[:-1]) if len(ends) else []


def outcome_targets(trajectories: Sequence[Trajectory], gamma: float = 1.0) -> npt.NDArray[np.float32]:
    """Return each state's target of the value critic (N,): its trajectory's outcome (eq. 4), discounted by ``gamma``.

    With ``gamma`` below 1 the target is the discounted return of the outcome, gamma^(T - 1 - t) * r.
    """
    targets = [
        float(trajectory.outcome or 0.0) * gamma ** (len(trajectory.steps) - 1 - t)
        for trajectory in trajectories
        for t in range(len(trajectory.steps))
    ]
    return np.asarray(targets, dtype=np.float32)


def teaches_progress(trajectory: Trajectory, settings: PotentialDataSettings) -> bool:
    """Whether the potential critic learns from this trajectory: a success, short, and without long repetition."""
    if not trajectory.success or len(trajectory.steps) >= settings.max_steps:
        return False
    if not (trajectory.final_milestones or trajectory.steps[0].milestones):
        return False
    runs = (len(list(run)) for _, run in groupby(step.action_text for step in trajectory.steps))
    return max(runs) <= settings.max_identical_actions


def progress_targets(trajectories: Sequence[Trajectory]) -> npt.NDArray[np.float32]:
    """Return each state's progress label (eq. 2) for successful trajectories."""
    if not trajectories:
        return np.zeros(0, dtype=np.float32)
    return np.concatenate([trajectory_progress(trajectory) for trajectory in trajectories]).astype(np.float32)


def actor_trajectories(
    choice: DataChoice, rollouts: Sequence[Trajectory], replayed: Sequence[Trajectory]
) -> list[Trajectory]:
    """Return what the actor learns from: the chosen rollouts, then the replayed trajectories if they are wanted."""
    kept = [trajectory for trajectory in rollouts if choice.rollouts == "all" or trajectory.success]
    if choice.replay != "none":
        kept += [trajectory for trajectory in replayed if choice.rollouts == "all" or trajectory.success]
    return kept


def best_against_start(
    trajectories: Sequence[Trajectory], start_values: npt.NDArray[np.floating], share: float
) -> npt.NDArray[np.bool_]:
    """Return (N,) whether a trajectory is among the ``share`` with the largest outcome - V(s_0).

    The instruction-level filter of DigiRL; the value of the first state, which shows the instruction and the
    first page, stands for the value of the instruction. Ties go to the earlier one.
    """
    margin = np.asarray([t.outcome or 0.0 for t in trajectories]) - np.asarray(start_values, dtype=np.float64)
    kept = np.zeros(len(trajectories), dtype=np.bool_)
    kept[np.argsort(-margin, kind="stable")[: int(np.ceil(share * len(trajectories)))]] = True
    return kept


def chosen_steps(trajectories: Sequence[Trajectory], steps_of: Mapping[str, Sequence[int]]) -> npt.NDArray[np.bool_]:
    """Return (N,) whether the actor learns from a step; ``steps_of`` restricts some episodes to some step indices."""
    kept: list[bool] = []
    for trajectory in trajectories:
        wanted = steps_of.get(trajectory.episode_id)
        kept.extend(wanted is None or t in wanted for t in range(len(trajectory.steps)))
    return np.asarray(kept, dtype=np.bool_)
