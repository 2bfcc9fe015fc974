"""Training of one critic on states and targets.

Owns Phase A of MiRA's inner loop for either critic (MiRA alg. 1). The answers given in the first
epoch, each before the critic had learned from that state, come back for honest statistics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from learner.batching import Batch, Indices, Sample, epoch_batches
from learner.critics import Critic
from learner.optimiser import Compute, set_learning_rate, update
from records.episodes import FloatArray


@dataclass(frozen=True, slots=True)
class Fit:
    """Result of training a critic on N states; ``first_answers`` (N,) are those of the first epoch."""

    states: int
    updates: int
    loss: float | None
    grad_norm: float | None
    first_answers: FloatArray
    tokens_per_s: float | None


def fit_critic(
    critic: Critic,
    optimiser: torch.optim.Optimizer,
    samples: Sequence[Sample],
    targets: FloatArray,
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    learning_rate: float,
    epochs: int,
    batch_steps: int,
    max_grad_norm: float,
    window: int,
    generator: np.random.Generator,
    compute: Compute,
) -> Fit:
    """Train ``critic`` for ``epochs`` passes at a constant learning rate.

    Args:
        critic: trained in place.
        optimiser: of the critic's parameters; its state goes on.
        samples: N states.
        targets: (N,) in [0, 1].
        loss: maps logits (B,) and targets (B,) to losses (B,).
        learning_rate: constant.
        epochs: passes over the samples.
        batch_steps: states per update.
        max_grad_norm: limit of the gradient's L2 norm.
        window: see ``batching.epoch_batches``.
        generator: order of the samples.
        compute: where and in which parts.
    """
    started = time.perf_counter()
    set_learning_rate(optimiser, learning_rate)
    wanted = torch.from_numpy(np.asarray(targets, dtype=np.float32)).to(compute.device)
    answers = np.zeros(len(samples), dtype=np.float32)
    lengths = [sample.length for sample in samples]
    losses: list[float] = []
    norms: list[float] = []

    for epoch in range(epochs if samples else 0):
        losses.clear()

        def state_losses(batch: Batch, members: Indices, first: bool = epoch == 0) -> Tensor:
            logits = critic(batch)
            if first:
                answers[members] = torch.sigmoid(logits.detach()).cpu().numpy()
            return loss(logits, wanted[torch.from_numpy(members).to(compute.device)])

        for chosen in epoch_batches(lengths, batch_steps, generator, window):
            value, norm = update(
                critic, optimiser, samples, chosen, state_losses,
                divide_by=len(chosen), max_grad_norm=max_grad_norm, compute=compute,
            )  # fmt: skip
            losses.append(value * len(chosen))
            norms.append(norm)

    seconds = time.perf_counter() - started
    return Fit(
        states=len(samples),
        updates=len(norms),
        loss=sum(losses) / len(samples) if losses else None,
        grad_norm=float(np.mean(norms)) if norms else None,
        first_answers=answers,
        tokens_per_s=epochs * sum(lengths) / seconds if norms else None,
    )
