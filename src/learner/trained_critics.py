"""A critic in training: its model, its optimiser and its kind.

Owns the one way in which every critic is taught (part A of MiRA alg. 1) and asked. The optimiser's state goes on from
phase to phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from learner.batching import Batch, Indices, drawn_episodes, epoch_batches
from learner.critic_kinds import CRITICS
from learner.critics import Critic
from learner.dataset import episode_numbers, state_count, states, with_verdict
from learner.metrics import CriticMetrics
from learner.models import Models
from learner.optimiser import Compute, adamw, set_learning_rate, update
from learner.settings import LearnerSettings
from learner.training import Training, facts_of
from records.episodes import FloatArray, Trajectory

_APART = 1000
"""Fixed: how far apart the seeds are from which the heads of a critic's parts are drawn."""


class TrainedCritic:
    """The critic of this ``kind``, on the actor's backbone as it is, with a fresh head; ``part`` of several.

    Raises:
        KeyError: no row of ``critic_kinds.CRITICS`` has the name ``kind``.
    """

    def __init__(self, kind: str, models: Models, settings: LearnerSettings, compute: Compute, part: int = 0) -> None:
        self.name = settings.critic_parts(kind)[part]
        self.kind = CRITICS[kind]
        self.settings = self.kind.settings(settings)
        self.model = models.critic(self.name, settings.seed + self.kind.number - 1 + part * _APART)
        self.optimiser = adamw(self.model, self.settings.learning_rate, self.settings.weight_decay)
        self.scale = self.kind.scale(settings)
        self._learner = settings
        self._compute = compute

    @property
    def models(self) -> Mapping[str, Critic]:
        """The models that it consists of, by their names in checkpoints."""
        return {self.name: self.model}

    @property
    def optimisers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Their optimisers, by the same names."""
        return {self.name: self.optimiser}

    def begin(self, trajectories: Sequence[Trajectory]) -> None:
        """Answer the mean of what these teach everywhere, where nothing was learned yet; else do nothing."""
        data = [t for t in with_verdict(trajectories) if self.kind.learns_from(t, self._learner)]
        if data:
            self.model.begin_at(float(np.mean(self.kind.targets(data, self._learner))))

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Train on the states of those trajectories that have a verdict and teach this critic.

        One that was taught nothing yet begins with the mean of its targets. The learning rate is constant; with
        ``pretrain`` it and the number of epochs are those of the pre-training, which has no limit of states. The
        answers given in the first epoch, each before the critic had learned from that state, are what is rated.
        """
        own, compute = self.settings, self._compute
        data = [t for t in with_verdict(trajectories) if self.kind.learns_from(t, self._learner)]
        if not pretrain:
            sizes = [state_count(trajectory, final=self.kind.final) for trajectory in data]
            data = [data[i] for i in drawn_episodes(sizes, own.max_states, generator)]
        samples = states(data, final=self.kind.final)
        targets = np.asarray(self.kind.targets(data, self._learner), dtype=np.float32)
        if len(targets):
            self.model.begin_at(float(targets.mean()))
        epochs = own.pretrain_epochs if pretrain else own.epochs
        set_learning_rate(self.optimiser, own.pretrain_learning_rate if pretrain else own.learning_rate)
        wanted = torch.from_numpy(targets).to(compute.device)
        answers = np.zeros(len(samples), dtype=np.float32)
        episodes = episode_numbers(data, final=self.kind.final)
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

    def judge(self, answers: Sequence[FloatArray], task_ids: Sequence[str]) -> FloatArray:
        """Return the answers (N,) that count for states of these tasks; ``answers`` has (N,) of each of ``models``."""
        (own,) = answers
        return own * np.float32(self.scale)
