"""Cross-fitting of critics: two of each, and the one that judges an episode never learned from that task's episodes.

Owns which half a task is in, and ``CriticPair``. A critic that is asked about what it was just taught knows outcomes by
heart, and advantages shrink (docs/decisions/0183). Invariants: all episodes of a task are in one half, whenever they
are played; each critic of a pair learns from one half and judges the other.

Source: Chernozhukov et al. 2018, "Double/debiased machine learning for treatment and structural parameters".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from learner.critics import Critic
from learner.metrics import CriticMetrics
from learner.models import Models
from learner.optimiser import Compute
from learner.settings import LearnerSettings
from learner.trained_critics import TrainedCritic
from records.episodes import FloatArray, Trajectory


def half_of(task_id: str) -> int:
    """Return 0 or 1, the half of this task."""
    return hashlib.sha256(task_id.encode()).digest()[0] % 2


class CriticPair:
    """Two critics of this ``kind``, one for each half of the tasks, in place of one ``TrainedCritic``.

    Raises:
        KeyError: no row of ``critic_kinds.CRITICS`` has the name ``kind``.
    """

    def __init__(self, kind: str, models: Models, settings: LearnerSettings, compute: Compute) -> None:
        self._of_half = tuple(TrainedCritic(kind, models, settings, compute, half) for half in (0, 1))
        self.kind, self.settings = self._of_half[0].kind, self._of_half[0].settings

    @property
    def models(self) -> Mapping[str, Critic]:
        """The two models by their names in checkpoints, that which judges half 0 first."""
        return {critic.name: critic.model for critic in self._of_half}

    @property
    def optimisers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Their optimisers, by the same names."""
        return {critic.name: critic.optimiser for critic in self._of_half}

    def fit(
        self, trajectories: Sequence[Trajectory], generator: np.random.Generator, *, pretrain: bool = False
    ) -> CriticMetrics:
        """Teach each critic the half that it does not judge; see ``TrainedCritic.fit``.

        One that was never taught and whose half nobody played begins with the mean of the other half: it would call
        each state a coin.
        """
        halves = [[t for t in trajectories if half_of(t.task_id) != half] for half in (0, 1)]
        metrics = [
            critic.fit(half, generator, pretrain=pretrain) for critic, half in zip(self._of_half, halves, strict=True)
        ]
        for critic, part in zip(self._of_half, metrics, strict=True):
            if not part.states:
                critic.begin(trajectories)
        return CriticMetrics.of_parts(metrics)

    def judge(self, answers: Sequence[FloatArray], task_ids: Sequence[str]) -> FloatArray:
        """Return for each state the answer of the critic that judges its task; see ``TrainedCritic.judge``."""
        halves = np.asarray([half_of(task_id) for task_id in task_ids], dtype=np.int64)
        return np.stack(answers)[halves, np.arange(len(halves))] * np.float32(self._of_half[0].scale)
