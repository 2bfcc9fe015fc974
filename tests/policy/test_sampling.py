"""Choices follow the distribution they claim, and report its log-probabilities."""

from __future__ import annotations

import math

import pytest
import torch

from policy.client import Sampling
from policy.sampling import Sampler, choose

LOGITS = torch.tensor([math.log(0.5), math.log(0.3), math.log(0.15), math.log(0.05)])


def frequencies(sampling: Sampling, draws: int = 4000) -> list[float]:
    sampler = Sampler(sampling)
    counts = [0] * 4
    for _ in range(draws):
        (token,), _ = choose(LOGITS[None], [sampler])
        counts[token] += 1
    return [count / draws for count in counts]


def test_samples_follow_the_softmax() -> None:
    assert frequencies(Sampling(seed=1)) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)


def test_temperature_sharpens() -> None:
    weights = [0.25, 0.09, 0.0225, 0.0025]
    assert frequencies(Sampling(temperature=0.5, seed=1)) == pytest.approx(
        [weight / sum(weights) for weight in weights], abs=0.03
    )


def test_top_p_keeps_the_smallest_set_that_holds_it() -> None:
    assert frequencies(Sampling(top_p=0.6, seed=1)) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert frequencies(Sampling(top_p=0.01, seed=1), 50) == [1, 0, 0, 0]


def test_a_batch_gives_each_row_what_it_would_get_alone() -> None:
    settings = [Sampling(temperature=t, top_p=p, seed=s) for s, (t, p) in enumerate([(0, 1), (1, 1), (2, 0.7), (1, 1)])]
    logits = torch.randn(4, 50, generator=torch.Generator().manual_seed(0))
    together, alone = [Sampler(s) for s in settings], [Sampler(s) for s in settings]
    for _ in range(5):
        tokens, logprobs = choose(logits, together)
        single = [choose(row[None], [sampler]) for row, sampler in zip(logits, alone, strict=True)]
        assert tokens == [ids[0] for ids, _ in single]
        assert logprobs == pytest.approx([values[0] for _, values in single])


def test_logprobs_are_of_the_tempered_distribution_and_of_temperature_one_when_greedy() -> None:
    (token,), (logprob,) = choose(LOGITS[None], [Sampler(Sampling(temperature=0.5, seed=3))])
    assert logprob == pytest.approx(float(torch.log_softmax(LOGITS / 0.5, -1)[token]))
    (token,), (logprob,) = choose(LOGITS[None], [Sampler(Sampling(temperature=0))])
    assert (token, logprob) == (0, pytest.approx(math.log(0.5)))
