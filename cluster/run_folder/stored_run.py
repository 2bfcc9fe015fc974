"""The driver's side of a run in an object store: its working copy, and the snapshots that say what the run is.

Owns what a snapshot holds and how a start comes back to one. A snapshot names every file of the run folder by its
SHA-256 or, where it grows, its pieces (``records.stores.pieces``), and the run's lease names the newest one, so that a
commit is one compare and swap. Invariants: whatever a snapshot names was put before it; what names others is looked at
before them, so that a snapshot of a run that works is one that a kill at that moment would leave; a shard of another
node is named from its acknowledgement on, whether it is here or not; a commit of a driver that was replaced changes
nothing. Imports neither torch nor Ray.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock, RLock

from cluster.errors import RecipeError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.layout import LABELS
from policy.published_weights import PublishedWeights
from records.durable import open_file
from records.stores.lease import Head, RunLease, read_head
from records.stores.objects import object_key, put_object, sha256_of
from records.stores.pieces import Named, Piece, Pieces, fetch_named, holds, keys_of, put_grown, to_json
from records.stores.store import MissingKey, StoreError
from records.stores.working_copy import SNAPSHOTS, WorkingCopy, node_folder, working_copy
from replay.labels import SUFFIX as LABELS_SUFFIX
from replay.shards import digest_in_name

logger = logging.getLogger(__name__)

_FIRST = ("metrics.jsonl", "summary.json", "stages", "rollbacks", "checkpoints", "weights", LABELS, "episodes")
"""What is looked at first, in this order; the ledger comes after the episodes that it tells of."""
_OF_THE_NODE = {"run.lock", "learner.lock", "bookmarks", "logs"}
"""What stays on the node that wrote it."""
_STAYING = {*_OF_THE_NODE, ".fetching", "episodes", LABELS, "screenshots"}
"""What a start leaves where it is although no snapshot names it: it is named by its content, or by its training."""
_GROWING = (".jsonl", ".log")
_EVENTS = ".tfevents."
_WHOLE = ("checkpoints", "weights", "episodes", LABELS, "trained", "policy")
"""Folders whose files never change, so that one may be hashed before it is put."""
_YOUNG_NS = 2_000_000_000
"""Within it a file may change again and keep its size and time of change, as coarse as that is: it is read again."""
_TRIES = 3

_Stamp = tuple[int, int, int]
"""A file's inode, size and time of change: where these are as before, it is not read again."""


