"""Tensors in a safetensors file, written one after another.

Owns the form of the file: what is written is byte for byte what ``safetensors`` would write, but no more than one
tensor is in memory for it, and the SHA-256 is computed on the way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from math import prod
from typing import BinaryIO

import torch
from torch import Tensor

_BYTES_AT_ONCE = 2**24
"""Fixed: enough for a disk, little beside a tensor."""
_NAMES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.bool: "BOOL",
}
"""Fixed: the format's names."""
_RANKED = ("BOOL", "U8", "I8", "I16", "F16", "BF16", "I32", "F32", "F64", "I64")
"""Fixed: the format's own order of its types; the last come first in a file, so that each lies aligned."""


def in_file_order(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names in the order in which a file holds them."""
    return sorted(tensors, key=lambda name: (-_RANKED.index(_NAMES[tensors[name].dtype]), name))


def write_tensors(
    file: BinaryIO,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    whole: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> str:
    """Write ``tensors`` to ``file`` and return the SHA-256 of its bytes, in hexadecimal.

    ``whole`` is asked for each tensor as it is written; it returns one of the same shape and type, such as the whole of
    one that is spread over processes.
    """
    names = in_file_order(tensors)
    digest = hashlib.sha256()
    head = _header(tensors, names, metadata)
    for part in (len(head).to_bytes(8, "little"), head):
        digest.update(part)
        file.write(part)
    for name in names:
        content = whole(tensors[name]).detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        for at in range(0, len(content), _BYTES_AT_ONCE):
            digest.update(content[at : at + _BYTES_AT_ONCE])
            file.write(content[at : at + _BYTES_AT_ONCE])
    return digest.hexdigest()


def _header(tensors: Mapping[str, Tensor], names: list[str], metadata: Mapping[str, str] | None) -> bytes:
    """Return the file's header, padded to a multiple of 8 bytes."""
    entries: dict[str, object] = {} if metadata is None else {"__metadata__": dict(sorted(metadata.items()))}
    at = 0
    for name in names:
        tensor = tensors[name]
        end = at + prod(tensor.shape) * tensor.element_size()
        entries[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-len(text) % 8)
