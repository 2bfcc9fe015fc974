"""Behaviour cloning: cross-entropy on the actions of demonstrations.

Owns the cloning loop. The mean is over action tokens; prompt tokens carry a loss of
their own only where the settings ask for it. With a fixed number of
updates and no time limit the result depends on data, settings and seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import numpy as np
from torch import Tensor

from learner.batching import Batch, Indices, Sample, endless_batches
from learner.language_model import LanguageModel
from learner.logprobs import action_and_prompt_logprobs, action_logprobs
from learner.metrics import CloneUpdate
from learner.optimiser import Compute, adamw, learning_rate_factor, set_learning_rate, update
from learner.settings import CloneSettings
from learner.training import Training, facts_of


def clone_actions(
    actor: LanguageModel,
    samples: Sequence[Sample],
    episodes: Indices,
    settings: CloneSettings,
    *,
    shuffle: str,
    generator: np.random.Generator,
    compute: Compute,
    on_update: Callable[[int, float], None] | None = None,
) -> CloneUpdate:
    """Train ``actor`` in place on the samples' actions with a fresh optimiser.

    ``episodes`` (N,) says to which episode each sample belongs, for the ``shuffle``.
    ``on_update`` is told the number of updates so far and the batch's loss.
    """
    optimiser = adamw(actor, settings.learning_rate, settings.weight_decay)
    facts = chain(facts_of(generator, samples), (episodes.tobytes(),))
    training = Training(compute, "clone", actor, optimiser, facts, settings.updates)
    batches = endless_batches(episodes, settings.batch_steps, generator, shuffle)
    taught = sum(len(next(batches)) for _ in range(training.updates))

    while (progress := _progress(training.updates, training.seconds(), settings)) < 1.0:
        chosen = next(batches)
        factor = learning_rate_factor(progress, settings.warmup_share, settings.decay, settings.final_share)
        set_learning_rate(optimiser, settings.learning_rate * factor)
        tokens = sum(len(samples[i].action_ids) for i in chosen)
        prompt_tokens = sum(len(samples[i].prompt_ids) - 1 for i in chosen)
        weight = settings.prompt_weight if progress < settings.prompt_share else 0.0
        loss, norm = update(
            actor, optimiser, samples, chosen,
            partial(_decision_losses, actor, weight * tokens / max(prompt_tokens, 1)),
            divide_by=float(max(tokens, 1)), max_grad_norm=settings.max_grad_norm, compute=compute,
        )  # fmt: skip
        training.note(loss, norm, sum(samples[i].length for i in chosen))
        taught += len(chosen)
        if on_update is not None:
            on_update(training.updates, loss)
    training.end()

    losses = training.losses
    return CloneUpdate(
        loss=float(np.mean(losses[-max(len(losses) // 10, 1) :])) if losses else None,
        updates=len(losses),
        epochs=taught / max(len(samples), 1),
        seconds=training.seconds(),
    )


def _decision_losses(actor: LanguageModel, prompt_factor: float, batch: Batch, members: Indices) -> Tensor:
    """Return (B,) -log pi(a|s), plus the prompts' -log-probability times ``prompt_factor``."""
    if not prompt_factor:
        return -actor(action_logprobs, batch)
    actions, prompts = actor(action_and_prompt_logprobs, batch)
    return -actions - prompt_factor * prompts


def _progress(updates: int, seconds: float, settings: CloneSettings) -> float:
    """Return how far the run is, in [0, 1]: the further of updates and, where limited, time."""
    by_updates = (updates + 1) / (settings.updates + 1) if updates < settings.updates else 1.0
    by_time = 0.0 if settings.time_limit_s is None else seconds / settings.time_limit_s
    return min(max(by_updates, by_time), 1.0)
