"""What each critic is for: its data, its targets, its loss and how it is rated.

Owns the two pairings of a ``Critic`` with its training (seeds/000, eq. 3 and 4). Both keep their optimiser's
state from phase to phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from learner.critics import Critic
from learner.dataset import (
    outcome_targets,
    per_trajectory,
    progress_targets,
    states,
    teaches_progress,
    with_verdict,
)
from learner.fitting import Fit, fit_critic
from learner.losses import potential_loss, value_loss
from learner.metrics import CriticMetrics, auc, kendall, mean_or_none, spearman
from learner.optimiser import Compute, adamw
from learner.settings import CriticSettings, LearnerSettings
from records.episodes import FloatArray, Trajectory


class _TrainedCritic:
    """A critic with its optimiser and its way of training."""

    def __init__(self, critic: Critic, own: CriticSettings, window: int, compute: Compute) -> None:
        self.critic = critic
        self.optimiser = adamw(critic, own.learning_rate, own.weight_decay)
        self._own = own
        self._window = window
        self._compute = compute

    def _train(
        self,
        trajectories: Sequence[Trajectory],
        targets: FloatArray,
        loss: Callable[[Tensor, Tensor], Tensor],
        generator: np.random.Generator,
        pretrain: bool,
    ) -> Fit:
        own = self._own
        return fit_critic(
            self.critic,
            self.optimiser,
            states(trajectories),
            targets,
            loss,
            learning_rate=own.pretrain_learning_rate if pretrain else own.learning_rate,
            epochs=own.pretrain_epochs if pretrain else own.epochs,
            batch_steps=own.batch_steps,
            max_grad_norm=own.max_grad_norm,
            window=self._window,
            generator=generator,
            compute=self._compute,
        )


class ValueCritic(_TrainedCritic):
    """V(s, I): probability of success, trained by cross-entropy on every step of successes and failures."""

    def __init__(self, critic: Critic, settings: LearnerSettings, compute: Compute) -> None:
        super().__init__(critic, settings.value, settings.sort_window_batches, compute)
        gammas = {"outcome": 1.0, "return": settings.gamma}
        if settings.value_target not in gammas:
            raise ValueError(f"value_target must be 'outcome' or 'return', found {settings.value_target!r}")
        self._gamma = gammas[settings.value_target]

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Train on the outcomes of the trajectories that have a verdict."""
        judged = with_verdict(trajectories)
        targets = outcome_targets(judged, self._gamma)
        fit = self._train(judged, targets, value_loss, generator, pretrain)
        return CriticMetrics(
            states=fit.states,
            updates=fit.updates,
            loss=fit.loss,
            grad_norm=fit.grad_norm,
            auc=auc(fit.first_answers, outcome_targets(judged)) if fit.updates else None,
            tokens_per_s=fit.tokens_per_s,
        )


class PotentialCritic(_TrainedCritic):
    """P(s, g): progress towards the goal, regressed onto the progress labels of clean successes."""

    def __init__(self, critic: Critic, settings: LearnerSettings, compute: Compute) -> None:
        super().__init__(critic, settings.potential, settings.sort_window_batches, compute)
        self._data = settings.potential_data

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Train on the progress labels of those trajectories that teach progress."""
        clean = [t for t in with_verdict(trajectories) if teaches_progress(t, self._data)]
        targets = progress_targets(clean)
        fit = self._train(clean, targets, potential_loss, generator, pretrain)
        pairs = []
        if fit.updates:
            answers = per_trajectory(fit.first_answers, clean)
            pairs = [(p, q) for p, q in zip(answers, per_trajectory(targets, clean), strict=True) if len(p) > 1]
        return CriticMetrics(
            states=fit.states,
            updates=fit.updates,
            loss=fit.loss,
            grad_norm=fit.grad_norm,
            kendall=mean_or_none([kendall(p, q) for p, q in pairs]),
            spearman=mean_or_none([spearman(p, q) for p, q in pairs]),
            tokens_per_s=fit.tokens_per_s,
        )
