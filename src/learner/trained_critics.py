"""A critic in training: its model, its optimiser and its kind.

Owns the one way in which every critic is taught and asked. The optimiser's state goes on from phase to phase.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedModel

from learner.critic_kinds import CRITICS
from learner.critics import Critic, predict
from learner.dataset import per_trajectory, states, with_verdict
from learner.fitting import fit_critic
from learner.metrics import CriticMetrics
from learner.optimiser import Compute, adamw
from learner.settings import LearnerSettings
from records.episodes import FloatArray, Trajectory


class TrainedCritic:
    """The critic called ``name``, on a copy of the actor's backbone with a fresh head.

    Raises:
        KeyError: no row of ``critic_kinds.CRITICS`` has this name.
    """

    def __init__(self, name: str, actor: PreTrainedModel, settings: LearnerSettings, compute: Compute) -> None:
        self.kind = CRITICS[name]
        self.settings = self.kind.settings(settings)
        self.model = Critic.from_actor(actor, settings.seed + self.kind.number - 1)
        self.optimiser = adamw(self.model, self.settings.learning_rate, self.settings.weight_decay)
        self._learner = settings
        self._compute = compute

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Train on those trajectories that have a verdict and teach this critic; the rates depend on ``pretrain``."""
        own = self.settings
        data = [t for t in with_verdict(trajectories) if self.kind.learns_from(t, self._learner)]
        fit = fit_critic(
            self.model,
            self.optimiser,
            states(data),
            self.kind.targets(data, self._learner),
            self.kind.loss,
            learning_rate=own.pretrain_learning_rate if pretrain else own.learning_rate,
            epochs=own.pretrain_epochs if pretrain else own.epochs,
            batch_steps=own.batch_steps,
            max_grad_norm=own.max_grad_norm,
            window=self._learner.sort_window_batches,
            generator=generator,
            compute=self._compute,
        )
        return CriticMetrics(
            states=fit.states,
            updates=fit.updates,
            loss=fit.loss,
            grad_norm=fit.grad_norm,
            tokens_per_s=fit.tokens_per_s,
            ratings=self.kind.rate(fit.first_answers, data) if fit.updates else {},
        )

    def ask(self, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
        """Return the critic's answers in [0, 1] for every state: one array (T,) per trajectory."""
        return per_trajectory(predict(self.model, states(trajectories), self._compute), trajectories)
