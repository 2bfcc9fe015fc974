"""Rewards of one trajectory: the outcome at the end, plus a term for each step, from a critic or a judge.

Pure functions on numpy arrays; one row per action. Potentials are those of the states before the T actions; ``final``
is that of the state after the last one, None where it is not recorded. The forms differ in how they treat it
(``docs/algorithms.md``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from learner.arrays import Array
from learner.settings import LearnerSettings
from learner.step_totals import admire_totals, outcome_totals, process_totals
from records.episodes import Trajectory

Reward = Callable[[float, Array, float, float, float | None], Array]
TrajectoryReward = Callable[[Trajectory, Array, LearnerSettings, int], Array]


def outcome_rewards(outcome: float, potentials: Array, alpha: float, gamma: float, final: float | None = None) -> Array:
    """Return (T,) rewards that are 0 except for the last, which is ``outcome``. ``potentials`` (T,) only give T."""
    rewards = np.zeros(len(potentials), dtype=np.float64)
    rewards[-1] = outcome
    return rewards


def difference_shaping(potentials: Array, final: float | None = None) -> Array:
    """Return (T,) potential differences P(s_{t+1}) - P(s_t); without ``final`` the last action has none, but 0."""
    aux = np.zeros(len(potentials), dtype=np.float64)
    aux[:-1] = np.diff(np.asarray(potentials, dtype=np.float64))
    if final is not None:
        aux[-1] = final - float(potentials[-1])
    return aux


def pbrs_shaping(potentials: Array, gamma: float) -> Array:
    """Return (T,) gamma * P(s_{t+1}) - P(s_t) with P(terminal) = 0 (MiRA eq. 1).

    The discounted sum is exactly -P(s_0), whatever the actions, so the optimal policy does not change.
    """
    here = np.asarray(potentials, dtype=np.float64)
    following = np.append(here[1:], 0.0)
    return np.asarray(gamma * following - here, dtype=np.float64)


def difference_rewards(
    outcome: float, potentials: Array, alpha: float, gamma: float, final: float | None = None
) -> Array:
    """Return (T,) r_t + alpha * (P(s_{t+1}) - P(s_t)) (MiRA alg. 1, line 14)."""
    return outcome_rewards(outcome, potentials, alpha, gamma) + alpha * difference_shaping(potentials, final)


def pbrs_rewards(outcome: float, potentials: Array, alpha: float, gamma: float, final: float | None = None) -> Array:
    """Return (T,) rewards r_t + alpha * (gamma * P(s_{t+1}) - P(s_t)), with P(terminal) = 0."""
    return outcome_rewards(outcome, potentials, alpha, gamma) + alpha * pbrs_shaping(potentials, gamma)


def process_rewards(outcome: float, judged: Array, alpha: float, gamma: float, final: float | None = None) -> Array:
    """Return (T,) rewards r_t + alpha * s_t / T, where ``judged`` (T,) is a judge's word s_t on each step.

    The steps of an episode together earn alpha times the share that is right, however many they are: going round in
    circles of right steps earns no more than doing them once.
    """
    return outcome_rewards(outcome, judged, alpha, gamma) + alpha * np.asarray(judged, dtype=np.float64) / len(judged)


def of_trajectory(reward: Reward) -> TrajectoryReward:
    """Return a function of an outcome and numbers of states as one of a trajectory, its signal and the phase."""

    def of(trajectory: Trajectory, signal: Array, settings: LearnerSettings, phase: int) -> Array:
        steps = len(trajectory.steps)
        final = float(signal[steps]) if len(signal) > steps else None
        return reward(float(trajectory.outcome or 0.0), signal[:steps], settings.alpha, settings.gamma, final)

    return of


REWARDS: dict[str, TrajectoryReward] = {
    "outcome": of_trajectory(outcome_rewards),
    "difference": of_trajectory(difference_rewards),
    "pbrs": of_trajectory(pbrs_rewards),
    "process": of_trajectory(process_rewards),
    "outcome_steps": outcome_totals,
    "process_steps": process_totals,
    "admire": admire_totals,
}
"""Rewards by name; the arguments are a trajectory, its signal, the settings and the phase's number. The signal is a
judge's word on each step (T,), or potentials: (T,), or (T + 1,) where the final state is recorded."""
