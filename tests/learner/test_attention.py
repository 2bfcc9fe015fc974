"""What a token of a packed row sees: its own sample up to itself, within a window, whatever computes it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from learner.attention import Segments, attend

CPU = torch.device("cpu")
HEADS, SHARED, WIDTH = 4, 2, 8
PATHS = [[0, 1, 2, 3], [0, 1, 4, 5, 6], [0, 1, 4, 7], [8, 9, 10]]
"""Four samples in a row of 11 tokens: the second begins as the first does, the third as the second."""
OWNED, SEEN = [4, 3, 1, 3], [4, 5, 4, 3]


def states(device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, heads, 11, WIDTH) for heads in (HEADS, SHARED, SHARED)]
    return [torch.randn(shape, generator=generator).to(device, dtype).requires_grad_() for shape in shapes]


def packed(window: int | None, given: list[Tensor]) -> Tensor:
    device = given[0].device
    paths = torch.tensor(np.concatenate(PATHS), device=device)
    segments = Segments(OWNED, SEEN, paths, device)
    output, _ = attend(torch.nn.Identity(), *given, None, segments=segments, scaling=0.3, sliding_window=window)
    return output


def by_hand(window: int | None, given: list[Tensor]) -> Tensor:
    """Each token by itself: softmax over what it sees, in its own sample."""
    query, key, value = (tensor[0] for tensor in given)
    rows = []
    for path, own in zip(PATHS, OWNED, strict=True):
        for place in range(len(path) - own, len(path)):
            seen = path[: place + 1] if window is None else path[max(0, place + 1 - window) : place + 1]
            heads = []
            for head in range(HEADS):
                shared = head * SHARED // HEADS
                scores = key[shared, seen] @ query[head, path[place]] * 0.3
                heads.append(torch.softmax(scores, dim=0) @ value[shared, seen])
            rows.append(torch.stack(heads))
    return torch.stack(rows)[None]


@pytest.mark.parametrize("window", [None, 1, 2, 4, 100])
def test_tokens_see_their_own_sample_alone_with_gradients_too(window: int | None) -> None:
    first, second = states(), states()
    found, expected = packed(window, first), by_hand(window, second)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(1))
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("window", [None, 3])
def test_half_precision_gives_the_same_and_keeps_its_type(window: int | None) -> None:
    found = packed(window, states(dtype=torch.bfloat16))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), by_hand(window, states()), rtol=0.03, atol=0.03)


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU: varied lengths have a kernel of their own there"
)
@pytest.mark.parametrize("window", [None, 1, 3])
def test_the_kernel_for_varied_lengths_sees_the_same(window: int | None) -> None:
    device = torch.device("cuda")
    found = packed(window, states(device, torch.bfloat16))
    torch.testing.assert_close(found.float().cpu(), by_hand(window, states()), rtol=0.03, atol=0.03)
