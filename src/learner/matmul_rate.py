"""``python -m learner.matmul_rate DEVICE PRECISION THREADS WIDTH INNER``: operations a second of matrix products.

Owns the one measurement behind the hours that ``waymark check`` tells; it prints one number. The shapes are those of a
model's feed-forward part.
"""

from __future__ import annotations

import sys
import time

import torch

from policy.models import DTYPES

_ROWS = 2048
_SECONDS = 1.0


def matmul_rate(device: str, precision: str, threads: int, width: int, inner: int) -> float:
    """Return operations a second of (2048, ``width``) by (``width``, ``inner``) products: the best of several."""
    torch.set_num_threads(threads)
    left = torch.rand(_ROWS, width, device=device, dtype=DTYPES[precision])
    right = torch.rand(width, inner, device=device, dtype=DTYPES[precision])
    best, ends = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < ends:
        began = time.perf_counter()
        for _ in range(4):
            product = left @ right
        float(product[0, 0])  # waits for a GPU
        best = min(best, time.perf_counter() - began)
    return 4 * 2.0 * _ROWS * width * inner / best


if __name__ == "__main__":
    sys.stdout.write(f"{matmul_rate(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))}\n")
