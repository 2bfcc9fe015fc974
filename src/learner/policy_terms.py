"""What a policy loss sees of a micro-batch: numbers per action, or per action token.

Owns ``PolicyTerms`` and ``TokenTerms``. Tensors only; computed in ``learner.objective``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """What a policy loss sees of B actions, each tensor (B,).

    ``logprobs``: log pi(a|s) summed over the action's tokens, with gradient. ``reference``: the same under the
    algorithm's reference policy; None where it has none. ``advantages``: signed. ``tokens``: the number of action
    tokens. ``beta`` and ``log_ratio`` are those of ``ActorSettings``.
    """

    logprobs: Tensor
    reference: Tensor | None
    advantages: Tensor
    tokens: Tensor
    beta: float = 1.0
    log_ratio: str = "sum"

    def ratio(self) -> Tensor:
        """Return log(pi / pi_ref) (B,), summed over an action's tokens, or their mean by ``log_ratio``."""
        total = self.logprobs - self.under_reference()
        return total if self.log_ratio == "sum" else total / self.tokens

    def likelihood(self) -> Tensor:
        """Return log pi (B,), summed over an action's tokens, or their mean by ``log_ratio``."""
        return self.logprobs if self.log_ratio == "sum" else self.logprobs / self.tokens

    def under_reference(self) -> Tensor:
        """Return log pi_ref (B,), summed over an action's tokens; raise ``ValueError`` where there is no reference."""
        if self.reference is None:
            raise ValueError(
                "expected a reference policy, found none: say in algorithms.LOSS_NEEDS that this loss has one"
            )
        return self.reference


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What a loss sees of M action tokens, each tensor (M,), in the order of the actions.

    ``logprobs``: log pi of the token at the temperature it was sampled at, with gradient. ``behaviour``: the same
    under the policy that sampled it, as recorded. ``reference``: the same under the algorithm's reference policy;
    None where it has none. ``advantages``: signed. ``rows``: which action of the micro-batch the token is of.
    ``weights`` (B,): of each action, so that all trajectories together weigh the same; their mean over a phase is 1.
    """

    logprobs: Tensor
    behaviour: Tensor
    reference: Tensor | None
    advantages: Tensor
    rows: Tensor
    weights: Tensor | None = None

    def per_action(self, values: Tensor) -> Tensor:
        """Return the sum (B,) of ``values`` (M,) over each action's tokens."""
        return torch.zeros(self._actions(), dtype=values.dtype, device=values.device).index_add(0, self.rows, values)

    def mean_of_actions(self, values: Tensor) -> Tensor:
        """Return (B,) the mean of ``values`` (M,) over each action's tokens."""
        return self.per_action(values) / self.per_action(torch.ones_like(values))

    def under_reference(self) -> Tensor:
        """Return log pi_ref (M,); raise ``ValueError`` where there is no reference."""
        if self.reference is None:
            raise ValueError(
                "expected a reference policy, found none: say in algorithms.LOSS_NEEDS that this loss has one"
            )
        return self.reference

    def _actions(self) -> int:
        return int(self.rows.max()) + 1 if len(self.rows) else 0
