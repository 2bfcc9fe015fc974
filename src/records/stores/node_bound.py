"""How much a node keeps of runs in object stores: past a bound, what was used longest ago goes.

Owns what may go. Invariants: nothing goes that the run's store has not; nothing of a run whose driver is on this node,
because its working copy is the whole run; no episode where the learner is, which reads them again; nothing that was
used within minutes; no file is ever cut short. A node without ``/proc/locks`` keeps everything, because it cannot say
who uses what.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from records.stores.address import open_store
from records.stores.objects import object_key, sha256_of
from records.stores.store import Store, StoreError

logger = logging.getLogger(__name__)

_GB = 1e9
DEFAULT_GB = 50.0
_ADDRESS = ".address"
_GOING = ("episodes", "weights", "checkpoints", "policy")
"""Folders of a run whose files never change, and are fetched again by whoever needs them."""
PAUSE_S = 60.0
"""Fixed: how often one process looks at most; a look asks for the size of every file."""
_YOUNG_S = 600.0
"""Fixed: who fetches a file opens it within seconds."""


@dataclass(frozen=True, slots=True)
class _File:
    used: float
    size: int
    path: Path
    copy: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(self.copy).as_posix()


def bound_bytes() -> float:
    """Return how many bytes this node's working copies may have."""
    return float(os.environ.get("WAYMARK_NODE_FOLDER_GB") or DEFAULT_GB) * _GB


def note_address(copy: Path, uri: str) -> None:
    """Say in a working copy which run it is of."""
    noted = copy / _ADDRESS
    if not noted.exists():
        copy.mkdir(parents=True, exist_ok=True)
        noted.write_text(uri, encoding="utf-8")


def trim(folder: Path) -> int:
    """Bring the working copies in ``folder`` below the bound, as far as they may go; return how many bytes went.

    One process of a node does so at a time; the others leave it to that one.
    """
    with (folder / ".trimming").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        return _trim(folder, bound_bytes())


def _trim(folder: Path, bound: float) -> int:
    files = sorted(_files(folder), key=lambda file: file.used)
    total = sum(file.size for file in files)
    if total <= bound:
        return 0
    locked, stores, gone = _locked(), dict[Path, Store | None](), 0
    for file in files:
        if total - gone <= bound or time.time() - file.used < _YOUNG_S:
            break
        if not _may_go(file, locked):
            continue
        if file.copy not in stores:
            stores[file.copy] = _store_of(file.copy)
        try:
            if _stored(stores[file.copy], file):
                file.path.unlink(missing_ok=True)
                gone += file.size
        except StoreError as error:
            logger.warning("%s stays: %s", file.path, error)
            stores[file.copy] = None
    if gone:
        logger.info("%.1f MB of working copies went from %s", gone / 1e6, folder)
    if total - gone > bound:
        logger.warning(
            "working copies in %s have %.1f GB, above WAYMARK_NODE_FOLDER_GB (%.1f), and all of it is in use or in no "
            "store", folder, (total - gone) / _GB, bound / _GB,
        )  # fmt: skip
    return gone


def _files(folder: Path) -> Iterator[_File]:
    for copy in folder.iterdir():
        if copy.name.startswith(".") or not copy.is_dir():
            continue
        for path in copy.rglob("*"):
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue  # removed meanwhile
            if path.is_file():
                yield _File(found.st_mtime, found.st_size, path, copy)


def _may_go(file: _File, locked: set[int] | None) -> bool:
    top, _, rest = file.name.partition("/")
    if top not in _GOING or not rest or file.path.name.startswith(".") or locked is None:
        return False
    if _inode(file.copy / "run.lock") in locked:
        return False
    return not (top == "episodes" and _inode(file.copy / "learner.lock") in locked)


def _stored(store: Store | None, file: _File) -> bool:
    """Whether the store has this very file."""
    if store is None:
        return False
    try:
        key = object_key(file.name, sha256_of(file.path))
    except FileNotFoundError:
        return False
    return store.size(key) == file.size


def _store_of(copy: Path) -> Store | None:
    try:
        return open_store((copy / _ADDRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        logger.warning("nobody knows which run %s is of: %s", copy, error)
        return None


def _locked() -> set[int] | None:
    """Return the inodes of this node's locked files, None where the kernel does not tell."""
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        return {int(line.split()[5].rpartition(":")[2]) for line in lines if "->" not in line}
    except (OSError, ValueError, IndexError):
        return None


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