class StoredRun:
    """The run at ``uri``, on the driver's node."""

    def __init__(self, uri: str) -> None:
        self.copy: WorkingCopy = working_copy(uri)
        self.folder = self.copy.folder
        self._lease: RunLease | None = None
        self._hashed: dict[str, tuple[_Stamp, str]] = {}
        self._grown: dict[str, tuple[_Stamp, Pieces]] = {}
        self._there: set[str] = set()
        self._named: dict[str, Named] = {}
        self._busy = RLock()
        self._acknowledged: set[str] = set()
        self._awaited: dict[str, str] = {}
        self._arrived: set[str] = set()
        self._naming = Lock()
        """Guards these three, for moments: who plays must not wait for who puts."""

    def take_up(self, lease: RunLease) -> None:
        """Bring the working copy to the newest snapshot, of whichever node; what is newer in it and stands stays.

        Raises:
            StoreError: the store does not answer, or has not what a snapshot names.
        """
        self._named = self.copy.snapshot(lease.head)
        for path in sorted(self.folder.rglob("*")) if self.folder.is_dir() else []:
            name = self.copy.name(path)
            if path.is_file() and name not in self._named and name.split("/")[0] not in _STAYING:
                path.unlink()
        for name, named in self._named.items():
            path = self.folder / name
            if not path.is_file() or not self._stands(path, named):
                path.unlink(missing_ok=True)
                self.copy.bring(name, named)
            if _grows(name):
                (inode, *_), pieces = _stamp(path), self._as_pieces(name, named)
                self._grown[name] = (inode, -1, -1), pieces
            self._there |= keys_of(name, named)
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        self._lease = lease

    def commit(self) -> None:
        """Put what is new in the working copy, and let the run be what it is now.

        Raises:
            LeaseLost: another driver has the run; the run stays what that one made it.
        """
        with self._busy:
            files = self._put_all()
            self._swap(files)

    def renew(self, lease: RunLease) -> None:
        """Take a snapshot where none is being taken; this takes as long as what is new needs to be put."""
        if self._lease is None or not self._busy.acquire(blocking=False):
            lease.commit()
            return
        try:
            self.commit()
        finally:
            self._busy.release()

    def announce(self, weights: PublishedWeights | None) -> None:
        """Let servers that start from now on, on any node, serve these weights; or wait for a publication."""
        if self._lease is not None:
            self._lease.commit(weights=None if weights is None else asdict(weights))

    def bring(self, files: Mapping[str, str]) -> None:
        """Have these files here too, which another process put into the store: SHA-256s by their places in the run."""
        for name, sha256 in files.items():
            self.copy.bring(name, sha256)
            self._there.add(object_key(name, sha256))

    def acknowledge(self, shard: str) -> None:
        """Let every snapshot from now on name a shard that a worker put into the store; ``shard`` is its path there.

        Nothing is fetched. One that was told before, whatever became of it since, changes nothing: what it held may
        have been packed, and the object removed.
        """
        ((name, digest),) = named_by_content([Path(shard).name]).items()
        with self._naming:
            if name not in self._acknowledged:
                self._acknowledged.add(name)
                self._awaited[name] = digest

    def bring_acknowledged(self) -> None:
        """Have every acknowledged shard here too, once.

        Raises:
            StoreError: the store does not answer, or has not what it must have; snapshots name the rest all the same.
        """
        with self._naming:
            awaited = {name: digest for name, digest in self._awaited.items() if name not in self._arrived}
        for name, digest in awaited.items():
            self.bring({name: digest})
            with self._naming:
                self._arrived.add(name)

    def _elsewhere(self) -> dict[str, str]:
        """Return the acknowledged shards that need not be here yet, before the files that are here are looked at."""
        with self._naming:
            self._awaited = {name: digest for name, digest in self._awaited.items() if name not in self._arrived}
            self._arrived.clear()
            return dict(self._awaited)

    def _swap(self, files: dict[str, Named]) -> None:
        assert self._lease is not None
        before, old = self._lease.head.newest, self._named
        written = {name: to_json(named) for name, named in files.items()}
        newest = put_object(self.copy.store, SNAPSHOTS, json.dumps(written, sort_keys=True).encode())
        self._lease.commit(newest=newest)
        self._named = files
        if newest == before:
            return
        gone = _keys(old) - _keys(files)
        for key in sorted(gone | ({object_key(SNAPSHOTS, before)} if before else set())):
            self.copy.store.delete(key)
            self._there.discard(key)
        self._grown = {name: grown for name, grown in self._grown.items() if name in files}

    def _put_all(self) -> dict[str, Named]:
        """Put what is not in the store yet of every file, and return these files and what lies there only."""
        files: dict[str, Named] = {**self._elsewhere()}
        for path in self._files():
            name = self.copy.name(path)
            try:
                files[name] = self._put_tail(path, name) if _grows(name) else self._put(path, name)
            except FileNotFoundError:
                continue  # removed meanwhile, as old checkpoints are
        return files

    def _put(self, path: Path, name: str) -> str:
        found = _stamp(path)
        settled = _is_whole(name) or time.time_ns() - found[2] > _YOUNG_NS
        stamp, digest = self._hashed.get(name, (None, ""))
        if stamp != found:
            digest = ""
        elif object_key(name, digest) in self._there:
            return digest
        if _is_whole(name):
            digest = digest or sha256_of(path)
            key = object_key(name, digest)
            if key not in self._there and self.copy.store.size(key) != path.stat().st_size:
                put_object(self.copy.store, name, path, digest)
        else:
            with open_file(path) as file:
                content = file.read()
            digest = sha256_of(content)
            if object_key(name, digest) not in self._there:
                put_object(self.copy.store, name, content, digest)
        if settled:
            self._hashed[name] = found, digest
        self._there.add(object_key(name, digest))
        return digest

    def _put_tail(self, path: Path, name: str) -> Pieces:
        """Put what was appended to a file since it was put last; one that took its place is put whole."""
        found = _stamp(path)
        stamp, pieces = self._grown.get(name, (found, ()))
        if stamp != found or not pieces:
            pieces = put_grown(self.copy.store, name, path, pieces if stamp[0] == found[0] else ())
            self._grown[name] = found, pieces
        return pieces

    def _files(self) -> Iterator[Path]:
        others = sorted(path.name for path in self.folder.iterdir() if path.name not in {*_FIRST, *_OF_THE_NODE})
        for top in (*_FIRST, *others):
            path = self.folder / top
            for found in sorted(path.rglob("*")) if path.is_dir() else [path]:
                hidden = any(part.startswith(".") for part in found.relative_to(self.folder).parts)
                if not hidden and found.name != "current.json" and found.is_file():
                    yield found

    def _stands(self, path: Path, named: Named) -> bool:
        """Return whether a file is the one of the snapshot, or what has grown from it on this node."""
        if isinstance(named, str) and not _grows(name := self.copy.name(path)):
            stamp, digest = _stamp(path), sha256_of(path)
            if _is_whole(name):
                self._hashed[name] = stamp, digest
            return digest.startswith(named)
        return holds(path, self._as_pieces(self.copy.name(path), named))

    def _as_pieces(self, name: str, named: Named) -> Pieces:
        """Return the pieces of a file that grows; snapshots of before name it whole, which is one piece."""
        if not isinstance(named, str):
            return named
        key = object_key(name, named)
        if (size := self.copy.store.size(key)) is None:
            raise MissingKey(f"{self.copy.uri} has no {key}")
        return (Piece(size, named),)


