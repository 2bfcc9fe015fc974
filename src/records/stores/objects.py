"""Objects that are named by their content: put by any number of writers, never taken for another, verified when read.

Owns the keys of such objects (``NAME/DIGEST``, the first 32 hexadecimal digits of the content's SHA-256). Invariants:
putting the same content again is harmless; what comes back has the digest that was asked for, or an error says that it
has not.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from uuid import uuid4

from records.durable import force_to_disk, open_file
from records.stores.store import Content, DamagedObject, Store, is_key

DIGITS = 32
"""Hexadecimal digits of a SHA-256 that name an object."""


def object_key(name: str, sha256: str) -> str:
    """Return the key of an object from its name and its SHA-256, or the first 32 digits of that.

    A name with other characters than a key's, as of a log, stands in its key by a digest of its own.
    """
    place = name if is_key(name) else f"others/{hashlib.sha256(name.encode()).hexdigest()[:DIGITS]}"
    return f"{place}/{sha256[:DIGITS]}"


def sha256_of(content: Content) -> str:
    """Return the SHA-256 of bytes or of a file in hex."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with open_file(content) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def put_object(store: Store, name: str, content: Content, sha256: str = "") -> str:
    """Put an object, durably, and return its SHA-256, which is computed unless it is given.

    Raises:
        DamagedObject: another length lies under its key.
        StoreError: see ``Store``.
    """
    digest = sha256 or sha256_of(content)
    key = object_key(name, digest)
    if not store.put(key, content):
        expected = len(content) if isinstance(content, bytes) else content.stat().st_size
        if (found := store.size(key)) != expected:
            raise DamagedObject(f"{store.uri}: {key} has {found} bytes instead of {expected}; remove it there")
    return digest


def read_object(store: Store, name: str, sha256: str) -> bytes:
    """Return an object's bytes; raise ``MissingKey`` or ``DamagedObject``."""
    content = store.read(object_key(name, sha256))
    _require(store, name, sha256, sha256_of(content))
    return content


def fetch_object(store: Store, name: str, sha256: str, target: Path) -> None:
    """Write an object to the file ``target``, which appears whole and verified; raise as ``read_object``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        store.fetch(object_key(name, sha256), scratch)
        _require(store, name, sha256, sha256_of(scratch))
        force_to_disk(scratch)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)
    force_to_disk(target.parent)


def _require(store: Store, name: str, expected: str, found: str) -> None:
    if not found.startswith(expected) or len(expected) < DIGITS:
        raise DamagedObject(f"{store.uri}: {name} has the SHA-256 {found[:12]}… instead of {expected[:12]}…; remove it")
