"""Losses: one number per sample, never averaged here.

Owns the policy losses and the critics' losses as pure functions of tensors. The caller divides their sum by
the whole batch's count, so that a batch may be split into micro-batches without changing the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from learner.settings import ActorSettings

WEBRL_SURE = 0.8
"""Mean token probability from which WebRL's released loss raises its beta."""
WEBRL_BETAS = (1.0, 5.0)
"""WebRL's released beta for unsure and for sure actions."""


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """What a policy loss sees of B samples, each tensor (B,).

    ``logprobs``: log pi(a|s) summed over the action's tokens, with gradient. ``reference``: the same under
    the policy at the phase's start. ``advantages``: signed. ``tokens``: the number of action tokens.
    """

    logprobs: Tensor
    reference: Tensor
    advantages: Tensor
    tokens: Tensor

    def log_ratio(self, kind: str) -> Tensor:
        """Return log(pi / pi_ref) (B,): the ``sum`` over the action's tokens, or their ``mean``."""
        total = self.logprobs - self.reference
        if kind == "sum":
            return total
        if kind == "mean":
            return total / self.tokens
        raise ValueError(f"log_ratio must be 'sum' or 'mean', found {kind!r}")

    def likelihood(self, kind: str) -> Tensor:
        """Return log pi (B,), as a ``sum`` or a ``mean`` over the action's tokens."""
        return self.logprobs if kind == "sum" else self.logprobs / self.tokens


def cross_entropy(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) -log pi(a|s); the batch divides by its number of action tokens."""
    return -terms.logprobs


def squared_regression(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) (beta * log(pi/pi_ref) - A)^2 (eq. 12); signed, so a negative A lowers log pi."""
    return (settings.beta * terms.log_ratio(settings.log_ratio) - terms.advantages) ** 2


def exp_weighted(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) -exp(A / beta) * log pi: the KL form (eq. 15 and 21); it can only raise what was sampled."""
    return -torch.exp(terms.advantages / settings.beta) * terms.likelihood(settings.log_ratio)


def awr(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) -min(exp(A / beta), max_weight) * log pi: advantage-weighted regression."""
    weights = torch.exp(terms.advantages / settings.beta).clamp(max=settings.max_weight)
    return -weights * terms.likelihood(settings.log_ratio)


def hard_filter(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) -log pi where A exceeds the threshold, else 0: AWR with a hard filter, as in DigiRL."""
    kept = (terms.advantages > settings.filter_threshold).to(terms.logprobs.dtype)
    return -kept * terms.likelihood(settings.log_ratio)


def webrl_released(terms: PolicyTerms, settings: ActorSettings) -> Tensor:
    """Return (B,) the loss of THUDM/WebRL's released trainer, one sample at a time; not the paper's eq. 12.

    Advantages count by sign alone and negative ones have no effect. The log-ratio is a mean over tokens;
    beta is 1, or 5 for actions the reference was sure of, and shrinks so that beta * ratio never passes 1.
    """
    ratio = (terms.logprobs - terms.reference) / terms.tokens
    sure = torch.exp(terms.reference / terms.tokens) >= WEBRL_SURE
    beta = torch.where(sure, WEBRL_BETAS[1], WEBRL_BETAS[0]).to(ratio.dtype)
    beta = torch.minimum(beta, ratio.detach().abs().reciprocal())
    loss = F.smooth_l1_loss(beta * ratio, torch.ones_like(ratio), reduction="none") / beta
    return loss * (terms.advantages >= 0).to(ratio.dtype)


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A policy loss, what the batch's sum is divided by (``steps`` or ``tokens``) and whether it needs A."""

    function: Callable[[PolicyTerms, ActorSettings], Tensor]
    divide_by: str = "steps"
    needs_advantage: bool = True


POLICY_LOSSES: dict[str, PolicyLoss] = {
    "cross_entropy": PolicyLoss(cross_entropy, divide_by="tokens", needs_advantage=False),
    "squared_regression": PolicyLoss(squared_regression),
    "exp_weighted": PolicyLoss(exp_weighted),
    "awr": PolicyLoss(awr),
    "hard_filter": PolicyLoss(hard_filter),
    "webrl_released": PolicyLoss(webrl_released),
}
"""Policy losses by name."""


def value_loss(logits: Tensor, outcomes: Tensor) -> Tensor:
    """Return (B,) binary cross-entropy of sigmoid(logits) against outcomes in {0, 1} (eq. 4)."""
    return F.binary_cross_entropy_with_logits(logits, outcomes, reduction="none")


def potential_loss(logits: Tensor, progress: Tensor) -> Tensor:
    """Return (B,) squared error of sigmoid(logits) against progress labels in [0, 1] (eq. 3)."""
    return (torch.sigmoid(logits) - progress) ** 2