def named_by_content(names: Iterable[str]) -> dict[str, str]:
    """Return the digests of shards and of the files beside them, by their places in the run."""
    return {f"{LABELS if name.endswith(LABELS_SUFFIX) else 'episodes'}/{name}": digest_in_name(name) for name in names}


def require_storable(recipe: Recipe, uri: str) -> None:
    """Raise ``RecipeError`` where a recipe asks for what a run in a store cannot do yet."""
    refused = {
        "learner.ranks": recipe.learner.ranks > 1,
        "rollout.planning.mode": recipe.rollout.planning.mode != "none",
        "judges.llm.models": bool(recipe.llm.models),
        "policy.options.urls": bool(getattr(recipe.policy.options, "urls", ())),
    }
    if uri.startswith("memory://"):
        raise RecipeError(f"--out {uri}: a store in memory is seen by one process alone; name s3://, gs:// or az://")
    asked = [name for name, used in refused.items() if used]
    if asked:
        raise RecipeError(
            f"--out {uri}: {', '.join(asked)} needs a folder that all processes see, which a run in a store has not; "
            "leave it at its default, or give --out a folder"
        )


@contextmanager
def copied_run(uri: str) -> Iterator[Path]:
    """Yield a folder with the run at ``uri`` as its newest snapshot has it; it is removed at the end.

    Raises:
        StoreError: there is no run, or the store has not what it must have.
    """
    copy = WorkingCopy(uri)
    folder = node_folder() / f".looked-at-{copy.folder.name}-{time.monotonic_ns()}"
    try:
        for attempt in range(1, _TRIES + 1):
            head = read_head(copy.store)
            if head is None or not head.newest:
                raise StoreError(f"{copy.uri} holds no run")
            try:
                _fill(copy, head, folder)
                break
            except MissingKey:
                if attempt == _TRIES or read_head(copy.store) == head:
                    raise  # else its driver committed meanwhile, and removed what the next snapshot does not name
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(copy: WorkingCopy, head: Head, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, named in copy.snapshot(head).items():
        fetch_named(copy.store, name, named, folder / name)


def _keys(files: Mapping[str, Named]) -> set[str]:
    return {key for name, named in files.items() for key in keys_of(name, named)}


def _grows(name: str) -> bool:
    """Return whether a file is only ever appended to, or replaced by another one."""
    return not _is_whole(name) and (name.endswith(_GROWING) or _EVENTS in name.rpartition("/")[2])


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_whole(name: str) -> bool:
    return name.split("/")[0] in _WHOLE
