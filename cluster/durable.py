"""Files that are either wholly there or not there: write, fsync, rename, fsync the folder.

Owns atomic replacement and file hashes for the run folder. Invariant: a reader never sees half a
file under its final name, even after a power cut.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from policy.manifest import replace_file


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by ``content`` (text is UTF-8) durably; its folder is created where missing."""
    replace_file(path, content.encode("utf-8") if isinstance(content, str) else content)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
