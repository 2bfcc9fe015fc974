"""Advantages relative to a group: several episodes of one task, sampled side by side.

Owns the group-relative advantages of trajectories (GRPO with outcome supervision, arXiv 2402.03300, section 4.1.2;
M-GRPO of WebAgent-R1) and of steps (ADMIRE eq. 13, and with the leave-one-out baseline of RLOO), and which groups say
nothing. Pure. Invariant: a group that earned the same throughout has advantages of exactly 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from learner.advantages import Advantages
from learner.arrays import Array, joined
from learner.metrics import GroupCounts
from learner.phase_batch import Mask, PhaseBatch
from learner.settings import LearnerSettings

_SAME = 1e-9
"""Rewards closer than this are the same: sums of equal terms differ in their last bits."""


def group_relative_advantages(batch: PhaseBatch, rewards: Sequence[Array], settings: LearnerSettings) -> Advantages:
    """Return (r - mean) / std of each trajectory's summed reward r within its group, for each of its steps.

    The standard deviation is the population's; where all of a group earned the same, or it has one member, the
    advantage is 0.

    Raises:
        ValueError: a trajectory without a group.
    """
    earned = np.asarray([reward.sum() for reward in rewards], dtype=np.float64)
    relative = np.zeros_like(earned)
    for mine in _groups(batch):
        if np.ptp(earned[mine]) > _SAME:
            relative[mine] = (earned[mine] - earned[mine].mean()) / earned[mine].std()
    return Advantages(batch.steps(relative))


def group_step_advantages(batch: PhaseBatch, rewards: Sequence[Array], settings: LearnerSettings) -> Advantages:
    """Return (R - mean) / std of each step's reward R over all steps of its group (ADMIRE eq. 13).

    Otherwise as ``group_relative_advantages``.
    """
    every = joined(rewards)
    relative = np.zeros_like(every)
    for group in _groups(batch):
        mine = batch.steps(group)
        if group.sum() > 1 and np.ptp(every[mine]) > _SAME:
            relative[mine] = (every[mine] - every[mine].mean()) / every[mine].std()
    return Advantages(relative)


def group_left_out_advantages(batch: PhaseBatch, rewards: Sequence[Array], settings: LearnerSettings) -> Advantages:
    """Return each step's reward less the mean over all steps of its group's *other* trajectories.

    The baseline is RLOO's (arXiv 2402.14740) for steps: it does not depend on what the trajectory itself did. A
    group of one has advantage 0. Otherwise as ``group_relative_advantages``.
    """
    every = joined(rewards)
    sums = np.asarray([reward.sum() for reward in rewards], dtype=np.float64)
    counts = np.asarray([len(reward) for reward in rewards], dtype=np.float64)
    relative = np.zeros_like(every)
    for group in _groups(batch):
        mine = batch.steps(group)
        if group.sum() > 1 and np.ptp(every[mine]) > _SAME:
            others = (sums[group].sum() - sums) / np.where(group, counts[group].sum() - counts, 1.0)
            relative[mine] = every[mine] - batch.steps(others)[mine]
    return Advantages(relative)


def silent_steps(batch: PhaseBatch, advantages: Advantages) -> tuple[Mask, GroupCounts]:
    """Return which steps (N,) are of groups that carry no signal, and how many groups there are of each kind."""
    silent = np.zeros(len(advantages.steps), dtype=np.bool_)
    groups = _groups(batch)
    equal = single = 0
    for group in groups:
        mine = batch.steps(group)
        if not advantages.steps[mine].any():
            silent |= mine
            equal += 1
            single += int(group.sum() == 1)
    return silent, GroupCounts(len(groups), equal, single, int(silent.sum()))


def _groups(batch: PhaseBatch) -> list[Mask]:
    """Return which trajectories (K,) each group has, by the groups' names."""
    return list(_named_groups(batch))


def _named_groups(batch: PhaseBatch) -> Iterator[Mask]:
    nameless = [trajectory.episode_id for trajectory in batch.trajectories if not trajectory.group]
    if nameless:
        raise ValueError(f"episode {nameless[0]}: expected a group, found none; only rollouts are sampled in groups")
    groups = np.asarray([trajectory.group for trajectory in batch.trajectories], dtype=np.str_)
    for group in np.unique(groups):
        yield groups == group
