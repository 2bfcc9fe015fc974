"""Credit assignment: from outcomes, values and potentials to one advantage per decision.

Owns Phase B of MiRA's inner loop (seeds/000, algorithm 1). Pure; asks no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from learner.advantages import ADVANTAGES, Array
from learner.algorithms import Algorithm
from learner.rewards import REWARDS, outcome_rewards
from learner.settings import LearnerSettings
from records.episodes import FloatArray, Trajectory


@dataclass(frozen=True, slots=True)
class Credit:
    """Per decision of all trajectories, in order: ``advantages`` (N,) and the ``shaping`` part of rewards (N,)."""

    advantages: npt.NDArray[np.float64]
    shaping: npt.NDArray[np.float64]


def assign_credit(
    trajectories: Sequence[Trajectory],
    answers: Mapping[str, Sequence[FloatArray]],
    algorithm: Algorithm,
    settings: LearnerSettings,
) -> Credit:
    """Return the credit of every decision.

    Args:
        trajectories: with verdicts.
        answers: each critic's answers for every state, one array (T,) per trajectory: ``value``, and ``potential``
            where the reward is shaped.
        algorithm: names the reward and the advantage; both must be set.
        settings: gamma, alpha and lambda.
    """
    if algorithm.reward is None or algorithm.advantage is None:
        raise ValueError(f"algorithm {algorithm.name!r} has no advantages to compute")
    reward, advantage = REWARDS[algorithm.reward], ADVANTAGES[algorithm.advantage]
    advantages: list[Array] = [np.zeros(0)]
    shaping: list[Array] = [np.zeros(0)]
    values = answers["value"]
    potentials = answers.get("potential", [np.zeros(len(v), dtype=np.float32) for v in values])
    for trajectory, v, p in zip(trajectories, values, potentials, strict=True):
        outcome = float(trajectory.outcome or 0.0)
        rewards = reward(outcome, p, settings.alpha, settings.gamma)
        advantages.append(advantage(rewards, v, settings.gamma, settings.lam))
        shaping.append(rewards - outcome_rewards(outcome, p, settings.alpha, settings.gamma))
    return Credit(np.concatenate(advantages), np.concatenate(shaping))
