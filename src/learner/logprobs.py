"""Log-probabilities of actions under a causal language model.

Owns the one way in which the learner reads the policy. The output layer is applied at the tokens asked for alone, a
chunk at a time, so that logits are never there for all of them. Temperature is 1 where nothing else is said.
Functions of (model, batch) are what ``LanguageModel`` is asked to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from learner.attention import SEGMENTS
from learner.batching import Batch, Sample, collate, micro_batches
from learner.language_model import LanguageModel, hidden_states
from learner.memory import LOGITS_AT_ONCE
from learner.optimiser import Compute
from records.episodes import FloatArray


def token_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (M,) float32 log-probabilities of the batch's action tokens at temperature 1, in sample order."""
    return _logprobs(model, hidden_states(model.base_model, batch)[batch.at], batch.targets, _plain)


def tempered_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (M,) float32 log-probabilities of the action tokens at their samples' temperatures."""
    states = hidden_states(model.base_model, batch)[batch.at]
    return _logprobs(model, states, batch.targets, _tempered, batch.temperatures[batch.rows])


def action_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (B,) log-probabilities of whole actions: sums over their tokens."""
    return _sums(token_logprobs(model, batch), batch.rows, batch)


def action_and_prompt_logprobs(model: PreTrainedModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return (B,) log-probabilities of whole actions, and of their prompts after the first token, in one pass."""
    hidden = hidden_states(model.base_model, batch)
    actions = _logprobs(model, hidden[batch.at], batch.targets, _plain)
    before, after, rows = batch.prompt_pairs()
    prompts = _logprobs(model, hidden[before], batch.input_ids[0, after], _plain)
    return _sums(actions, batch.rows, batch), _sums(prompts, rows, batch)


def both_temperatures(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (2, M): ``token_logprobs`` and ``tempered_logprobs``, in one pass."""
    states = hidden_states(model.base_model, batch)[batch.at]
    return _logprobs(model, states, batch.targets, _both, batch.temperatures[batch.rows])


def _sums(tokens: Tensor, rows: Tensor, batch: Batch) -> Tensor:
    """Return (B,) sums over the tokens of each sample."""
    return torch.zeros(batch.size, device=tokens.device).index_add(0, rows, tokens)


def _plain(logits: Tensor, targets: Tensor) -> Tensor:
    """Return (N,) log-probabilities of ``targets`` (N,)."""
    return torch.log_softmax(logits, dim=-1).gather(1, targets[:, None]).squeeze(1)


def _tempered(logits: Tensor, targets: Tensor, temperatures: Tensor) -> Tensor:
    return _plain(logits / temperatures[:, None], targets)


def _both(logits: Tensor, targets: Tensor, temperatures: Tensor) -> Tensor:
    return torch.stack([_plain(logits, targets), _tempered(logits, targets, temperatures)])


def _logprobs(
    model: PreTrainedModel, states: Tensor, targets: Tensor, read: Callable[..., Tensor], *also: Tensor
) -> Tensor:
    """Return (..., N) what ``read`` makes of the logits after ``states`` (N, width), of ``targets`` and ``also`` (N,).

    Where that takes several chunks, a chunk's logits are computed again for its gradient.
    """
    head = model.get_output_embeddings()
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)

    def of_chunk(states: Tensor, *others: Tensor) -> Tensor:
        logits = _logits(head, states)
        return read(logits if cap is None else torch.tanh(logits / cap) * cap, *others)

    size = max(LOGITS_AT_ONCE // int(head.weight.shape[0]), 1)
    if len(targets) <= size:
        return of_chunk(states, targets, *also)
    chunks = zip(*(values.split(size) for values in (states, targets, *also)), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([of_chunk(*chunk) for chunk in chunks], dim=-1)
    parts = [checkpoint(of_chunk, *chunk, use_reentrant=False, preserve_rng_state=False) for chunk in chunks]
    return torch.cat(parts, dim=-1)


def _logits(head: nn.Linear, states: Tensor) -> Tensor:
    """Return the logits (N, vocabulary), in float32 under any precision: less would round more than an update moves."""
    bias = None if head.bias is None else head.bias.float()
    with torch.autocast(states.device.type, enabled=False):
        return F.linear(states.float(), head.weight.float(), bias)


def score_samples(model: LanguageModel, samples: Sequence[Sample], compute: Compute) -> list[FloatArray]:
    """Return for each sample its action tokens' log-probabilities (A,), in the order given, without gradient."""
    return [score[0] for score in _score(model, samples, compute, 1, lambda *args: token_logprobs(*args)[None])]


def score_both_temperatures(
    model: LanguageModel, samples: Sequence[Sample], compute: Compute
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return what ``score_samples`` returns, and the same at the samples' own temperatures, in one pass."""
    scores = _score(model, samples, compute, 2, both_temperatures)
    return [score[0] for score in scores], [score[1] for score in scores]


def _score(
    model: LanguageModel,
    samples: Sequence[Sample],
    compute: Compute,
    kinds: int,
    read: Callable[[PreTrainedModel, Batch], Tensor],
) -> list[FloatArray]:
    """Return for each sample (K, A) what ``read`` makes (K, M) of its batch, without gradient; K is ``kinds``."""
    ends = np.cumsum([0, *(len(sample.action_ids) for sample in samples)])
    scores = np.zeros((kinds, int(ends[-1])), dtype=np.float32)
    with torch.no_grad(), compute.autocast():
        for group, counts in compute.ranks.shard(micro_batches(samples, compute.max_tokens)):
            found = model(read, collate([samples[i] for i in group], compute.device))
            if counts:
                scores[:, ends[group[0]] : ends[group[-1] + 1]] = found.cpu().numpy()
            compute.meter.sign()
    return np.split(compute.ranks.all_reduce_sum(scores), ends[1:-1], axis=1) if samples else []


def check_reading(model: LanguageModel, tolerance: float = 1e-3) -> None:
    """Make sure that packed rows and this module's short cut give the model's own log-probabilities.

    Raises:
        ValueError: the architecture does more in its attention or after its last hidden state than is known here.
    """
    own = model.model
    ids = (np.arange(12, dtype=np.int32) * 7 + 3) % int(own.get_output_embeddings().weight.shape[0])
    samples = [Sample(ids[:6], ids[6:9]), Sample(np.concatenate([ids[:5], ids[8:10]]), ids[9:])]
    expected = [_alone(own, sample) for sample in samples]
    gap = max(
        float(np.abs(found - true).max())
        for found, true in zip(score_samples(model, samples, Compute(model.device, 64)), expected, strict=True)
    )
    if not gap <= tolerance:
        raise ValueError(
            f"{type(own).__name__}: the learner's log-probabilities differ by {gap:.3g} from the model's own (allowed: "
            f"{tolerance:g}); teach learner.attention its attention, or learner.logprobs its output layer"
        )


@torch.no_grad()
def _alone(model: PreTrainedModel, sample: Sample) -> FloatArray:
    """Return the model's own log-probabilities (A,) of one sample, by its own forward pass and attention."""
    model.set_attn_implementation("sdpa")
    try:
        ids = torch.from_numpy(sample.read_ids.astype(np.int64))[None].to(model.device)
        logits = model(input_ids=ids, use_cache=False).logits[0, len(sample.prompt_ids) - 1 :]
    finally:
        model.set_attn_implementation(SEGMENTS)
    targets = torch.from_numpy(sample.action_ids.astype(np.int64)).to(model.device)
    found: FloatArray = _plain(logits.float(), targets).cpu().numpy()
    return found
