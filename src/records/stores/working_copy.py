"""A run in an object store, as a node sees it: a folder of this node with what its processes made or needed so far.

Owns where the folder is, how addresses lead there, and the way of files between it and the store. Invariants: a process
gets a file by its name and digest, verified, once for the node (as long as its bound, ``records.stores.node_bound``,
leaves it there); ``keep`` returns when a file is durable in the store; nothing here depends on a listing, nor on
another node's disk. In place of an address there may always be a path: then the run is in a folder that all its
machines see, and nothing is to be done.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath

from records.stores.address import is_uri, open_store
from records.stores.lease import Head, read_head
from records.stores.node_bound import PAUSE_S, note_address, trim
from records.stores.objects import DIGITS, put_object, read_object, sha256_of
from records.stores.pieces import Named, fetch_named, from_json, is_named
from records.stores.store import DamagedObject, MissingKey, Store

_MARK = "/./"
"""Between a run's URI and the place of a file in it, as rsync has it."""
_FETCHING_S = 300.0
"""Fixed: past it a process fetches beside another one that may hang; both write the same file."""
_POLL_S = 0.05
"""Fixed: a pace within ``_FETCHING_S``."""
_TRIES = 3
"""Fixed: commits come seconds apart, and a look at a snapshot takes milliseconds."""
SNAPSHOTS = "snapshots"
"""Objects that name all files of a run at one moment (``cluster.run_folder.stored_run``)."""


class WorkingCopy:
    """The working copy of the run at ``uri`` on this node."""

    def __init__(self, uri: str) -> None:
        self.store: Store = open_store(uri)
        self.uri = self.store.uri
        named = hashlib.sha256(self.uri.encode()).hexdigest()[:12]
        self.folder = node_folder() / f"{PurePosixPath(self.uri).name}-{named}"
        self._bounded = float("-inf")

    def keep(self, path: Path, sha256: str = "") -> str:
        """Put a file of the working copy into the store, durably, and return its SHA-256."""
        digest = put_object(self.store, self.name(path), path, sha256)
        self._grown()
        return digest

    def bring(self, name: str, named: Named) -> Path:
        """Return the file of this name, ``named`` by its SHA-256 or its pieces; fetch it where it is not here.

        Raises:
            MissingKey: the store does not have it either.
            DamagedObject: what the store has is something else.
        """
        path = self.folder / _inside(name)
        if _has(path, named):
            os.utime(path)  # what was used longest ago goes first
            return path
        with self._alone(name):
            if not _has(path, named):
                fetch_named(self.store, name, named, path)
        self._grown()
        return path

    def bring_below(self, prefix: str) -> None:
        """Bring every file below ``prefix/`` that the run's newest snapshot names."""
        for attempt in range(1, _TRIES + 1):
            head = read_head(self.store)
            try:
                for name, named in self.snapshot(head).items():
                    if name.startswith(f"{prefix}/"):
                        self.bring(name, named)
                return
            except MissingKey:
                # Its driver removes what only the snapshot before named, and may have committed meanwhile.
                if attempt == _TRIES or read_head(self.store) == head:
                    raise

    def snapshot(self, head: Head | None) -> dict[str, Named]:
        """Return each file of the run by its place in it, as of the record ``head``; none before the first."""
        if head is None or not head.newest:
            return {}
        try:
            found = json.loads(read_object(self.store, SNAPSHOTS, head.newest))
            return {str(_inside(name)): from_json(named) for name, named in found.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedObject(f"{self.uri}: the snapshot {head.newest[:12]}… is none ({error})") from error

    def name(self, path: Path) -> str:
        """Return the place of a file in the run."""
        return path.relative_to(self.folder).as_posix()

    def _grown(self) -> None:
        """Keep this node's working copies within their bound."""
        note_address(self.folder, self.uri)
        if time.monotonic() - self._bounded >= PAUSE_S:
            self._bounded = time.monotonic()
            trim(self.folder.parent)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let one process of this node fetch a file; the kernel drops the lock with its process."""
        locks = self.folder / ".fetching"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / hashlib.sha256(name.encode()).hexdigest()[:DIGITS]).open("w") as lock:
            ends = time.monotonic() + _FETCHING_S
            while time.monotonic() < ends:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_POLL_S)
            yield


def node_folder() -> Path:
    """Return the folder of this node in which working copies lie."""
    return Path(os.environ.get("WAYMARK_NODE_FOLDER") or "~/.cache/waymark/runs").expanduser().absolute()


@lru_cache(maxsize=16)
def working_copy(uri: str) -> WorkingCopy:
    """Return this process's view of a run in a store."""
    return WorkingCopy(uri)


def address_of(uri: str, name: str) -> str:
    """Return the address of a file or folder of a run, which means the same on every node."""
    return f"{uri}{_MARK}{name}"


def is_address(text: str | Path) -> bool:
    """Return whether this names something of a run in a store, and is no path."""
    uri, mark, _ = str(text).partition(_MARK)
    return bool(mark) and is_uri(uri)


def working_copy_of(address: str | Path) -> WorkingCopy:
    """Return the working copy that an address leads to."""
    return working_copy(str(address).partition(_MARK)[0])


def local_path(address: str | Path) -> Path:
    """Return where the file or folder of an address, or of a path, is or would be on this node."""
    return working_copy_of(address).folder / _inside(_name(address)) if is_address(address) else Path(address)


def keep(address: str | Path, digests: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make the file of an address, or all files of a folder, durable in its store; nothing is to be done for a path.

    ``digests`` are SHA-256s of files of the folder that are known already. Returns the SHA-256s by the files' names in
    the run.
    """
    if not is_address(address):
        return {}
    copy, path, known = working_copy_of(address), local_path(address), digests or {}
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return {copy.name(file): copy.keep(file, known.get(file.name, "")) for file in files}


def bring(address: str | Path, sha256: str = "") -> Path:
    """Return the file of an address (or of a path, as it is) on this node; without ``sha256`` a whole folder.

    Raises:
        MissingKey, DamagedObject: see ``WorkingCopy.bring``.
    """
    if is_address(address):
        if sha256:
            return working_copy_of(address).bring(_name(address), sha256)
        working_copy_of(address).bring_below(_name(address))
    return local_path(address)


def _has(path: Path, named: Named) -> bool:
    """Return whether a file is there with this content: one of another node's earlier work may have its name."""
    if not isinstance(named, str):
        return is_named(path, named)
    sha256 = named
    return path.is_file() and (sha256[:DIGITS] in path.name or sha256_of(path).startswith(sha256))


def _name(address: str | Path) -> str:
    return str(address).partition(_MARK)[2]


def _inside(name: str) -> PurePosixPath:
    """Return a place in a run; raise ``ValueError`` where it leads out of it."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise ValueError(f"{name!r:.200} is no place in a run")
    return place
