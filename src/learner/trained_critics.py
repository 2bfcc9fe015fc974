"""A critic in training: its model, its optimiser and its kind.

Owns the one way in which every critic is taught (phase A of MiRA alg. 1) and asked. The optimiser's state goes on from
phase to phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from learner.batching import Batch, Indices, epoch_batches
from learner.critic_kinds import CRITICS
from learner.critics import predict
from learner.dataset import episode_numbers, per_trajectory, states, with_verdict
from learner.metrics import CriticMetrics
from learner.models import Models
from learner.optimiser import Compute, adamw, set_learning_rate, update
from learner.settings import LearnerSettings
from learner.training import Training, facts_of
from records.episodes import FloatArray, Trajectory


class TrainedCritic:
    """The critic called ``name``, on the actor's backbone as it is, with a fresh head.

    Raises:
        KeyError: no row of ``critic_kinds.CRITICS`` has this name.
    """

    def __init__(self, name: str, models: Models, settings: LearnerSettings, compute: Compute) -> None:
        self.name = name
        self.kind = CRITICS[name]
        self.settings = self.kind.settings(settings)
        self.model = models.critic(name, settings.seed + self.kind.number - 1)
        self.optimiser = adamw(self.model, self.settings.learning_rate, self.settings.weight_decay)
        self._learner = settings
        self._compute = compute

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Train on the states of those trajectories that have a verdict and teach this critic.

        The learning rate is constant; with ``pretrain`` it and the number of epochs are those of the pre-training. The
        answers given in the first epoch, each before the critic had learned from that state, are what is rated.
        """
        own, compute = self.settings, self._compute
        data = [t for t in with_verdict(trajectories) if self.kind.learns_from(t, self._learner)]
        samples, targets = states(data), np.asarray(self.kind.targets(data, self._learner), dtype=np.float32)
        epochs = own.pretrain_epochs if pretrain else own.epochs
        set_learning_rate(self.optimiser, own.pretrain_learning_rate if pretrain else own.learning_rate)
        wanted = torch.from_numpy(targets).to(compute.device)
        answers = np.zeros(len(samples), dtype=np.float32)
        episodes = episode_numbers(data)
        name = f"{self.name}-pretraining" if pretrain else self.name
        facts = chain(facts_of(generator, samples), (episodes.tobytes(), targets.tobytes()))
        batches = [
            epoch_batches(episodes, own.batch_steps, generator, self._learner.shuffle)
            for _ in range(epochs if samples else 0)
        ]
        planned = [(chosen, epoch == 0) for epoch, batch in enumerate(batches) for chosen in batch]
        training = Training(compute, name, self.model, self.optimiser, facts, len(planned), answers)

        for chosen, first in planned[training.updates :]:

            def state_losses(batch: Batch, members: Indices, first: bool = first) -> Tensor:
                logits = self.model(batch)
                if first:
                    answers[members] = torch.sigmoid(logits.detach()).cpu().numpy()
                return self.kind.loss(logits, wanted[torch.from_numpy(members).to(compute.device)])

            value, norm = update(
                self.model, self.optimiser, samples, chosen, state_losses,
                divide_by=len(chosen), max_grad_norm=own.max_grad_norm, compute=compute,
            )  # fmt: skip
            training.note(value * len(chosen), norm, sum(samples[i].length for i in chosen))
        training.end()

        losses, norms, seconds = (
            training.losses[-len(batches[-1]) :] if batches else [],
            training.norms,
            training.seconds(),
        )
        return CriticMetrics(
            states=len(samples),
            updates=len(norms),
            loss=sum(losses) / len(samples) if losses else None,
            grad_norm=float(np.mean(norms)) if norms else None,
            tokens_per_s=epochs * sum(sample.length for sample in samples) / seconds if norms else None,
            ratings=self.kind.rate(answers, data) if norms else {},
        )

    def ask(self, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
        """Return the critic's answers in [0, 1] for every state: one array (T,) per trajectory."""
        (answers,) = predict([self.model], states(trajectories), self._compute)
        return per_trajectory(answers, trajectories)
