"""Advantages relative to a group: several episodes of one task, sampled side by side.

Owns the group-relative advantage of GRPO with outcome supervision (DeepSeekMath, arXiv 2402.03300, section 4.1.2).
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from learner.advantages import Advantages, Array
from learner.phase_batch import PhaseBatch
from learner.settings import LearnerSettings


def group_relative_advantages(batch: PhaseBatch, rewards: Sequence[Array], settings: LearnerSettings) -> Advantages:
    """Return (r - mean) / std of each trajectory's summed reward r within its group, for each of its steps.

    The standard deviation is the population's; where all of a group earned the same, or it has one member, it is 0
    and so is the advantage.

    Raises:
        ValueError: a trajectory without a group.
    """
    nameless = [trajectory.episode_id for trajectory in batch.trajectories if not trajectory.group]
    if nameless:
        raise ValueError(f"episode {nameless[0]}: expected a group, found none; only rollouts are sampled in groups")
    groups = np.asarray([trajectory.group for trajectory in batch.trajectories], dtype=np.str_)
    earned = np.asarray([reward.sum() for reward in rewards], dtype=np.float64)
    relative = np.zeros_like(earned)
    for group in np.unique(groups):
        mine = groups == group
        spread = earned[mine].std()
        if spread > 0:
            relative[mine] = (earned[mine] - earned[mine].mean()) / spread
    return Advantages(batch.steps(relative))
