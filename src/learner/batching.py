"""From steps to packed micro-batches.

Owns the order of samples and how they share a row. Invariants: every sample is in exactly one micro-batch of its
batch; samples lie behind one another without padding; the head that a sample shares with the one before it is there
once; the order depends on nothing but episodes, lengths and the generator passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from learner.attention import Segments
from policy.kept_prompts import common_length
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

    @property
    def read_ids(self) -> IntArray:
        """The tokens (``length``,) that a forward pass reads."""
        return np.concatenate([self.prompt_ids, self.action_ids[:-1]])

    def shared_with(self, other: Sample) -> int:
        """Return how many of the tokens that are read at the head of both are the same."""
        return common_length(self.read_ids, other.read_ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """B samples in one row of N tokens, of which M actions' tokens are to be predicted.

    ``input_ids`` and ``position_ids`` (1, N), the latter counted within each sample. ``at``, ``rows`` and ``targets``
    (M,): the hidden state at ``at`` predicts the target, a token of the action of sample ``rows``. ``last_prompt`` (B,)
    is the place of each prompt's last token, which critics read. ``paths`` holds where each sample's ``lengths[i]``
    tokens lie in the row, one sample after the other. ``temperatures`` (B,) are the samples' own.
    """

    input_ids: Tensor
    position_ids: Tensor
    segments: Segments
    at: Tensor
    rows: Tensor
    targets: Tensor
    last_prompt: Tensor
    paths: Tensor
    lengths: list[int]
    temperatures: Tensor

    @property
    def size(self) -> int:
        """Number of samples B."""
        return len(self.lengths)

    def prompt_pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (K,) places in the row of prompts' tokens but their last, of what follows them, and their rows."""
        counts = torch.tensor(self.lengths, device=self.paths.device)
        of_row = torch.arange(self.size, device=self.paths.device).repeat_interleave(counts)
        position = self.position_ids[0]
        in_prompt = position[self.paths] <= position[self.last_prompt][of_row]
        inner = torch.nonzero((of_row[:-1] == of_row[1:]) & in_prompt[1:]).squeeze(1)
        return self.paths[inner], self.paths[inner + 1], of_row[inner]


def collate(samples: Sequence[Sample], device: torch.device) -> Batch:
    """Lay ``samples`` behind one another, each without the head that the one before it has too, and locate actions."""
    ids: list[IntArray] = []
    positions: list[Indices] = []
    paths: list[Indices] = []
    at: list[Indices] = []
    owned: list[int] = []
    end = 0
    for i, sample in enumerate(samples):
        shared = sample.shared_with(samples[i - 1]) if i else 0
        own = sample.length - shared
        path = np.concatenate([paths[-1][:shared] if i else np.zeros(0, dtype=np.int64), np.arange(end, end + own)])
        end += own
        ids.append(sample.read_ids[shared:])
        positions.append(np.arange(shared, sample.length))
        prompt = len(sample.prompt_ids)
        at.append(path[prompt - 1 : prompt - 1 + len(sample.action_ids)])
        paths.append(path)
        owned.append(own)

    def tensor(values: Sequence[npt.NDArray[np.integer]]) -> Tensor:
        return torch.from_numpy(np.concatenate(values).astype(np.int64)).to(device)

    lengths = [sample.length for sample in samples]
    # A sample that owns nothing asks for nothing; what it shares is there.
    asking = [i for i, own in enumerate(owned) if own]
    seen = tensor([paths[i] for i in asking]) if end < sum(lengths) else None
    return Batch(
        input_ids=tensor(ids)[None],
        position_ids=tensor(positions)[None],
        segments=Segments([owned[i] for i in asking], [lengths[i] for i in asking], seen, device),
        at=tensor(at),
        rows=tensor([np.full(len(sample.action_ids), row) for row, sample in enumerate(samples)]),
        targets=tensor([sample.action_ids for sample in samples]),
        last_prompt=tensor([path[[len(s.prompt_ids) - 1]] for path, s in zip(paths, samples, strict=True)]),
        paths=tensor(paths),
        lengths=lengths,
        temperatures=torch.tensor([sample.temperature for sample in samples], dtype=torch.float32, device=device),
    )


def micro_batches(samples: Sequence[Sample], max_tokens: int) -> list[Indices]:
    """Split samples, in their order, so that each micro-batch's row has at most ``max_tokens`` tokens.

    A sample that is longer than ``max_tokens`` gets a micro-batch of its own.
    """
    groups: list[list[int]] = []
    tokens = 0
    for i, sample in enumerate(samples):
        own = sample.length - (sample.shared_with(samples[i - 1]) if i and groups else 0)
        if groups and tokens + own <= max_tokens:
            groups[-1].append(i)
            tokens += own
        else:
            groups.append([i])
            tokens = sample.length
    return [np.asarray(group, dtype=np.int64) for group in groups]


def epoch_batches(episodes: Indices, batch_size: int, generator: np.random.Generator, shuffle: str) -> list[Indices]:
    """Return one epoch's batches, each of ``batch_size`` samples but for the last.

    ``episodes`` (N,) says to which episode each sample belongs. ``shuffle`` ``steps`` draws every sample by itself;
    ``episodes`` draws episodes, so that steps with a common head come into the same batch. Within a batch samples are
    in their own order.
    """
    if shuffle == "steps":
        order = generator.permutation(len(episodes))
    else:
        _, number = np.unique(episodes, return_inverse=True)
        order = np.argsort(generator.permutation(int(number.max(initial=-1)) + 1)[number], kind="stable")
    return [np.sort(order[at : at + batch_size]) for at in range(0, len(order), batch_size)]


def drawn_episodes(sizes: npt.ArrayLike, most: int, generator: np.random.Generator) -> Indices:
    """Return the numbers, in order, of episodes drawn at random while their ``sizes`` add up to at most ``most``.

    One is taken at least; with 0 all are, and nothing is drawn.
    """
    own = np.asarray(sizes, dtype=np.int64)
    if not most:
        return np.arange(len(own))
    order = generator.permutation(len(own))
    count = np.searchsorted(np.cumsum(own[order]), most, side="right")
    return np.sort(order[: max(int(count), 1)])


def endless_batches(
    episodes: Indices, batch_size: int, generator: np.random.Generator, shuffle: str
) -> Iterator[Indices]:
    """Yield batches of epoch after epoch, without end."""
    if len(episodes) == 0:
        raise ValueError("no samples to train on: expected at least one step with an action")
    while True:
        yield from epoch_batches(episodes, batch_size, generator, shuffle)
