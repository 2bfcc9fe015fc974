"""Files that are either wholly there or not there: write beside, fsync, rename, fsync the folder.

Owns ``replace_file``, by which every package writes what must survive a crash. Invariant: a reader never sees half
a file under its final name, even after a power cut. Imports only the standard library.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` and return once it is durable; the folder is created where it is missing.

    Raises:
        OSError: where the disk refuses; what was at ``path`` before is still there then, and nothing beside it.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        force_to_disk(path.parent.parent)
    scratch = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with scratch.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    force_to_disk(path.parent)


def force_to_disk(path: Path) -> None:
    """Make a file's content, or a folder's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
