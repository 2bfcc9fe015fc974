"""What names one set of published weights: its version, its checksum and where it lies.

Owns ``PublishedWeights`` and its file, which a restarted server reads to come back with the current weights; where a
run is in a store, its lease names them (``records.stores.lease``). Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from records.durable import read_text, replace_file
from records.stores.lease import read_head
from records.stores.store import StoreError
from records.stores.working_copy import bring, is_address, working_copy_of


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


def current_weights(published: str | Path) -> PublishedWeights | None:
    """Return the weights that were published last, None where none are: of a file, or of the run of its address.

    Raises:
        WeightsRejected: the file says none.
        StoreError: the store of the run does not answer.
    """
    if is_address(published):
        head = read_head(working_copy_of(published).store)
        return None if head is None or head.weights is None else PublishedWeights(**head.weights)
    return read_published(published) if Path(published).is_file() else None


def on_this_node(weights: PublishedWeights) -> PublishedWeights:
    """Return the same weights with a path of this node; they are fetched where their path is an address.

    Raises:
        WeightsRejected: the store does not have them.
    """
    try:
        return replace(weights, path=str(bring(weights.path, weights.checksum)))
    except StoreError as error:
        raise WeightsRejected(f"weights of version {weights.version}: {error}") from error


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
