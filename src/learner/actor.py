"""The policy update of a phase.

Owns the update in part C of MiRA alg. 1: some epochs of any policy loss against the reference. Where that is
the policy as it was when the phase started, no second copy of the weights is kept: the reference is its
log-probabilities of the actions, computed before the first update.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from learner.batching import epoch_batches
from learner.credit import Credit
from learner.language_model import LanguageModel
from learner.losses import PolicyLoss, TokenLoss
from learner.metrics import ActorMetrics, Mismatch, RatioMetrics, ratio_metrics
from learner.objective import ActorData, Scores, make_objective
from learner.optimiser import Compute, learning_rate_factor, set_learning_rate, update
from learner.settings import ActorSettings, LearnerSettings
from learner.statistics import summarise
from learner.training import Training, facts_of


def update_actor(
    actor: LanguageModel,
    optimiser: torch.optim.Optimizer,
    data: ActorData,
    policy_loss: PolicyLoss,
    settings: LearnerSettings,
    *,
    reference: LanguageModel | None,
    generator: np.random.Generator,
    compute: Compute,
) -> ActorMetrics:
    """Train ``actor`` in place on ``data`` and report; without decisions nothing happens.

    ``reference`` is the policy that the loss compares with; ``actor`` stands for what it is before the first update.
    """
    own, samples, tokens = settings.actor, data.samples, data.tokens
    start = Scores.under(actor, samples, compute)
    compared = start if reference is None or reference is actor else Scores.under(reference, samples, compute)
    objective = make_objective(actor, data, compared if reference is not None else None, policy_loss, settings, compute)

    facts = chain(facts_of(generator, samples), (data.episodes.tobytes(), data.advantages.steps.tobytes()))
    batches = [
        chosen
        for _ in range(own.epochs if samples else 0)
        for chosen in epoch_batches(data.episodes, own.batch_steps, generator, settings.shuffle)
    ]
    training = Training(compute, "actor", actor, optimiser, facts, len(batches))
    per_epoch = max(len(batches) // max(own.epochs, 1), 1)
    while training.updates < len(batches):
        done = training.updates
        if own.kl_limit is not None and done and done % per_epoch == 0 and _moved(actor, data, start, own, compute):
            break
        chosen = batches[done]
        rate = own.learning_rate * learning_rate_factor(done / len(batches), 0.0, own.decay, 0.0)
        set_learning_rate(optimiser, rate)
        value, norm = update(
            actor, optimiser, samples, chosen, objective,
            divide_by=policy_loss.divide_by(tokens[chosen]), max_grad_norm=own.max_grad_norm, compute=compute,
        )  # fmt: skip
        training.note(value, norm, sum(samples[i].length for i in chosen))
    training.end()
    trained = sum(samples[i].length for chosen in batches[: training.updates] for i in chosen)
    losses, norms, seconds = training.losses, training.norms, training.seconds()

    credit = data.credit
    # A loss of tokens moves the policy away from where the phase began; its reference is for a penalty alone.
    before = start if isinstance(policy_loss, TokenLoss) else compared
    return ActorMetrics(
        decisions=len(samples),
        updates=len(losses),
        loss=float(np.mean(losses[-per_epoch:])) if losses else None,
        first_loss=float(np.mean(losses[:per_epoch])) if losses else None,
        grad_norm=float(np.mean(norms)) if norms else None,
        entropy=_entropy(start),
        mismatch=Mismatch.between(start.sampled, data.behaviour, data.fresh),
        advantage=summarise(credit.advantages.steps) if credit is not None else None,
        shaping=summarise(credit.shaping) if credit is not None else None,
        negative_share=_negative_share(credit, np.ones(len(samples), dtype=np.bool_)),
        negative_share_of_successes=_negative_share(credit, data.outcomes == 1.0),
        ratio=_achieved(actor, data, before, own, generator, compute),
        tokens_per_s=trained / seconds if losses else None,
    )


def _moved(actor: LanguageModel, data: ActorData, start: Scores, settings: ActorSettings, compute: Compute) -> bool:
    """Return whether the policy is further from that of the phase's start than the limit."""
    own = np.flatnonzero(data.fresh) if data.fresh.any() else np.arange(len(data.samples))
    # Evenly spread: drawn ones would depend on how often this was asked before a learner died.
    probe = own[np.unique(np.linspace(0, len(own) - 1, min(settings.probe_steps, len(own))).round().astype(np.int64))]
    now = Scores.under(actor, [data.samples[i] for i in probe], compute)
    assert settings.kl_limit is not None
    return start.at(probe).divergence_of(now) > settings.kl_limit


def _negative_share(credit: Credit | None, among: npt.NDArray[np.bool_]) -> float | None:
    """Return the share of negative advantages among the decisions of the mask ``among`` (N,)."""
    if credit is None or not among.any():
        return None
    return float(np.mean(credit.advantages.steps[among] < 0))


def _entropy(scores: Scores) -> float | None:
    """Return the mean -log pi per action token."""
    count = sum(len(score) for score in scores.plain)
    return float(-scores.totals().sum() / count) if count else None


def _achieved(
    actor: LanguageModel,
    data: ActorData,
    reference: Scores,
    settings: ActorSettings,
    generator: np.random.Generator,
    compute: Compute,
) -> RatioMetrics | None:
    """Measure the log-ratio that the update achieved on up to ``probe_steps`` decisions."""
    if data.credit is None or not data.samples or settings.probe_steps == 0:
        return None
    count = min(settings.probe_steps, len(data.samples))
    probe = np.sort(generator.choice(len(data.samples), size=count, replace=False))
    after = Scores.under(actor, [data.samples[i] for i in probe], compute)
    achieved = after.totals() - reference.totals()[probe]
    if settings.log_ratio == "mean":
        achieved = achieved / np.asarray([max(len(data.samples[i].action_ids), 1) for i in probe])
    return ratio_metrics(data.advantages.steps[probe] / settings.beta, achieved)
