"""The kinds of critic: what each one learns, from which episodes, and how it is rated.

Owns ``CRITICS``. A further critic is a row here and a section of its own in ``LearnerSettings``; training, asking,
saving and loading are the same for all of them (``learner.trained_critics``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from learner.algorithms import UNDISCOUNTED, resolve
from learner.dataset import outcome_targets, per_trajectory, progress_targets, teaches_progress
from learner.losses import potential_loss, value_loss
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
    [0, 1] that it should give for the trajectories' N states, and ``taught`` the settings that these depend on;
    ``loss`` maps logits (B,) and targets (B,) to losses (B,). ``rate`` compares answers (N,) that it gave with what
    was true.
    """

    number: int
    final: bool
    settings: Callable[[LearnerSettings], CriticSettings]
    learns_from: Callable[[Trajectory, LearnerSettings], bool]
    targets: Callable[[Sequence[Trajectory], LearnerSettings], FloatArray]
    taught: Callable[[LearnerSettings], Mapping[str, str | float]]
    loss: Callable[[Tensor, Tensor], Tensor]
    rate: Callable[[FloatArray, Sequence[Trajectory]], Ratings]


def _value_discount(settings: LearnerSettings) -> float:
    discounted = settings.value_target == "return" and resolve(settings).advantage not in UNDISCOUNTED
    return settings.gamma if discounted else 1.0


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
        targets=lambda trajectories, settings: outcome_targets(trajectories, _value_discount(settings)),
        taught=lambda settings: {"discount": _value_discount(settings)},
        loss=value_loss,
        rate=_rate_values,
    ),
    "potential": CriticKind(
        number=2,
        final=True,
        settings=lambda settings: settings.potential,
        learns_from=lambda trajectory, settings: teaches_progress(trajectory, settings.potential_data),
        targets=lambda trajectories, settings: progress_targets(trajectories, settings.potential_data.labels),
        taught=lambda settings: {"labels": settings.potential_data.labels},
        loss=potential_loss,
        rate=_rate_potentials,
    ),
}
"""Critics by name: V(s, I), the probability of success (MiRA eq. 4), and P(s, g), progress towards the goal (eq. 3)."""
