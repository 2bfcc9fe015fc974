"""Which records a phase learns from, as flat lists of samples.

Owns selection: what has no verdict never enters, and what is left out is counted. Pure; records in, samples
and targets out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from learner.advantages import Array
from learner.batching import Sample
from learner.potentials import milestone_share
from learner.settings import PotentialDataSettings
from records.cycles import bare_action
from records.episodes import IntArray, Trajectory
from replay.progress import reached_after, trajectory_progress

_Number = TypeVar("_Number", bound=np.generic)
_NO_TOKENS: IntArray = np.zeros(0, dtype=np.int32)


def with_verdict(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories that have a verdict and at least one step."""
    return [trajectory for trajectory in trajectories if trajectory.outcome is not None and trajectory.steps]


def decisions(trajectories: Sequence[Trajectory]) -> list[Sample]:
    """Return every step as prompt and action, in order; greedy steps are recorded under temperature 1."""
    return [
        Sample(step.prompt_ids, step.action_ids, step.temperature or 1.0)
        for trajectory in trajectories
        for step in trajectory.steps
    ]


def state(prompt_ids: IntArray) -> Sample:
    """Return a prompt (P,) as a critic's state."""
    return Sample(prompt_ids, _NO_TOKENS)


def states(trajectories: Sequence[Trajectory], *, final: bool = False) -> list[Sample]:
    """Return every step's prompt alone, in order, for a critic.

    With ``final``, here and below, the state after a trajectory's last action follows, where it is recorded.
    """
    samples = []
    for trajectory in trajectories:
        samples += [state(step.prompt_ids) for step in trajectory.steps]
        if final and trajectory.final_state is not None:
            samples.append(state(trajectory.final_state.prompt_ids))
    return samples


def state_count(trajectory: Trajectory, *, final: bool = False) -> int:
    """Return how many states a trajectory has: T, or T + 1."""
    return len(trajectory.steps) + (final and trajectory.final_state is not None)


def of_recorded_states(numbers: Callable[[Trajectory], Array], trajectory: Trajectory) -> Array:
    """Return what ``numbers`` says of the T + 1 states of a trajectory, without the last where that is not recorded."""
    return numbers(trajectory)[: state_count(trajectory, final=True)]


def episode_numbers(trajectories: Sequence[Trajectory], *, final: bool = False) -> npt.NDArray[np.int64]:
    """Return for every state (N,) the number of its trajectory."""
    lengths = np.asarray([state_count(trajectory, final=final) for trajectory in trajectories], dtype=np.int64)
    return np.repeat(np.arange(len(trajectories)), lengths)


def per_trajectory(
    flat: npt.NDArray[_Number], trajectories: Sequence[Trajectory], *, final: bool = False
) -> list[npt.NDArray[_Number]]:
    """Split one number per state (N,) into one array per trajectory."""
    ends = np.cumsum([state_count(trajectory, final=final) for trajectory in trajectories])
    return np.split(flat, ends[:-1]) if len(ends) else []


def outcome_targets(trajectories: Sequence[Trajectory], gamma: float = 1.0) -> npt.NDArray[np.float32]:
    """Return each state's target of the value critic (N,): its trajectory's outcome (MiRA eq. 4).

    With ``gamma`` below 1 the target is the discounted return of the outcome, gamma^(T - 1 - t) * r.
    """
    targets = [
        float(trajectory.outcome or 0.0) * gamma ** (len(trajectory.steps) - 1 - t)
        for trajectory in trajectories
        for t in range(len(trajectory.steps))
    ]
    return np.asarray(targets, dtype=np.float32)


def teaches_progress(trajectory: Trajectory, settings: PotentialDataSettings) -> bool:
    """Whether the potential critic learns from this trajectory: a short one without long repetition (MiRA, A.7).

    It is a success, unless all episodes have labels.
    """
    if settings.labels == "successes" and not trajectory.success:
        return False
    limit: float = settings.max_steps
    if settings.max_horizons and trajectory.horizon:
        limit = settings.max_horizons * trajectory.horizon
    if len(trajectory.steps) >= limit or not (trajectory.final_milestones or trajectory.steps[0].milestones):
        return False
    runs = (len(list(run)) for _, run in groupby(bare_action(step.action_text) for step in trajectory.steps))
    return max(runs) <= settings.max_identical_actions


def progress_targets(trajectories: Sequence[Trajectory], labels: str = "successes") -> npt.NDArray[np.float32]:
    """Return each state's progress label, that of a recorded final state too.

    It is MiRA eq. 2 for successes, or the share of milestones done for ``all``.
    """
    if not trajectories:
        return np.zeros(0, dtype=np.float32)
    label = trajectory_progress if labels == "successes" else milestone_labels
    return np.concatenate([of_recorded_states(label, trajectory) for trajectory in trajectories]).astype(np.float32)


def milestone_labels(trajectory: Trajectory) -> npt.NDArray[np.float64]:
    """Return c_t / K (T + 1,), flat between milestones; in a failure at most (K - 1) / K: something is missing yet."""
    count = max(reached_after(trajectory).shape[1], 1)
    most = 1.0 if trajectory.success else (count - 1) / count
    return np.asarray(np.minimum(milestone_share(trajectory), most), dtype=np.float64)
