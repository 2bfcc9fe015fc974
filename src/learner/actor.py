"""The policy update of a phase.

Owns Phase C of MiRA's inner loop (seeds/000, algorithm 1): some epochs of any policy loss against the
reference, which is the policy as it was when the phase started. No second copy of the weights is kept: the
reference is its log-probabilities of the actions, computed before the first update.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import PreTrainedModel

from learner.batching import Batch, Indices, Sample, epoch_batches
from learner.logprobs import action_logprobs, score_samples
from learner.losses import PolicyLoss, PolicyTerms
from learner.metrics import ActorMetrics, RatioMetrics, ratio_metrics, summarise
from learner.optimiser import Compute, set_learning_rate, update
from learner.settings import ActorSettings

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class ActorData:
    """N decisions with signed ``advantages``, the ``shaping`` part of their rewards and their ``outcomes``, each (N,).

    All three are None where the policy loss uses no advantage.
    """

    samples: Sequence[Sample]
    advantages: Floats | None = None
    shaping: Floats | None = None
    outcomes: Floats | None = None


def update_actor(
    actor: PreTrainedModel,
    optimiser: torch.optim.Optimizer,
    data: ActorData,
    policy_loss: PolicyLoss,
    settings: ActorSettings,
    *,
    window: int,
    generator: np.random.Generator,
    compute: Compute,
) -> ActorMetrics:
    """Train ``actor`` in place on ``data`` and report; without decisions nothing happens."""
    samples = data.samples
    reference, entropy = _reference(actor, samples, compute)
    advantages = data.advantages if data.advantages is not None else np.zeros(len(samples))
    tokens = np.asarray([max(len(sample.action_ids), 1) for sample in samples], dtype=np.float32)
    columns = [torch.from_numpy(np.asarray(c, dtype=np.float32)) for c in (reference, advantages, tokens)]
    on_device = [column.to(compute.device) for column in columns]

    def decision_losses(batch: Batch, members: Indices) -> Tensor:
        at = torch.from_numpy(members).to(compute.device)
        ref, advantage, count = (column[at] for column in on_device)
        terms = PolicyTerms(action_logprobs(actor, batch), ref, advantage, count)
        return policy_loss.function(terms, settings)

    started = time.perf_counter()
    set_learning_rate(optimiser, settings.learning_rate)
    lengths = [sample.length for sample in samples]
    losses: list[float] = []
    norms: list[float] = []
    for _ in range(settings.epochs if samples else 0):
        for chosen in epoch_batches(lengths, settings.batch_steps, generator, window):
            count = float(tokens[chosen].sum()) if policy_loss.divide_by == "tokens" else float(len(chosen))
            value, norm = update(
                actor, optimiser, samples, chosen, decision_losses,
                divide_by=count, max_grad_norm=settings.max_grad_norm, compute=compute,
            )  # fmt: skip
            losses.append(value)
            norms.append(norm)
    seconds = time.perf_counter() - started

    per_epoch = max(len(losses) // max(settings.epochs, 1), 1)
    return ActorMetrics(
        decisions=len(samples),
        updates=len(losses),
        loss=float(np.mean(losses[-per_epoch:])) if losses else None,
        first_loss=float(np.mean(losses[:per_epoch])) if losses else None,
        grad_norm=float(np.mean(norms)) if norms else None,
        entropy=entropy,
        advantage=summarise(data.advantages) if data.advantages is not None else None,
        shaping=summarise(data.shaping) if data.shaping is not None else None,
        negative_share=_negative_share(data.advantages, None),
        negative_share_of_successes=_negative_share(data.advantages, data.outcomes),
        ratio=_achieved(actor, data, reference, settings, generator, compute),
        tokens_per_s=settings.epochs * sum(lengths) / seconds if losses else None,
    )


def _negative_share(advantages: Floats | None, outcomes: Floats | None) -> float | None:
    """Return the share of negative advantages, among the decisions of successes where ``outcomes`` are given."""
    if advantages is None:
        return None
    chosen = advantages if outcomes is None else advantages[outcomes == 1.0]
    return float(np.mean(chosen < 0)) if len(chosen) else None


def _reference(actor: PreTrainedModel, samples: Sequence[Sample], compute: Compute) -> tuple[Floats, float | None]:
    """Return log pi_ref of every action (N,), and the mean -log pi_ref per token."""
    with compute.autocast():
        scores = score_samples(actor, samples, pad_id=compute.pad_id, max_tokens=compute.max_tokens)
    totals = np.asarray([score.sum(dtype=np.float64) for score in scores], dtype=np.float64)
    count = sum(len(score) for score in scores)
    return totals, float(-totals.sum() / count) if count else None


def _achieved(
    actor: PreTrainedModel,
    data: ActorData,
    reference: Floats,
    settings: ActorSettings,
    generator: np.random.Generator,
    compute: Compute,
) -> RatioMetrics | None:
    """Measure the log-ratio that the update achieved on up to ``probe_steps`` decisions."""
    if data.advantages is None or not len(data.samples) or settings.probe_steps == 0:
        return None
    count = min(settings.probe_steps, len(data.samples))
    probe = np.sort(generator.choice(len(data.samples), size=count, replace=False))
    after, _ = _reference(actor, [data.samples[i] for i in probe], compute)
    achieved = after - reference[probe]
    if settings.log_ratio == "mean":
        achieved = achieved / np.asarray([max(len(data.samples[i].action_ids), 1) for i in probe])
    return ratio_metrics(data.advantages[probe] / settings.beta, achieved)
