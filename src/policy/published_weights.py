"""What names one set of published weights: its version, its checksum and where it lies.

Owns ``PublishedWeights`` and its file, which a restarted server reads to come back with the current weights; where a
run is in a store, its lease names them (``records.stores.lease``). Imports no torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from policy.vllm.inside.waymark_files import KEPT, NotFetched, cache_folder, cached
from records.durable import read_text, replace_file
from records.stores.lease import read_head
from records.stores.objects import object_key, put_object, sha256_of
from records.stores.store import StoreError
from records.stores.working_copy import address_of, is_address, local_path, working_copy, working_copy_of

_IN_STORE = "weights"
"""Fixed: where published weights are in ``policy.weights_store``."""


class WeightsRejected(ValueError):
    """Weights that are not what was published, or not this model's; nothing was loaded."""


class TransferBroken(WeightsRejected):
    """A broadcast of weights ended before it was over, for a reason that may lie with another server."""


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """``checksum`` is the SHA-256 of the safetensors file at ``path``, in hexadecimal.

    For other processes ``path`` may be an address of a run in a store, and for the moment of a publication a URL, or an
    invitation to a broadcast.
    """

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

    What is fetched lies in a cache that keeps few files: servers need no earlier ones.

    Raises:
        WeightsRejected: the store does not have them.
    """
    if not is_address(weights.path):
        return weights
    copy, here = working_copy_of(weights.path), local_path(weights.path)
    if here.is_file() and sha256_of(here) == weights.checksum:  # the learner's own, or the driver's
        return replace(weights, path=str(here))

    def fetch(target: Path) -> None:
        copy.store.fetch(object_key(copy.name(here), weights.checksum), target)

    try:
        path = cached(cache_folder(copy.folder.name), weights.checksum, fetch)
    except (StoreError, NotFetched) as error:
        raise WeightsRejected(f"weights of version {weights.version}: {error}") from error
    return replace(weights, path=str(path))


def for_others(weights: PublishedWeights, valid_s: float) -> PublishedWeights:
    """Return the same weights with a path or URL that a process without the store's credentials can read.

    A URL is good for ``valid_s`` seconds, and lets whoever has it read this one file.

    Raises:
        WeightsRejected: the store gives no such URL.
    """
    if not is_address(weights.path):
        return weights
    copy = working_copy_of(weights.path)
    try:
        name = copy.name(local_path(weights.path))
        return replace(weights, path=copy.store.link(object_key(name, weights.checksum), valid_s))
    except StoreError as error:
        raise WeightsRejected(f"weights of version {weights.version}: {error}") from error


def put_in_store(weights: PublishedWeights, uri: str) -> PublishedWeights:
    """Put the file of ``weights`` into the store at ``uri``; return the same with its address, or its path, there.

    Files of versions that no server loads any more are removed from it. The store must hold nothing else.

    Raises:
        StoreError: the store does not take it.
    """
    file, copy = local_path(weights.path), working_copy(uri)
    for key in copy.store.keys(_IN_STORE):
        if not key.startswith(tuple(f"{_IN_STORE}/{_file_name(weights.version - back)}/" for back in range(KEPT))):
            copy.store.delete(key)
    name = f"{_IN_STORE}/{_file_name(weights.version)}"
    put_object(copy.store, name, file, weights.checksum)
    address = address_of(copy.uri, name)
    if not is_address(address):  # a folder that all see
        address = copy.store.link(object_key(name, weights.checksum), 0.0)
    return replace(weights, path=address)


def _file_name(version: int) -> str:
    return f"actor-{version:06d}.safetensors"


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
