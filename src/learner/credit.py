"""Credit assignment: from a phase's batch to one advantage per decision, or per action token.

Owns shaped rewards (part B of MiRA alg. 1), advantages (line 19 of part C) and ``CREDIT``, the advantages by name as
functions of a batch. Pure; asks no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from learner.advantages import ADVANTAGES, Advantage, Advantages
from learner.algorithms import STEP_TOTALS, Algorithm
from learner.arrays import Array, joined
from learner.dataset import of_recorded_states
from learner.group_relative import group_left_out_advantages, group_relative_advantages, group_step_advantages
from learner.phase_batch import PhaseBatch
from learner.potentials import RECORDED, without_step_means
from learner.rewards import REWARDS
from learner.settings import LearnerSettings

BatchAdvantage = Callable[[PhaseBatch, Sequence[Array], LearnerSettings], Advantages]


def by_trajectory(advantage: Advantage) -> BatchAdvantage:
    """Return a function of one trajectory's rewards and values as one of a batch with the answers of ``value``."""

    def of_batch(batch: PhaseBatch, rewards: Sequence[Array], settings: LearnerSettings) -> Advantages:
        pairs = zip(rewards, batch.answers["value"], strict=True)
        # V after the last action is 0, whatever a critic says there.
        return Advantages(joined([advantage(r, v[: len(r)], settings.gamma, settings.lam) for r, v in pairs]))

    return of_batch


CREDIT: dict[str, BatchAdvantage] = {
    **{name: by_trajectory(advantage) for name, advantage in ADVANTAGES.items()},
    "group_relative": group_relative_advantages,
    "group_steps": group_step_advantages,
    "group_steps_left_out": group_left_out_advantages,
}
"""Advantages by name; the arguments are a batch, the rewards (T,) of each of its trajectories, and the settings."""


@dataclass(frozen=True, slots=True)
class Credit:
    """Per decision of a batch, in order: ``advantages``, and ``shaping`` (N,), what the rewards add to the outcome.

    The outcome is that of the last step; where each step's reward is a whole of its own, that of every step.
    """

    advantages: Advantages
    shaping: Array

    def at(self, decisions: npt.NDArray[np.integer]) -> Credit:
        """Return the credit of the decisions with these indices."""
        return Credit(self.advantages.at(decisions), self.shaping[decisions])


def assign_credit(batch: PhaseBatch, algorithm: Algorithm, settings: LearnerSettings) -> Credit:
    """Return the credit of every decision of ``batch``, which holds the answers of the algorithm's critics.

    Raises:
        ValueError: the algorithm has no reward or no advantage.
    """
    if algorithm.reward is None or algorithm.advantage is None:
        raise ValueError(f"algorithm {algorithm.name!r} has no advantages to compute")
    reward = REWARDS[algorithm.reward]
    base = REWARDS["outcome_steps" if algorithm.reward in STEP_TOTALS else "outcome"]
    paid: list[Array] = []
    rewards: list[Array] = []
    for trajectory, signal in zip(batch.trajectories, signals(batch, algorithm), strict=True):
        paid.append(base(trajectory, signal, settings, batch.phase))
        rewards.append(reward(trajectory, signal, settings, batch.phase))
    shaping: list[Array] = [earned - of_outcome for earned, of_outcome in zip(rewards, paid, strict=True)]
    if algorithm.shapes and settings.shaping_baseline == "step":
        shaping = without_step_means(shaping)
        rewards = [of_outcome + terms for of_outcome, terms in zip(paid, shaping, strict=True)]
    return Credit(CREDIT[algorithm.advantage](batch, rewards, settings), joined(shaping))


def signals(batch: PhaseBatch, algorithm: Algorithm) -> Sequence[Array]:
    """Return one number a step (T,) per trajectory for the reward: a judge's word, or zeros; or potentials.

    These are (T + 1,) where the final state is recorded.
    """
    if algorithm.needs_judged_steps:
        return batch.judged_steps
    if not algorithm.shapes:
        return [np.zeros(len(trajectory.steps), dtype=np.float32) for trajectory in batch.trajectories]
    if algorithm.potential_source == "critic":
        return batch.answers["potential"]
    potential = RECORDED[algorithm.potential_source]
    return [of_recorded_states(potential, trajectory) for trajectory in batch.trajectories]
