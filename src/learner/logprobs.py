"""Log-probabilities of actions under a causal language model.

Owns the one way in which the learner reads the policy. The output layer is applied at action tokens alone,
which for short actions after long prompts saves most of its cost. Temperature is 1 where nothing else
is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from learner.batching import Batch, Sample, collate, micro_batches
from records.episodes import FloatArray


def token_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (N,) float32 log-probabilities of the batch's action tokens at temperature 1, in sample order."""
    return _chosen(_action_logits(model, batch), batch.targets)


def tempered_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (N,) float32 log-probabilities of the action tokens at their samples' temperatures."""
    return _chosen(_action_logits(model, batch) / batch.temperatures[batch.rows, None], batch.targets)


def _action_logits(model: PreTrainedModel, batch: Batch) -> Tensor:
    hidden = model.base_model(input_ids=batch.input_ids, use_cache=False).last_hidden_state
    return _logits(model, hidden, batch.rows, batch.columns)


def _logits(model: PreTrainedModel, hidden: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return (N, vocabulary) float32 logits by the hidden states at [row, column]."""
    logits: Tensor = model.get_output_embeddings()(hidden[rows, columns]).float()
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def _chosen(logits: Tensor, targets: Tensor) -> Tensor:
    """Return (N,) log-probabilities of ``targets`` (N,)."""
    return torch.log_softmax(logits, dim=-1).gather(1, targets[:, None]).squeeze(1)


def action_logprobs(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return (B,) log-probabilities of whole actions: sums over their tokens."""
    tokens = token_logprobs(model, batch)
    return torch.zeros(batch.size, device=tokens.device).index_add(0, batch.rows, tokens)


def action_and_prompt_logprobs(model: PreTrainedModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return (B,) log-probabilities of whole actions, and of their prompts after the first token, in one pass."""
    hidden = model.base_model(input_ids=batch.input_ids, use_cache=False).last_hidden_state
    none = torch.zeros(batch.size, device=hidden.device)
    taken = _chosen(_logits(model, hidden, batch.rows, batch.columns), batch.targets)
    actions = none.index_add(0, batch.rows, taken)
    following = torch.arange(batch.input_ids.shape[1] - 1, device=hidden.device)
    rows, columns = torch.nonzero(following[None] < batch.last_prompt[:, None], as_tuple=True)
    prompts = _chosen(_logits(model, hidden, rows, columns), batch.input_ids[rows, columns + 1])
    return actions, none.index_add(0, rows, prompts)


def score_samples(
    model: PreTrainedModel, samples: Sequence[Sample], *, pad_id: int, max_tokens: int
) -> list[FloatArray]:
    """Return for each sample its action tokens' log-probabilities (A,), in the order given, without gradient."""
    scores = _score(model, samples, pad_id, max_tokens, lambda batch: token_logprobs(model, batch)[None])
    return [score[0] for score in scores]


def score_both_temperatures(
    model: PreTrainedModel, samples: Sequence[Sample], *, pad_id: int, max_tokens: int
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return what ``score_samples`` returns, and the same at the samples' own temperatures, in one pass."""

    def both(batch: Batch) -> Tensor:
        logits = _action_logits(model, batch)
        tempered = logits / batch.temperatures[batch.rows, None]
        return torch.stack([_chosen(logits, batch.targets), _chosen(tempered, batch.targets)])

    scores = _score(model, samples, pad_id, max_tokens, both)
    return [score[0] for score in scores], [score[1] for score in scores]


def _score(
    model: PreTrainedModel, samples: Sequence[Sample], pad_id: int, max_tokens: int, read: Callable[[Batch], Tensor]
) -> list[FloatArray]:
    """Return for each sample (K, A) what ``read`` makes (K, N) of its batch, without gradient."""
    scores: list[FloatArray] = [np.zeros((0, 0), dtype=np.float32)] * len(samples)
    with torch.no_grad():
        for group in micro_batches([sample.length for sample in samples], max_tokens):
            members = [samples[i] for i in group]
            flat = read(collate(members, pad_id, model.device)).cpu().numpy()
            ends = np.cumsum([len(member.action_ids) for member in members])
            for i, piece in zip(group, np.split(flat, ends[:-1], axis=1), strict=True):
                scores[i] = piece.astype(np.float32)
    return scores


def check_output_layer(model: PreTrainedModel, tolerance: float = 1e-3) -> None:
    """Make sure that this module's short cut gives the model's own log-probabilities.

    Raises:
        ValueError: the architecture does more between its last hidden state and its logits than is known here.
    """
    vocabulary = int(model.get_output_embeddings().weight.shape[0])
    ids = (np.arange(8, dtype=np.int32) * 7 + 3) % vocabulary
    sample = Sample(prompt_ids=ids[:5], action_ids=ids[5:])
    with torch.no_grad():
        short = token_logprobs(model, collate([sample], 0, model.device))
        logits = model(input_ids=torch.from_numpy(ids.astype(np.int64))[None].to(model.device), use_cache=False).logits
    whole = torch.log_softmax(logits[0, 4:7].float(), dim=-1)
    expected = whole.gather(1, torch.from_numpy(ids[5:].astype(np.int64))[:, None].to(model.device)).squeeze(1)
    gap = float((short - expected).abs().max())
    if gap > tolerance:
        raise ValueError(
            f"{type(model).__name__}: log-probabilities from the last hidden state differ by {gap:.3g} from the "
            f"model's own (allowed: {tolerance:g}); teach learner.logprobs this architecture's output layer"
        )
