"""Losses with numbers worked by hand, and their gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from learner.algorithms import LOSS_NEEDS
from learner.losses import (
    POLICY_LOSSES,
    ActionLoss,
    awr,
    cross_entropy,
    exp_weighted,
    hard_filter,
    potential_loss,
    squared_regression,
    value_loss,
    webrl_released,
)
from learner.policy_terms import PolicyTerms
from learner.settings import ActorSettings, AwrSettings, HardFilterSettings, LossSettings


def terms(
    logprobs: list[float],
    reference: list[float],
    advantages: list[float],
    tokens: list[int] | None = None,
    **own: Any,
) -> PolicyTerms:
    def tensor(values: list[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64)

    counts = tensor([float(n) for n in tokens or [1] * len(logprobs)])
    return PolicyTerms(tensor(logprobs).requires_grad_(), tensor(reference), tensor(advantages), counts, **own)


def test_squared_regression_by_hand() -> None:
    # log-ratio -2 - -3 = 1, beta 0.5: (0.5 - 0.8)^2 = 0.09;  log-ratio -1 - -1 = 0: (0 + 0.4)^2 = 0.16.
    losses = squared_regression(terms([-2.0, -1.0], [-3.0, -1.0], [0.8, -0.4], beta=0.5))
    assert losses.tolist() == pytest.approx([0.09, 0.16])


def test_squared_regression_on_token_means_by_hand() -> None:
    # (-2 + 3) / 4 tokens = 0.25, beta 0.5: (0.125 - 0.8)^2 = 0.455625.
    sample = terms([-2.0], [-3.0], [0.8], [4], beta=0.5, log_ratio="mean")
    assert squared_regression(sample).item() == pytest.approx(0.455625)


def test_gradient_is_equation_13() -> None:
    """Autograd's gradient of eq. 12 in log pi is -2 beta (A - beta log(pi/pi_ref)), eq. 13, averaged."""
    beta = 0.7
    sample = terms([-2.0, -1.0, -4.0], [-3.0, -1.0, -2.5], [0.8, -0.4, 0.1], beta=beta)
    squared_regression(sample).mean().backward()
    ratio = sample.logprobs.detach() - sample.reference
    by_hand = -2 * beta * (sample.advantages - beta * ratio) / 3
    torch.testing.assert_close(sample.logprobs.grad, by_hand, rtol=1e-12, atol=1e-12)


def test_gradient_vanishes_at_the_optimum() -> None:
    """At log(pi/pi_ref) = A / beta (eq. 9) nothing is left to do."""
    sample = terms([-1.0 + 0.3 / 0.5], [-1.0], [0.3], beta=0.5)
    squared_regression(sample).sum().backward()
    assert sample.logprobs.grad is not None
    assert abs(sample.logprobs.grad.item()) < 1e-12


def test_exp_weighted_by_hand() -> None:
    # exp(1 / 0.5) * 2 = 2 e^2;  exp(-0.5 / 0.5) * 1 = 1 / e: never negative, so nothing is ever lowered.
    losses = exp_weighted(terms([-2.0, -1.0], [0.0, 0.0], [1.0, -0.5], beta=0.5))
    assert losses.tolist() == pytest.approx([2 * math.e**2, 1 / math.e])


def test_awr_clips_the_weight() -> None:
    # exp(1 / 0.1) = 22026 is cut to 20, times 2;  exp(0) = 1, times 1.
    losses = awr(terms([-2.0, -1.0], [0.0, 0.0], [1.0, 0.0], beta=0.1), AwrSettings(max_weight=20.0))
    assert losses.tolist() == pytest.approx([40.0, 1.0])


def test_hard_filter_leaves_out_what_is_not_better() -> None:
    losses = hard_filter(terms([-2.0, -1.0, -3.0], [0.0] * 3, [0.1, 0.0, -1.0]), HardFilterSettings())
    assert losses.tolist() == [2.0, 0.0, 0.0]


def test_cross_entropy_is_divided_by_tokens() -> None:
    assert cross_entropy(terms([-2.0], [0.0], [0.0], [4])).tolist() == [2.0]
    tokens = np.array([4, 2, 1], dtype=np.float32)
    assert POLICY_LOSSES["cross_entropy"].divide_by(tokens) == 7.0
    assert POLICY_LOSSES["clipped_tokens"].divide_by(tokens) == 7.0
    others = set(POLICY_LOSSES) - {"cross_entropy", "clipped_tokens"}
    assert {POLICY_LOSSES[name].divide_by(tokens) for name in others} == {3.0}


def test_webrl_released_by_hand() -> None:
    # 1: ratio (-2 + 3) / 2 = 0.5; ref prob exp(-1.5) = 0.22 -> beta 1 (cap 1 / 0.5 = 2); 0.5 * (0.5 - 1)^2 = 0.125.
    # 2: ratio (-0.2 + 0.4) / 2 = 0.1; ref prob exp(-0.2) = 0.82 -> beta 5 (cap 10); 0.5 * (0.5 - 1)^2 / 5 = 0.025.
    # 3: ratio 4 / 1 -> beta capped at 1/4, beta * ratio = 1: nothing left to do.  4: negative: no effect.
    # 5: as 1, with an advantage of 0, which counts as positive.
    losses = webrl_released(
        terms(
            [-2.0, -0.2, -1.0, -1.0, -2.0], [-3.0, -0.4, -5.0, -2.0, -3.0], [0.3, 0.1, 1.0, -0.2, 0.0], [2, 2, 1, 1, 2]
        )
    )
    assert losses.tolist() == pytest.approx([0.125, 0.025, 0.0, 0.0, 0.125])


def test_webrl_released_stands_at_the_reference() -> None:
    """A log-ratio of exactly 0, as at the phase's start, gives a finite loss and gradient."""
    sample = terms([-3.0], [-3.0], [0.5])
    webrl_released(sample).sum().backward()
    assert sample.logprobs.grad is not None
    assert sample.logprobs.grad.item() == pytest.approx(-1.0)


def test_value_loss_by_hand() -> None:
    # sigmoid(0) = 0.5: -ln 0.5 either way;  sigmoid(ln 3) = 0.75: -ln 0.75 for a success.
    logits = torch.tensor([0.0, math.log(3.0)], dtype=torch.float64)
    losses = value_loss(logits, torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert losses.tolist() == pytest.approx([math.log(2), -math.log(0.75)])


def test_potential_loss_by_hand() -> None:
    # sigmoid(ln 3) = 0.75 against 0.5: 0.25^2.
    logits = torch.tensor([math.log(3.0)], dtype=torch.float64)
    assert potential_loss(logits, torch.tensor([0.5], dtype=torch.float64)).item() == pytest.approx(0.0625)


def test_unknown_log_ratio_is_an_error() -> None:
    with pytest.raises(ValueError, match="'sum' or 'mean'"):
        ActorSettings(log_ratio="max")


def test_a_loss_that_compares_with_a_reference_says_so() -> None:
    alone = replace(terms([-1.0], [-1.0], [0.0]), reference=None)
    for name, row in POLICY_LOSSES.items():
        if not isinstance(row, ActionLoss):
            continue  # those of tokens: tests/learner/test_groups.py
        loss = row.of(LossSettings())
        if LOSS_NEEDS[name].reference:
            with pytest.raises(ValueError, match="expected a reference policy"):
                loss(alone)
        else:
            assert loss(alone).shape == (1,)
