"""What names one set of published weights: its version, its checksum and where it lies.

Owns ``PublishedWeights`` and its file, which a restarted server reads to come back with the current
weights. Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from records.durable import read_text, replace_file


class WeightsRejected(ValueError):
    """Weights that are not what was published, or not this model's; nothing was loaded."""


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """``checksum`` is the SHA-256 of the safetensors file at ``path``, in hexadecimal."""

    version: int
    checksum: str
    path: str


def write_published(weights: PublishedWeights, path: str | Path) -> None:
    """Write ``weights`` to the file ``path``, which is replaced whole or not at all."""
    replace_file(Path(path), (json.dumps(asdict(weights), indent=2) + "\n").encode())


def read_published(path: str | Path) -> PublishedWeights:
    """Read which weights were published; raise ``WeightsRejected`` where the file says none."""
    try:
        weights = PublishedWeights(**json.loads(read_text(Path(path))))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise WeightsRejected(f"{path} names no published weights: {error}") from error
    kinds = tuple(type(value) for value in (weights.version, weights.checksum, weights.path))
    if kinds != (int, str, str) or "\0" in weights.path:
        raise WeightsRejected(f"{path} names no published weights: expected a number and two texts, found {weights}")
    return weights
