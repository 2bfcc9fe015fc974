"""A file that grows, in a store: its content as pieces that never change, so that only what was appended is put.

Owns what a piece is, how a file becomes pieces and is put together again, and how a snapshot names a file. Invariants:
the pieces of a file, one after the other, are what it held at one moment; a piece is an object under the file's name,
named by its content. Small neighbours become one, as the digits of a number that is counted up: of n bytes there are
at most 2 n / ``LARGEST`` pieces and some twenty more, and a byte is put again only when its piece grows by half.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from records.durable import file_replacing, open_file
from records.stores.objects import fetch_object, object_key, put_object, read_object
from records.stores.store import Store

LARGEST = 16 << 20
"""Bytes of a piece at most: one request, and what is held in memory."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """So many bytes of a file, and their SHA-256."""

    size: int
    sha256: str


Pieces = tuple[Piece, ...]
Named = str | Pieces
"""How a snapshot names a file: the SHA-256 of one that lies in the store whole, or the pieces of one that grows."""


def put_grown(store: Store, name: str, path: Path, before: Pieces) -> Pieces:
    """Put what a file holds beyond the pieces that were put ``before``, and return those that it has now.

    The last piece is compared with the file; where it is another one, or the file is shorter, all of it is put.

    Raises:
        StoreError: see ``Store``; pieces that were put by then are named by nothing.
    """
    with open_file(path) as file:
        size, kept = os.fstat(file.fileno()).st_size, list(before)
        done = _size(before)
        if size < done or (kept and _hashed(file, done - kept[-1].size, kept[-1].size) != kept[-1].sha256):
            kept, done = [], 0
        if size == done:
            return tuple(kept)
        while kept and kept[-1].size < 2 * (size - done) and kept[-1].size + size - done <= LARGEST:
            done -= kept.pop().size
        file.seek(done)
        while content := file.read(min(LARGEST, size - done)):
            kept.append(Piece(len(content), put_object(store, name, content)))
            done += len(content)
    return tuple(kept)


def holds(path: Path, pieces: Pieces) -> bool:
    """Return whether a file begins with these pieces."""
    with open_file(path) as file:
        at = 0
        for piece in pieces:
            if _hashed(file, at, piece.size) != piece.sha256:
                return False
            at += piece.size
    return True


def is_named(path: Path, named: Pieces) -> bool:
    """Return whether a file is there and holds these pieces and nothing else."""
    return path.is_file() and path.stat().st_size == _size(named) and holds(path, named)


def fetch_named(store: Store, name: str, named: Named, target: Path) -> None:
    """Write a file as a snapshot names it to ``target``, where it appears whole and verified.

    Raises:
        MissingKey, DamagedObject: see ``records.stores.objects.read_object``.
    """
    if isinstance(named, str):
        fetch_object(store, name, named, target)
        return
    with file_replacing(target) as file:
        for piece in named:
            file.write(read_object(store, name, piece.sha256))


def keys_of(name: str, named: Named) -> set[str]:
    """Return the keys of the objects that hold a file."""
    digests = [named] if isinstance(named, str) else [piece.sha256 for piece in named]
    return {object_key(name, digest) for digest in digests}


def to_json(named: Named) -> str | list[list[int | str]]:
    """Return what stands in a snapshot: a SHA-256, or a list of ``[SIZE, SHA-256]``."""
    return named if isinstance(named, str) else [[piece.size, piece.sha256] for piece in named]


def from_json(found: Any) -> Named:
    """Read what ``to_json`` wrote; raise ``ValueError`` or ``TypeError`` for anything else."""
    if isinstance(found, str):
        return found
    return tuple(Piece(int(size), str(sha256)) for size, sha256 in found)


def _size(pieces: Pieces) -> int:
    return sum(piece.size for piece in pieces)


def _hashed(file: BinaryIO, at: int, size: int) -> str:
    """Return the SHA-256 of what a file holds from a place on."""
    file.seek(at)
    digest = hashlib.sha256()
    for content in _chunks(file, size):
        digest.update(content)
    return digest.hexdigest()


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size and (content := file.read(min(_CHUNK, size))):
        yield content
        size -= len(content)
