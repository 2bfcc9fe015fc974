"""Files that are either wholly there or not there: write beside, fsync, rename, fsync the folder.

Owns ``replace_file``, ``file_replacing`` and ``replace_folder``, by which every package writes what must survive a
crash, and ``open_file``, ``read_text`` and ``read_json``, by which it is read back. Invariants: a reader never sees
half a file under its final name, even after a power cut; it never waits for something that lies there in place of a
file, such as a pipe. Imports only the standard library.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``; see ``file_replacing``."""
    with file_replacing(path) as file:
        file.write(content)


@contextmanager
def file_replacing(path: Path) -> Iterator[BinaryIO]:
    """Put what the block writes at ``path``, durable at the block's end; the folder is created where it is missing.

    Raises:
        OSError: where the disk refuses; what was at ``path`` before is still there then, and nothing beside it.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        force_to_disk(path.parent.parent)
    scratch = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with scratch.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    force_to_disk(path.parent)


def replace_folder(filled: Path, path: Path) -> None:
    """Give a folder, whose files are durable, the name ``path`` beside it; what had that name goes once it has.

    Raises:
        OSError: where the disk refuses; what was at ``path`` before is still there then.
    """
    before = filled.with_name(filled.name + ".replaced")
    if path.exists():
        if before.exists():
            shutil.rmtree(before)  # of a process that was killed before it had removed it
        os.rename(path, before)
    try:
        os.rename(filled, path)
    except OSError:
        if before.exists():
            os.rename(before, path)
        raise
    force_to_disk(path.parent)
    shutil.rmtree(before, ignore_errors=True)


class NotAFile(OSError):
    """A pipe, a socket, a device or a folder lies where a file is expected."""


def open_file(path: Path) -> BufferedReader:
    """Open a file for reading, at once; raise ``NotAFile`` for anything but a regular file or a link to one."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise NotAFile(f"{path}: expected a file, found {_KINDS.get(stat.S_IFMT(mode), 'something else')}")
    # Should a pipe take its place in this moment, opening it does not wait for a writer either.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def read_text(path: Path, errors: str = "strict") -> str:
    """Return a file's UTF-8 text; raise as ``open_file`` does."""
    with open_file(path) as file:
        return file.read().decode("utf-8", errors)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises as ``open_file`` does, and ``ValueError`` for anything else, what nests too deep to be read included.
    """
    try:
        content = json.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, found a {type(content).__name__}")
    return content


_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device"}


def force_to_disk(path: Path) -> None:
    """Make a file's content, or a folder's entries, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
