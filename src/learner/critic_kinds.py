"""The kinds of critic: what each one learns, from which episodes, and how it is rated.

Owns ``CRITICS``. A further critic is a row here and a section of its own in ``LearnerSettings``; training, asking,
saving and loading are the same for all of them (``learner.trained_critics``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from learner.advantages import Array, discounted_returns
from learner.algorithms import resolve, value_discount, value_is_shaped
from learner.dataset import of_recorded_states, outcome_targets, per_trajectory, progress_targets, teaches_progress
from learner.losses import potential_loss, value_loss
from learner.potentials import RECORDED
from learner.rewards import REWARDS
from learner.settings import CriticSettings, LearnerSettings
from learner.statistics import auc, kendall, mean_or_none, spearman
from records.episodes import FloatArray, Trajectory

Ratings = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class CriticKind:
    """One row: a critic's part in training.

    ``number`` is the critic's own in every seed: of its head and of its shuffles; it never changes. ``settings``
    finds its section. ``learns_from`` says whether a judged trajectory teaches it. ``final`` says whether a recorded
    state after the last action is among the states that it learns. ``targets`` are the answers (N,) in
    [0, 1] that it should give for the trajectories' N states, ``scale`` what its answers are multiplied by to mean
    what they say, and ``taught`` the settings that targets depend on;
    ``loss`` maps logits (B,) and targets (B,) to losses (B,). ``rate`` compares answers (N,) that it gave with what
    was true.
    """

    number: int
    final: bool
    settings: Callable[[LearnerSettings], CriticSettings]
    learns_from: Callable[[Trajectory, LearnerSettings], bool]
    targets: Callable[[Sequence[Trajectory], LearnerSettings], FloatArray]
    scale: Callable[[LearnerSettings], float]
    taught: Callable[[LearnerSettings], Mapping[str, str | float]]
    loss: Callable[[Tensor, Tensor], Tensor]
    rate: Callable[[FloatArray, Sequence[Trajectory]], Ratings]


def _shaped_by(settings: LearnerSettings) -> str:
    """Return the recorded potential that stands for the one that shapes: for a critic's, what it learns from."""
    return "clock" if resolve(settings).potential_source == "clock" else "milestones"


def _value_scale(settings: LearnerSettings) -> float:
    """Return the most that an episode can earn: 1, and alpha where its milestones are paid too."""
    return 1.0 + settings.alpha if value_is_shaped(settings) else 1.0


def _value_targets(trajectories: Sequence[Trajectory], settings: LearnerSettings) -> FloatArray:
    discount = value_discount(settings)
    if not value_is_shaped(settings):
        return outcome_targets(trajectories, discount)
    potential = RECORDED[_shaped_by(settings)]
    returns: list[Array] = [np.zeros(0)]
    for trajectory in trajectories:
        known = of_recorded_states(potential, trajectory)
        returns.append(discounted_returns(REWARDS["difference"](trajectory, known, settings, 0), discount))
    return np.asarray(np.concatenate(returns) / _value_scale(settings), dtype=np.float32)


def _value_taught(settings: LearnerSettings) -> Mapping[str, str | float]:
    discount: dict[str, str | float] = {"discount": value_discount(settings)}
    if not value_is_shaped(settings):
        return discount
    return discount | {"shaping": settings.alpha, "potential": _shaped_by(settings)}


def _rate_values(answers: FloatArray, trajectories: Sequence[Trajectory]) -> Ratings:
    return {"auc": auc(answers, outcome_targets(trajectories))}


def _rate_potentials(answers: FloatArray, trajectories: Sequence[Trajectory]) -> Ratings:
    given = per_trajectory(answers, trajectories, final=True)
    rated = [(p, progress_targets([t])) for p, t in zip(given, trajectories, strict=True) if t.success]
    pairs = [(p, q) for p, q in rated if len(p) > 1]
    return {
        "kendall": mean_or_none([kendall(p, q) for p, q in pairs]),
        "spearman": mean_or_none([spearman(p, q) for p, q in pairs]),
    }


CRITICS = {
    "value": CriticKind(
        number=1,
        final=False,
        settings=lambda settings: settings.value,
        learns_from=lambda trajectory, settings: True,
        targets=_value_targets,
        scale=_value_scale,
        taught=_value_taught,
        loss=value_loss,
        rate=_rate_values,
    ),
    "potential": CriticKind(
        number=2,
        final=True,
        settings=lambda settings: settings.potential,
        learns_from=lambda trajectory, settings: teaches_progress(trajectory, settings.potential_data),
        targets=lambda trajectories, settings: progress_targets(trajectories, settings.potential_data.labels),
        scale=lambda settings: 1.0,
        taught=lambda settings: {"labels": settings.potential_data.labels},
        loss=potential_loss,
        rate=_rate_potentials,
    ),
}
"""Critics by name: V(s, I), the probability of success (MiRA eq. 4), and P(s, g), progress towards the goal (eq. 3)."""
