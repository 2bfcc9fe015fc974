"""The policy's objective: the data of an update, and a policy loss with the terms it asks for.

Owns ``ActorData``, and how ``PolicyTerms`` and ``TokenTerms`` are computed from it. Everything but the current policy's
own log-probabilities is fixed before the first update.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from learner.advantages import Advantages
from learner.arrays import Array
from learner.batching import Batch, Indices, Sample
from learner.credit import Credit
from learner.language_model import LanguageModel
from learner.logprobs import action_logprobs, score_both_temperatures, tempered_logprobs
from learner.losses import ActionLoss, Counts, PolicyLoss
from learner.optimiser import Compute
from learner.policy_terms import PolicyTerms, TokenTerms
from learner.settings import ActorSettings, LearnerSettings
from records.episodes import FloatArray

Objective = Callable[[Batch, Indices], Tensor]


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probabilities of N actions under one policy, an array (A,) for each: at temperature 1, and as sampled."""

    plain: list[FloatArray]
    sampled: list[FloatArray]

    @classmethod
    def under(cls, policy: LanguageModel, samples: Sequence[Sample], compute: Compute) -> Scores:
        """Score ``samples``, without gradient."""
        return cls(*score_both_temperatures(policy, samples, compute))

    def totals(self) -> npt.NDArray[np.float64]:
        """Return log pi (N,) of whole actions at temperature 1."""
        return np.asarray([score.sum(dtype=np.float64) for score in self.plain], dtype=np.float64)

    def at(self, decisions: npt.NDArray[np.integer]) -> Scores:
        """Return the scores of the actions with these indices."""
        return Scores([self.plain[i] for i in decisions], [self.sampled[i] for i in decisions])

    def divergence_of(self, other: Scores) -> float:
        """Return an estimate of KL(self || other) in nats a token, from tokens that were sampled under self.

        It is the mean of r - 1 - log r over tokens, r being how much likelier the other makes each: unbiased and never
        negative (Schulman 2020, "Approximating KL divergence").
        """
        logs = np.concatenate([np.zeros(0), *other.sampled]) - np.concatenate([np.zeros(0), *self.sampled])
        return float(np.mean(np.expm1(logs) - logs)) if len(logs) else 0.0


@dataclass(frozen=True, slots=True)
class ActorData:
    """N decisions to learn from.

    ``episodes`` (N,): the number of the trajectory of each. ``behaviour``: log-probabilities (A,) of each action as
    recorded when it was sampled. ``fresh`` (N,): whether it was sampled in this phase. ``outcomes`` (N,): of its
    trajectory. ``credit``: None where the policy loss uses none.
    """

    samples: Sequence[Sample]
    episodes: Indices
    behaviour: Sequence[FloatArray]
    fresh: npt.NDArray[np.bool_]
    outcomes: Array
    credit: Credit | None = None

    @property
    def advantages(self) -> Advantages:
        """The decisions' advantages; zeros where there is no credit."""
        return Advantages(np.zeros(len(self.samples))) if self.credit is None else self.credit.advantages

    @property
    def weights(self) -> Array:
        """A weight (N,) for each decision, with which every trajectory has the same in all; their mean is 1."""
        _, member, lengths = np.unique(self.episodes, return_inverse=True, return_counts=True)
        return np.asarray(len(self.samples) / max(len(lengths), 1) / lengths[member], dtype=np.float64)

    @property
    def tokens(self) -> Counts:
        """The number of action tokens (N,) of each decision, at least 1."""
        return np.asarray([max(len(sample.action_ids), 1) for sample in self.samples], dtype=np.float32)


def make_objective(
    actor: LanguageModel,
    data: ActorData,
    reference: Scores | None,
    policy_loss: PolicyLoss,
    settings: LearnerSettings,
    compute: Compute,
) -> Objective:
    """Return a function from a micro-batch and its samples' indices to losses, per action or per action token.

    ``reference`` holds the log-probabilities of the data's actions under the policy that the loss compares with.
    """
    if isinstance(policy_loss, ActionLoss):
        return _of_actions(actor, data, reference, policy_loss.of(settings.losses), settings.actor, compute)
    return _of_tokens(actor, data, reference, policy_loss.of(settings.losses), compute)


def _of_actions(
    actor: LanguageModel,
    data: ActorData,
    reference: Scores | None,
    loss: Callable[[PolicyTerms], Tensor],
    settings: ActorSettings,
    compute: Compute,
) -> Objective:
    def column(values: Array) -> Tensor:
        return torch.from_numpy(np.asarray(values, dtype=np.float32)).to(compute.device)

    compared = None if reference is None else column(reference.totals())
    advantages, tokens = column(data.advantages.steps), column(data.tokens)

    def losses(batch: Batch, members: Indices) -> Tensor:
        at = torch.from_numpy(members).to(compute.device)
        terms = PolicyTerms(
            logprobs=actor(action_logprobs, batch),
            reference=None if compared is None else compared[at],
            advantages=advantages[at],
            tokens=tokens[at],
            beta=settings.beta,
            log_ratio=settings.log_ratio,
        )
        return loss(terms)

    return losses


def _of_tokens(
    actor: LanguageModel,
    data: ActorData,
    reference: Scores | None,
    loss: Callable[[TokenTerms], Tensor],
    compute: Compute,
) -> Objective:
    advantages = data.advantages.per_token([len(sample.action_ids) for sample in data.samples])
    weights = torch.from_numpy(np.asarray(data.weights, dtype=np.float32)).to(compute.device)

    def gathered(per_action: Sequence[Array], members: Indices) -> Tensor:
        joined = np.concatenate([per_action[i] for i in members]).astype(np.float32)
        return torch.from_numpy(joined).to(compute.device)

    def losses(batch: Batch, members: Indices) -> Tensor:
        terms = TokenTerms(
            logprobs=actor(tempered_logprobs, batch),
            behaviour=gathered(data.behaviour, members),
            reference=None if reference is None else gathered(reference.sampled, members),
            advantages=gathered(advantages, members),
            rows=batch.rows,
            weights=weights[torch.from_numpy(members).to(compute.device)],
        )
        return loss(terms)

    return losses
