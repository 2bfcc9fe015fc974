"""Files and folders that are either wholly there or not there: write, fsync, rename, fsync the folder above.

Owns atomic replacement and file hashes for the run folder. Invariant: a reader never sees half a
file, or half a folder, under its final name, even after a power cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from cluster.errors import RecipeError
from records.durable import force_to_disk, open_file, read_text, replace_file, replace_folder


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by ``content`` (text is UTF-8) durably; its folder is created where missing."""
    replace_file(path, content.encode("utf-8") if isinstance(content, str) else content)


def write_folder(path: Path, files: Mapping[str, str]) -> None:
    """Make the folder ``path`` with text files (name: content), written in this order.

    Raises:
        OSError: the folder is there, with its files; of several writers one wins.
    """
    scratch = path.with_name(f".{path.name}.{uuid4().hex}.new")
    try:
        scratch.mkdir(parents=True)
        for name, content in files.items():
            (scratch / name).write_text(content, encoding="utf-8")
            force_to_disk(scratch / name)
        force_to_disk(scratch)
        scratch.rename(path)
        force_to_disk(path.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def require_new(path: Path, what: str = "--out") -> None:
    """Raise ``RecipeError`` where a folder that is to be made is there; ``what`` is how the user named it."""
    if os.path.lexists(path):
        raise RecipeError(f"{what} {path}: is there already; name a folder that is not")


def scratch_folder(path: Path) -> Path:
    """Return the name of a hidden folder beside ``path``, to be made, filled and handed to ``put_folder``."""
    scratch = path.with_name(f".{path.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.parent.mkdir(parents=True, exist_ok=True)
    return scratch


def put_folder(scratch: Path, path: Path) -> None:
    """Make a filled scratch folder durable, and give it its name; see ``records.durable.replace_folder``."""
    for entry in sorted(scratch.rglob("*")):
        force_to_disk(entry)
    force_to_disk(scratch)
    replace_folder(scratch, path)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hex; raise as ``records.durable.open_file`` does."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests_as_written(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a learner's checkpoint, by name, as computed when it was written.

    Nothing where ``folder`` is no checkpoint.
    """
    if not (folder / "COMPLETE").is_file():
        return {}
    digests: dict[str, str] = json.loads(read_text(folder / "manifest.json"))
    return digests


def sha256_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 in hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
