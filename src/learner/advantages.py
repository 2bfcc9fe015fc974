"""Advantages of one trajectory's actions (MiRA eq. 10 and 11), and the record of a batch's.

Pure functions on numpy arrays; one row per action. V(s) after the last action is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from learner.arrays import Array

Advantage = Callable[[Array, Array, float, float], Array]


@dataclass(frozen=True, slots=True)
class Advantages:
    """Signed advantages of N decisions: ``steps`` (N,).

    ``tokens`` holds an array (A,) per decision where the tokens of one action have advantages of their own; without
    it they share their decision's.
    """

    steps: Array
    tokens: tuple[Array, ...] | None = None

    def at(self, decisions: Sequence[int] | npt.NDArray[np.integer]) -> Advantages:
        """Return the advantages of the decisions with these indices."""
        return Advantages(self.steps[decisions], self.tokens and tuple(self.tokens[i] for i in decisions))

    def per_token(self, counts: Sequence[int]) -> tuple[Array, ...]:
        """Return one array (A,) per decision, whose actions have ``counts`` (N,) tokens."""
        return self.tokens or tuple(np.full(count, a) for count, a in zip(counts, self.steps, strict=True))


def discounted_returns(rewards: Array, gamma: float) -> Array:
    """Return G (T,) with G_t = sum over u >= t of gamma^(u-t) * r_u (MiRA eq. 11)."""
    returns = np.zeros(len(rewards), dtype=np.float64)
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = float(rewards[t]) + gamma * following
        returns[t] = following
    return returns


def td_errors(rewards: Array, values: Array, gamma: float) -> Array:
    """Return (T,) r_t + gamma * V(s_{t+1}) - V(s_t)."""
    here = np.asarray(values, dtype=np.float64)
    following = np.append(here[1:], 0.0)
    return np.asarray(np.asarray(rewards, dtype=np.float64) + gamma * following - here, dtype=np.float64)


def return_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) G_t - V(s_t): MiRA eq. 10 with lambda = 0."""
    return discounted_returns(rewards, gamma) - np.asarray(values, dtype=np.float64)


def td_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) one-step TD errors: MiRA eq. 10 with lambda = 1."""
    return td_errors(rewards, values, gamma)


def doubly_robust_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) lam * TD error + (1 - lam) * (G_t - V(s_t)) (MiRA eq. 10)."""
    return lam * td_errors(rewards, values, gamma) + (1.0 - lam) * return_advantages(rewards, values, gamma, lam)


def undiscounted_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) lam * (r_t + V(s_{t+1}) - V(s_t)) + (1 - lam) * (r_T - V(s_t)): WebRL's (arXiv 2411.02337)."""
    return doubly_robust_advantages(rewards, values, 1.0, lam)


def digirl_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) lam^(T-1-t) r_T + (1 - lam^(T-1-t)) (r_t + V(s_{t+1}) - V(s_t)): DigiRL's (arXiv 2406.11896).

    The nearer the end, the more the outcome counts; at the last step it counts alone.
    """
    left = np.arange(len(rewards) - 1, -1, -1, dtype=np.float64)
    weight = np.asarray(lam, dtype=np.float64) ** left
    return np.asarray(weight * float(rewards[-1]) + (1 - weight) * td_errors(rewards, values, 1.0), dtype=np.float64)


def value_difference_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) r_t + V(s_{t+1}) - V(s_t), undiscounted."""
    return td_errors(rewards, values, 1.0)


def webrl_released_advantages(rewards: Array, values: Array, gamma: float, lam: float) -> Array:
    """Return (T,) clip(r_t + V(s_{t+1}) - V(s_t) - 0.05 + G_t, -1, 1), as the trainers of DigiRL and WebRL do."""
    raw = td_errors(rewards, values, 1.0) - 0.05 + discounted_returns(rewards, gamma)
    return np.asarray(np.clip(raw, -1.0, 1.0), dtype=np.float64)


ADVANTAGES: dict[str, Advantage] = {
    "returns": return_advantages,
    "doubly_robust": doubly_robust_advantages,
    "td": td_advantages,
    "undiscounted": undiscounted_advantages,
    "digirl": digirl_advantages,
    "value_difference": value_difference_advantages,
    "webrl_released": webrl_released_advantages,
}
"""Advantages of one trajectory by name; the arguments are rewards (T,), values (T,), gamma and lambda."""
