"""Tensors that may be spread over ranks, in safetensors files that need not be.

Owns which rows of a tensor lie where. Invariants: each rank writes its own rows and nothing else, so that nothing is
gathered; what any number of ranks wrote is read by any other; what is read goes into its place row by row, without a
second copy of a model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from learner.errors import CheckpointError
from learner.ranks import Ranks
from policy.tensor_files import write_tensors

_PIECES = "pieces"
"""Fixed: under this name a file's header says, as JSON, the first row of each tensor in it and all rows it has."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What lies on this rank of a tensor: the rows from ``first`` on of one that has ``rows``; ``local`` holds them."""

    local: Tensor
    first: int
    rows: int

    @classmethod
    def of(cls, tensor: Tensor) -> Piece:
        """Return this rank's piece of ``tensor``: all of one that is not spread; a number is one row."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not isinstance(tensor, DTensor):
            return cls(tensor, 0, rows)
        _, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
        return cls(tensor.to_local(), offsets[0], rows)


def write_part(folder: Path, part: str, tensors: Mapping[str, Tensor], ranks: Ranks) -> dict[str, str]:
    """Write this rank's file of ``part``, durably, and return its name with its SHA-256.

    What is not spread is rank 0's.
    """
    pieces = {name: Piece.of(tensor) for name, tensor in tensors.items() if isinstance(tensor, DTensor) or ranks.first}
    pieces = {name: piece for name, piece in pieces.items() if piece.local.numel()}
    places = json.dumps({name: [piece.first, piece.rows] for name, piece in pieces.items()})
    path = folder / _file_name(part, ranks)
    with path.open("xb") as file:
        content = {name: piece.local for name, piece in pieces.items()}
        digest = write_tensors(file, content, {_PIECES: places} if ranks.size > 1 else None)
        file.flush()
        os.fsync(file.fileno())
    return {path.name: digest}


class StoredPart:
    """The tensors of one part as its files hold them; opening reads their headers alone.

    Raises:
        CheckpointError: there is no file, or rows are missing.
    """

    def __init__(self, folder: Path, part: str, names: Sequence[str]) -> None:
        files = [folder / name for name in sorted(names) if name.rpartition("-of-")[0].rpartition("-")[0] == part]
        files = [folder / f"{part}.safetensors"] if f"{part}.safetensors" in names else files
        if not files:
            raise CheckpointError(f"{folder}: no {part}; the checkpoint was written by another algorithm")
        self._held: dict[str, list[tuple[int, int, Any]]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for path in files:
            self._note(safe_open(path, "pt"))
        for name, held in self._held.items():
            held.sort(key=lambda one: one[0])
            ends = [0, *(first + rows for first, rows, _ in held)]
            whole = self.shapes[name][0] if self.shapes[name] else 1
            if [first for first, _, _ in held] != ends[:-1] or ends[-1] != whole:
                raise CheckpointError(f"{folder}: rows of {part}'s {name} are missing; delete the checkpoint")

    def _note(self, file: Any) -> None:
        places = json.loads((file.metadata() or {}).get(_PIECES, "{}"))
        for name in file.keys():  # noqa: SIM118 - not a mapping
            shape = tuple(file.get_slice(name).get_shape())
            own = shape[0] if shape else 1
            first, rows = places.get(name, (0, own))
            self._held.setdefault(name, []).append((first, own, file))
            self.shapes[name] = (rows, *shape[1:]) if shape else ()

    def read_into(self, name: str, tensor: Tensor) -> None:
        """Fill this rank's piece of ``tensor``, which has the shape of what is stored under ``name``."""
        piece = Piece.of(tensor)
        if not tensor.dim():
            piece.local.copy_(self._held[name][0][2].get_tensor(name))
            return
        end = piece.first + len(piece.local)
        for first, rows, file in self._held[name]:
            begins, ends = max(first, piece.first), min(first + rows, end)
            if begins < ends:
                into = piece.local[begins - piece.first : ends - piece.first]
                into.copy_(file.get_slice(name)[begins - first : ends - first])


def _file_name(part: str, ranks: Ranks) -> str:
    """Return ``actor.safetensors``, or ``actor-00001-of-00002.safetensors`` for the first of two ranks."""
    return f"{part}.safetensors" if ranks.size == 1 else f"{part}-{ranks.rank + 1:05d}-of-{ranks.size:05d}.safetensors"
