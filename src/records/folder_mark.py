"""The mark of a run folder: by it a process of another node knows that it sees the driver's very folder.

Owns ``marked_folder``, which is the driver's, and ``require_mark``, which is everybody else's. Invariants: a mark is a
hidden file with a name that no folder had before, so that neither an empty folder at the same path nor an older copy of
the run has it; whoever does not see it makes no folder and writes nothing. Imports only the standard library and
``records.durable``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from records.durable import open_file, replace_file

PREFIX = ".mark-"
"""How the name of every mark begins."""
ADVICE = (
    "mount the driver's folder on every node at this path, or name the nodes that have it in "
    "run.resources.rollout_nodes, policy_nodes and learner_nodes"
)
"""What to do about a node that does not see the folder."""


class FolderNotShared(OSError):
    """This node does not see the run folder; the message names the node, the folder and what to do."""


@contextmanager
def marked_folder(folder: Path) -> Iterator[str]:
    """Keep a mark in ``folder`` for the block and yield its path, which other processes are told.

    There is one driver of a folder: marks of an earlier one, that was killed, are removed. Raises ``OSError`` where the
    folder cannot be written to.
    """
    for left in folder.glob(f"{PREFIX}*"):
        left.unlink(missing_ok=True)
    mark = folder.resolve() / f"{PREFIX}{uuid4().hex}"
    replace_file(mark, b"")
    try:
        yield str(mark)
    finally:
        mark.unlink(missing_ok=True)


def lack(mark: str) -> str:
    """Return what this process finds in place of the folder that has ``mark``; an empty text where it sees that one.

    An empty ``mark`` asks for nothing.
    """
    if not mark:
        return ""
    folder = Path(mark).parent
    try:
        open_file(Path(mark)).close()
        return ""
    except FileNotFoundError:
        return f"{folder} is another folder than the driver's" if folder.is_dir() else f"{folder} is not there"
    except OSError as error:
        return f"{folder} cannot be read: {(error.strerror or str(error)).lower()}"


def require_mark(mark: str) -> None:
    """Raise ``FolderNotShared`` where this process does not see the folder that has ``mark``."""
    if found := lack(mark):
        raise FolderNotShared(f"node {socket.gethostname()} does not see the run folder: {found}; {ADVICE}")
