"""From steps to padded micro-batches.

Owns the order of samples and their padding. Invariants: every sample is in exactly one micro-batch of its
batch; prompts are padded on the right, so with causal attention no real position sees padding and no
attention mask is needed; the order depends on nothing but lengths and the generator passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from records.episodes import IntArray

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One decision: ``prompt_ids`` (P,) and ``action_ids`` (A,), both int32; A is 0 for a critic's state.

    ``temperature`` is the one under which the action's log-probabilities were recorded.
    """

    prompt_ids: IntArray
    action_ids: IntArray
    temperature: float = 1.0

    @property
    def length(self) -> int:
        """Tokens that a forward pass reads: the action's last token is only predicted."""
        return len(self.prompt_ids) + max(len(self.action_ids) - 1, 0)


@dataclass(frozen=True, slots=True)
class Batch:
    """B right-padded samples.

    ``input_ids`` (B, L); ``rows``, ``columns`` and ``targets`` (N,) name the N action tokens: the hidden state
    at [row, column] predicts the target. ``last_prompt`` (B,) is the column of each prompt's last token,
    ``temperatures`` (B,) are the samples'.
    """

    input_ids: Tensor
    rows: Tensor
    columns: Tensor
    targets: Tensor
    last_prompt: Tensor
    temperatures: Tensor

    @property
    def size(self) -> int:
        """Number of samples B."""
        return int(self.input_ids.shape[0])


def collate(samples: Sequence[Sample], pad_id: int, device: torch.device) -> Batch:
    """Pad ``samples`` on the right with ``pad_id`` and locate their action tokens."""
    width = max(sample.length for sample in samples)
    ids = np.full((len(samples), width), pad_id, dtype=np.int64)
    rows, columns, targets, last = [], [], [], np.zeros(len(samples), dtype=np.int64)
    for row, sample in enumerate(samples):
        prompt, action = len(sample.prompt_ids), len(sample.action_ids)
        ids[row, :prompt] = sample.prompt_ids
        if action > 1:
            ids[row, prompt : prompt + action - 1] = sample.action_ids[:-1]
        rows.append(np.full(action, row, dtype=np.int64))
        columns.append(np.arange(prompt - 1, prompt - 1 + action, dtype=np.int64))
        targets.append(np.asarray(sample.action_ids, dtype=np.int64))
        last[row] = prompt - 1
    return Batch(
        input_ids=torch.from_numpy(ids).to(device),
        rows=torch.from_numpy(np.concatenate(rows)).to(device),
        columns=torch.from_numpy(np.concatenate(columns)).to(device),
        targets=torch.from_numpy(np.concatenate(targets)).to(device),
        last_prompt=torch.from_numpy(last).to(device),
        temperatures=torch.tensor([sample.temperature for sample in samples], dtype=torch.float32, device=device),
    )


def micro_batches(lengths: Sequence[int] | npt.NDArray[np.integer], max_tokens: int) -> list[Indices]:
    """Split samples, longest first, so that each padded micro-batch has at most ``max_tokens`` tokens.

    A sample that is longer than ``max_tokens`` gets a micro-batch of its own.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    groups: list[Indices] = []
    start = 0
    while start < len(order):
        count = max(1, max_tokens // max(int(lengths[order[start]]), 1))
        groups.append(order[start : start + count])
        start += count
    return groups


def epoch_batches(
    lengths: Sequence[int] | npt.NDArray[np.integer], batch_size: int, generator: np.random.Generator, window: int
) -> list[Indices]:
    """Return one epoch's batches in random order, each of ``batch_size`` samples but for one.

    Samples are shuffled, then sorted by length within windows of ``window`` batches, which saves padding and
    keeps batches random; ``window`` 1 sorts nothing across batches.
    """
    order = generator.permutation(len(lengths))
    size = np.asarray(lengths, dtype=np.int64)
    batches: list[Indices] = []
    for start in range(0, len(order), batch_size * window):
        chunk = order[start : start + batch_size * window]
        chunk = chunk[np.argsort(size[chunk], kind="stable")]
        batches.extend(chunk[at : at + batch_size] for at in range(0, len(chunk), batch_size))
    return [batches[i] for i in generator.permutation(len(batches))]


def endless_batches(
    lengths: Sequence[int] | npt.NDArray[np.integer], batch_size: int, generator: np.random.Generator, window: int
) -> Iterator[Indices]:
    """Yield batches of epoch after epoch, without end."""
    if len(lengths) == 0:
        raise ValueError("no samples to train on: expected at least one step with an action")
    while True:
        yield from epoch_batches(lengths, batch_size, generator, window)
