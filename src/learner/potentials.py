"""Potentials that are read from what was recorded, and what is known of how far an episode is without any critic.

Owns the share of milestones and the clock. Pure; one number per state before an action, and one for the state after the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from learner.advantages import Array
from records.episodes import Trajectory
from replay.progress import reached_after


def milestone_share(trajectory: Trajectory) -> Array:
    """Return (T + 1,) c_t / K, the share of milestones reached in each state; 0 where there are none."""
    reached = reached_after(trajectory)
    return np.asarray(reached.sum(axis=1) / max(reached.shape[1], 1), dtype=np.float64)


def clock(trajectory: Trajectory) -> Array:
    """Return (T + 1,) t / H, at most 1: H is the expert's number of steps, or the episode's own where none is known."""
    steps = len(trajectory.steps)
    return np.asarray(np.minimum(np.arange(steps + 1) / (trajectory.horizon or steps), 1.0), dtype=np.float64)


RECORDED: dict[str, Callable[[Trajectory], Array]] = {"milestones": milestone_share, "clock": clock}
"""Sources of the potential beside the critic, by name."""


def without_step_means(shaping: Sequence[Array]) -> list[Array]:
    """Return each trajectory's shaping terms (T,) less their mean over all trajectories at the same step number."""
    longest = max((len(terms) for terms in shaping), default=0)
    means = [float(np.mean([terms[t] for terms in shaping if len(terms) > t])) for t in range(longest)]
    return [np.asarray(terms - np.asarray(means[: len(terms)]), dtype=np.float64) for terms in shaping]
