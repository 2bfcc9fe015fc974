"""A store in a folder, on one machine or shared by several.

Owns how keys become files. Invariants: an object is written beside, forced to disk and linked to its name, which fails
where the name is taken, so that one of several writers wins on file systems without locks too; a record is a folder of
numbered files, of which the highest counts, and a swap is the creation of the next number.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from records.durable import force_to_disk, open_file
from records.stores.store import Content, MissingKey, Record, RecordChanged, StoreError, checked_key

_KEPT = 16
"""Fixed: older versions of a record are removed; whoever sleeps over these finds that a higher number is there."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_VERSION = re.compile(r"[0-9]{8}")
"""How a record's versions are named; anything else in its folder is none of them."""
_TRIES = 100
"""Fixed: how often the newest version may be gone when it is read, as it is where others write and remove."""


class FolderStore:
    """A ``Store`` in the folder ``root``, which is made where it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def uri(self) -> str:
        """The folder's path."""
        return str(self._root)

    def put(self, key: str, content: Content) -> bool:
        """See ``Store``."""
        with _translated(key):
            return _create(self._path(key), content)

    def read(self, key: str) -> bytes:
        """See ``Store``."""
        with _translated(key), open_file(self._path(key)) as file:
            return file.read()

    def fetch(self, key: str, target: Path) -> None:
        """See ``Store``."""
        with _translated(key), open_file(self._path(key)) as file, target.open("xb") as copy:
            shutil.copyfileobj(file, copy)

    def link(self, key: str, valid_s: float) -> str:
        """See ``Store``; the file's path."""
        return str(self._path(key))

    def size(self, key: str) -> int | None:
        """See ``Store``."""
        with _translated(key):
            try:
                return self._path(key).stat().st_size
            except FileNotFoundError:
                return None

    def keys(self, prefix: str) -> list[str]:
        """See ``Store``."""
        folder = self._path(prefix)
        with _translated(prefix):
            found = (path for path in folder.rglob("*") if path.is_file())
            return sorted(path.relative_to(self._root).as_posix() for path in found if not path.name.startswith("."))

    def delete(self, key: str) -> None:
        """See ``Store``."""
        with _translated(key):
            self._path(key).unlink(missing_ok=True)

    def record(self, key: str) -> Record | None:
        """See ``Store``."""
        newest = self._newest(key)
        for _ in range(_TRIES):
            if newest is None:
                return None
            try:
                return Record(self.read(f"{key}/{newest:08d}"), str(newest))
            except MissingKey:  # a later one is there, and this one was removed meanwhile
                newest = self._newest(key)
        raise StoreError(f"{self._path(key)}: version {newest} is listed and cannot be read; remove it")

    def swap(self, key: str, content: bytes, version: str | None) -> str:
        """See ``Store``."""
        number = int(version or 0) + 1
        mine, folder = f"{key}/{number:08d}", self._path(key)
        newest = self._newest(key)
        if newest != (None if version is None else int(version)) or not self.put(mine, content):
            raise RecordChanged(f"{key}: expected version {version}, found {newest}")
        # A version so old that the next one's file was removed finds its place free, and a higher number beside it.
        if (now := self._newest(key)) is None or now > number + _KEPT // 2:
            self.delete(mine)
            raise RecordChanged(f"{key}: expected version {version}, found {now}")
        for old in _numbers(folder):
            if old <= number - _KEPT:
                self.delete(f"{key}/{old:08d}")
        return str(number)

    def _newest(self, key: str) -> int | None:
        with _translated(key):
            return max(_numbers(self._path(key)), default=None)

    def _path(self, key: str) -> Path:
        return self._root / checked_key(key)


def _numbers(folder: Path) -> list[int]:
    """Return the versions of the record in ``folder``, none where there is no record."""
    try:
        return [int(entry.name) for entry in os.scandir(folder) if _VERSION.fullmatch(entry.name) and entry.is_file()]
    except FileNotFoundError:
        return []


def _create(path: Path, content: Content) -> bool:
    """Make the file ``path`` whole and durable; return False where there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return False
    scratch = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with scratch.open("xb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                with open_file(content) as source:
                    shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(scratch, path)
        except FileExistsError:
            if not _is_linked(scratch, path):
                return False
    finally:
        scratch.unlink(missing_ok=True)
    force_to_disk(path.parent)
    return True


def _is_linked(scratch: Path, path: Path) -> bool:
    """Return whether a link that was refused is there: NFS sends a request again when its answer was lost."""
    try:
        return path.samefile(scratch)
    except FileNotFoundError:
        return False


@contextmanager
def _translated(key: str) -> Iterator[None]:
    """Turn the disk's errors into the store's."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise MissingKey(f"{key} is not in the store") from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise StoreError(
                f"{key}: this file system has no hard links ({error}); name a folder on another"
            ) from error
        raise StoreError(f"{key}: {error}") from error
