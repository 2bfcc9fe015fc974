"""A published file of weights in a process that loads it: proven, then read tensor by tensor.

Owns ``WeightFile``. Invariants: what is read is the open file whose bytes had the checksum, also where its name means
another one by now; nothing holds the whole of it: a tensor is a view of the file's pages, which the processes of a
machine share and the kernel may take back. Linux only, as vLLM is. It imports torch and safetensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom, BufferedReader
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

Shapes = dict[str, tuple[int, ...]]
Opened = BufferedReader | BufferedRandom
"""An open file, of a folder or of memory."""


class NotPublished(ValueError):
    """A file that is not what was published."""


@dataclass(frozen=True)
class WeightFile:
    """An open file of weights: the names and shapes of its tensors, and what its header says besides."""

    shapes: Shapes
    metadata: dict[str, str]
    _open: Any

    def tensor(self, name: str) -> torch.Tensor:
        """Return a tensor as a view of the file, which stays valid when the file is closed."""
        tensor: torch.Tensor = self._open.get_tensor(name)
        return tensor


@contextmanager
def proven(content: Opened, checksum: str) -> Iterator[WeightFile]:
    """Yield the weights in the open file ``content``, which is read from its beginning.

    Raises:
        NotPublished: its SHA-256 is not ``checksum``, or it is no safetensors file.
        OSError: it cannot be read.
    """
    content.seek(0)
    found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != checksum:
        raise NotPublished(f"expected checksum {checksum[:12]}…, found {found[:12]}…; publish the weights again")
    try:
        opened = safe_open(f"/proc/self/fd/{content.fileno()}", "pt")
    except SafetensorError as error:
        raise NotPublished(f"what was published is not a safetensors file: {error}") from error
    with opened as tensors:
        shapes = {name: tuple(tensors.get_slice(name).get_shape()) for name in sorted(tensors.keys())}
        yield WeightFile(shapes, dict(tensors.metadata() or {}), tensors)
