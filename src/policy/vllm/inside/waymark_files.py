"""Files of weights that a machine keeps for its servers, of which few are kept.

Owns the cache and fetching by URL. Invariants: a file is there whole and verified, or not at all; the processes of a
machine fetch it once; the newest ``KEPT`` stay. It runs in Waymark's own servers and in workers of vLLM, so it imports
the standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from uuid import uuid4

KEPT = 2
"""Fixed: what is served, and what a server that is late still loads."""
_LIMIT_S = 1800.0
"""Fixed: past it whoever publishes has long given up on the server."""
_SILENCE_S = 60.0
"""Fixed: a store that answers says more within that time."""
_LOOK_S = 0.05
"""Fixed: a pace within ``_LIMIT_S``."""
_BYTES_AT_ONCE = 8 << 20


class NotFetched(ValueError):
    """A file that cannot be fetched, or is not what was asked for."""


def is_url(place: str) -> bool:
    """Return whether a place of weights is to be asked for over HTTP."""
    return place.startswith(("http://", "https://"))


def cache_folder(name: str) -> Path:
    """Return the folder of this machine in which weights of ``name`` are kept."""
    root = os.environ.get("WAYMARK_NODE_FOLDER") or "~/.cache/waymark/runs"
    return Path(root).expanduser().absolute() / "weights" / name


def cached(folder: Path, checksum: str, fetch: Callable[[Path], None]) -> Path:
    """Return the file with this SHA-256, which ``fetch`` writes to the path that it is given where it is not there.

    Raises:
        NotFetched: what was fetched is something else, or another process fetches for too long.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"{checksum}.safetensors"
    with (folder / "lock").open("w") as lock:
        _take(lock)
        if file.is_file() and _sha256(file) == checksum:
            os.utime(file)
        else:
            _write(file, checksum, fetch)
        newest = sorted(folder.glob("*.safetensors"), key=lambda kept: kept.stat().st_mtime)
        for old in newest[:-KEPT]:
            old.unlink(missing_ok=True)
    return file


def fetch_url(url: str, target: Path) -> None:
    """Write what is at ``url`` to the file ``target``; raise ``NotFetched``, in whose text the URL's query is not."""
    ends, parts = time.monotonic() + _LIMIT_S, urlsplit(url)
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer, target.open("xb") as file:
            while content := answer.read(_BYTES_AT_ONCE):
                file.write(content)
                if time.monotonic() > ends:
                    raise TimeoutError(f"not over within {_LIMIT_S:g} s")
    except (OSError, ValueError) as error:
        place = f"{parts.scheme}://{parts.hostname}{parts.path}"
        raise NotFetched(f"cannot fetch {place}: {type(error).__name__}: {str(error)[:200]}") from None


def _write(file: Path, checksum: str, fetch: Callable[[Path], None]) -> None:
    for left in file.parent.glob(".*.tmp"):  # whoever wrote it is gone: the lock is ours
        left.unlink(missing_ok=True)
    scratch = file.with_name(f".{uuid4().hex}.tmp")
    try:
        fetch(scratch)
        if (found := _sha256(scratch)) != checksum:
            raise NotFetched(f"expected checksum {checksum[:12]}…, fetched {found[:12]}…; publish the weights again")
        os.replace(scratch, file)
    finally:
        scratch.unlink(missing_ok=True)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _take(lock: IO[str]) -> None:
    """Wait for the other processes of this machine; the kernel drops a lock with its process."""
    ends = time.monotonic() + _LIMIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > ends:
                raise NotFetched(f"another process of this machine fetches for longer than {_LIMIT_S:g} s") from None
            time.sleep(_LOOK_S)
