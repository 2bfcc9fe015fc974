"""Losses: one number per sample, never averaged here.

Owns the policy losses and the critics' losses as pure functions of tensors, and ``POLICY_LOSSES``. The caller divides
their sum by one number for the whole batch, which the loss's row names, so that a batch may be split into
micro-batches without changing the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from learner.policy_terms import PolicyTerms, TokenTerms
from learner.settings import AwrSettings, ClipSettings, HardFilterSettings, LossSettings, MGrpoSettings

WEBRL_SURE = 0.8
"""Mean token probability from which WebRL's released loss raises its beta."""
WEBRL_BETAS = (1.0, 5.0)
"""WebRL's released beta for unsure and for sure actions."""


def cross_entropy(terms: PolicyTerms) -> Tensor:
    """Return (B,) -log pi(a|s); the batch divides by its number of action tokens."""
    return -terms.logprobs


def squared_regression(terms: PolicyTerms) -> Tensor:
    """Return (B,) (beta * log(pi/pi_ref) - A)^2 (MiRA eq. 12); signed, so a negative A lowers log pi."""
    return (terms.beta * terms.ratio() - terms.advantages) ** 2


def exp_weighted(terms: PolicyTerms) -> Tensor:
    """Return (B,) -exp(A / beta) * log pi: MiRA's KL form (eq. 15 and 21); it can only raise what was sampled."""
    return -torch.exp(terms.advantages / terms.beta) * terms.likelihood()


def awr(terms: PolicyTerms, settings: AwrSettings) -> Tensor:
    """Return (B,) -min(exp(A / beta), max_weight) * log pi: advantage-weighted regression."""
    weights = torch.exp(terms.advantages / terms.beta).clamp(max=settings.max_weight)
    return -weights * terms.likelihood()


def hard_filter(terms: PolicyTerms, settings: HardFilterSettings) -> Tensor:
    """Return (B,) -log pi where A exceeds the threshold, else 0: AWR with a hard filter, as in DigiRL."""
    kept = (terms.advantages > settings.threshold).to(terms.logprobs.dtype)
    return -kept * terms.likelihood()


def webrl_released(terms: PolicyTerms) -> Tensor:
    """Return (B,) the loss of THUDM/WebRL's released trainer, one sample at a time; not MiRA eq. 12.

    Advantages count by sign alone and negative ones have no effect. The log-ratio is a mean over tokens;
    beta is 1, or 5 for actions the reference was sure of, and shrinks so that beta * ratio never passes 1.
    """
    reference = terms.under_reference()
    ratio = (terms.logprobs - reference) / terms.tokens
    sure = torch.exp(reference / terms.tokens) >= WEBRL_SURE
    beta = torch.where(sure, WEBRL_BETAS[1], WEBRL_BETAS[0]).to(ratio.dtype)
    beta = torch.minimum(beta, ratio.detach().abs().reciprocal())
    loss = F.smooth_l1_loss(beta * ratio, torch.ones_like(ratio), reduction="none") / beta
    return loss * (terms.advantages >= 0).to(ratio.dtype)


def clipped(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """Return -min(ratio * A, clip(ratio, 1 - low, 1 + high) * A), in the shape of both (PPO's objective, negated)."""
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def mgrpo(terms: TokenTerms, settings: MGrpoSettings) -> Tensor:
    """Return (B,) M-GRPO's loss of each action (WebAgent-R1, section 2.3): the mean over its tokens, weighted.

    A token's is the clipped ratio and ``kl_weight`` times exp(d) - d - 1 with d = log(pi_ref / pi). The weights make
    each trajectory weigh the same, however long it is.
    """
    ratio = torch.exp(terms.logprobs - terms.behaviour)
    apart = terms.under_reference() - terms.logprobs
    divergence = torch.exp(apart) - apart - 1
    losses = clipped(ratio, terms.advantages, settings.clip, settings.clip) + settings.kl_weight * divergence
    weighted = terms.mean_of_actions(losses)
    return weighted if terms.weights is None else weighted * terms.weights


def clipped_actions(terms: TokenTerms, settings: ClipSettings) -> Tensor:
    """Return (B,) the clipped ratio of whole actions (ADMIRE eq. 12), times the advantage of each."""
    ratio = torch.exp(terms.per_action(terms.logprobs - terms.behaviour))
    return clipped(ratio, terms.mean_of_actions(terms.advantages), settings.clip_low, settings.clip_high)


def clipped_tokens(terms: TokenTerms, settings: ClipSettings) -> Tensor:
    """Return (M,) the clipped ratio of each token, with room of its own above (DAPO, arXiv 2503.14476, eq. 8)."""
    ratio = torch.exp(terms.logprobs - terms.behaviour)
    return clipped(ratio, terms.advantages, settings.clip_low, settings.clip_high)


Counts = npt.NDArray[np.float32]


def per_step(tokens: Counts) -> float:
    """Return the number of actions of a batch, given the tokens (B,) of each."""
    return float(len(tokens))


def per_token(tokens: Counts) -> float:
    """Return the number of action tokens of a batch, given the tokens (B,) of each."""
    return float(tokens.sum())


@dataclass(frozen=True, slots=True)
class ActionLoss:
    """A loss of whole actions: ``of`` its own settings, and what the sum over a batch is divided by."""

    of: Callable[[LossSettings], Callable[[PolicyTerms], Tensor]]
    divide_by: Callable[[Counts], float] = per_step


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """A loss of action tokens with their behaviour log-probabilities; otherwise as ``ActionLoss``.

    It may return a number a token or, summed up itself, one an action.
    """

    of: Callable[[LossSettings], Callable[[TokenTerms], Tensor]]
    divide_by: Callable[[Counts], float] = per_token


PolicyLoss = ActionLoss | TokenLoss

POLICY_LOSSES: dict[str, PolicyLoss] = {
    "cross_entropy": ActionLoss(lambda settings: cross_entropy, divide_by=per_token),
    "squared_regression": ActionLoss(lambda settings: squared_regression),
    "exp_weighted": ActionLoss(lambda settings: exp_weighted),
    "awr": ActionLoss(lambda settings: partial(awr, settings=settings.awr)),
    "hard_filter": ActionLoss(lambda settings: partial(hard_filter, settings=settings.hard_filter)),
    "webrl_released": ActionLoss(lambda settings: webrl_released),
    "mgrpo": TokenLoss(lambda settings: partial(mgrpo, settings=settings.mgrpo), divide_by=per_step),
    "clipped_actions": TokenLoss(
        lambda settings: partial(clipped_actions, settings=settings.clipped_actions), divide_by=per_step
    ),
    "clipped_tokens": TokenLoss(lambda settings: partial(clipped_tokens, settings=settings.clipped_tokens)),
}
"""Policy losses by name."""


def value_loss(logits: Tensor, outcomes: Tensor) -> Tensor:
    """Return (B,) binary cross-entropy of sigmoid(logits) against outcomes in {0, 1} (MiRA eq. 4)."""
    return F.binary_cross_entropy_with_logits(logits, outcomes, reduction="none")


def potential_loss(logits: Tensor, progress: Tensor) -> Tensor:
    """Return (B,) squared error of sigmoid(logits) against progress labels in [0, 1] (MiRA eq. 3)."""
    return (torch.sigmoid(logits) - progress) ** 2
