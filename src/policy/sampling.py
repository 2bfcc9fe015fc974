"""Choose the next token of each reply from its logits.

Owns ``Sampler``, one reply's own stream of random numbers, and ``choose``, which serves a batch of
them. A choice depends on the reply's seed, its step and its logits alone, never on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from policy.client import Sampling


class Sampler:
    """One reply's decoding settings and its uniform random numbers, drawn from ``sampling.seed``."""

    def __init__(self, sampling: Sampling) -> None:
        if sampling.temperature < 0 or not 0 < sampling.top_p <= 1 or sampling.max_new_tokens < 1:
            raise ValueError(f"expected temperature >= 0, 0 < top_p <= 1 and max_new_tokens >= 1, found {sampling}")
        self.sampling = sampling
        self._generator = np.random.default_rng(sampling.seed) if sampling.temperature > 0 else None

    def uniform(self) -> float:
        """Return the next number in [0, 1); 0 when greedy, which needs none."""
        return 0.0 if self._generator is None else float(self._generator.random())


def choose(logits: torch.Tensor, samplers: Sequence[Sampler]) -> tuple[list[int], list[float]]:
    """Return one token id and its natural-log probability per row of ``logits`` (rows, vocabulary).

    Log-probabilities are those of the distribution at the row's temperature (at temperature 1 when
    greedy) before ``top_p`` narrows it, so that a learner can recompute them from its own logits.
    """
    raw = logits.float()
    temperatures = torch.tensor([c.sampling.temperature or 1.0 for c in samplers], device=raw.device)
    logprobs = torch.log_softmax(raw / temperatures[:, None], dim=-1)
    tokens = raw.argmax(dim=-1)
    sampled = [i for i, c in enumerate(samplers) if c.sampling.temperature > 0]
    if sampled:
        rows = torch.tensor(sampled, device=raw.device)
        uniforms = torch.tensor([samplers[i].uniform() for i in sampled], dtype=torch.float64, device=raw.device)
        top_p = [samplers[i].sampling.top_p for i in sampled]
        tokens[rows] = _invert(_nucleus(logprobs[rows].double().exp(), top_p), uniforms)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0]
    return tokens.tolist(), chosen.tolist()


def _invert(weights: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Return, per row, the token at quantile ``uniforms`` (rows,) of unnormalised ``weights`` (rows, vocabulary)."""
    cumulative = weights.cumsum(dim=-1)
    targets = uniforms * cumulative[:, -1]
    return torch.searchsorted(cumulative, targets[:, None], right=True)[:, 0].clamp_(max=weights.shape[1] - 1)


def _nucleus(probabilities: torch.Tensor, top_p: list[float]) -> torch.Tensor:
    """Zero every token outside the smallest set of most likely tokens that holds ``top_p``."""
    if all(p >= 1 for p in top_p):
        return probabilities
    limits = torch.tensor(top_p, dtype=probabilities.dtype, device=probabilities.device)
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(dim=-1) - ordered
    outside = (before >= limits[:, None]) & (limits[:, None] < 1)
    outside[:, 0] = False
    return probabilities.masked_fill(outside.gather(1, order.argsort(dim=-1)), 0.0)
