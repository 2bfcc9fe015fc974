"""A file of weights by broadcast: one sender, and the processes that serve, in a process group that lasts for one file.

Owns the group and what goes over it: the file's bytes in pieces, over NCCL between GPUs and over gloo between
processors. Invariants: a group is made anew for each file, so that a server that joins or dies changes only the next
one; every wait has a limit, and what is not whole by then is ``BrokenOff``; nothing is proven here: whoever receives
compares the bytes with the checksum that it was told elsewhere. It runs in the learner, in servers of torch and in
workers of vLLM, so it imports torch, and nothing of Waymark or vLLM.
"""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlencode, urlsplit

import torch
import torch.distributed as dist

SCHEME = "broadcast"
_PIECE = 64 << 20
"""Fixed: large beside a message's head, little beside a file; each process holds one more than the file."""
_LOOK_S = 0.002
"""Fixed: a pace within the limit of a broadcast."""
_HERE = "here"


class BrokenOff(RuntimeError):
    """A broadcast ended before all had all of it; nobody is the worse for it."""


@dataclass(frozen=True)
class Invitation:
    """Where a receiver finds its group: the sender's ``host`` and ``port``, and its own ``place`` of ``size``.

    Place 0 is the sender's. ``backend`` is ``nccl`` or ``gloo``; the file has ``length`` bytes; ``limit_s`` is from
    the moment at which a process begins.
    """

    host: str
    port: int
    place: int
    size: int
    backend: str
    length: int
    limit_s: float

    def __str__(self) -> str:
        told = {name: getattr(self, name) for name in ("place", "size", "backend", "length", "limit_s")}
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}://{host}:{self.port}/?{urlencode(told)}"

    def at(self, place: int) -> Invitation:
        """Return the invitation for another place of the same group."""
        return replace(self, place=place)

    @classmethod
    def read(cls, text: str) -> Invitation:
        """Return the invitation of a text; raise ``ValueError`` where it is none."""
        parts = urlsplit(text)
        told = dict(parse_qsl(parts.query))
        if parts.scheme != SCHEME or parts.hostname is None or parts.port is None:
            raise ValueError(f"{text!r:.200} is no invitation to a broadcast")
        try:
            place, size, length = (int(told[name]) for name in ("place", "size", "length"))
            return cls(parts.hostname, parts.port, place, size, told["backend"], length, float(told["limit_s"]))
        except KeyError as missing:
            raise ValueError(f"{text!r:.200} is no invitation to a broadcast: it lacks {missing}") from missing


def is_invitation(text: str) -> bool:
    """Return whether a place of weights is an invitation to a broadcast."""
    return text.startswith(f"{SCHEME}://")


class Meeting:
    """Where the processes of one broadcast meet: a port of this machine at ``host``, which is open until ``close``."""

    def __init__(self, host: str, limit_s: float) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.bind((host, 0))
        self._listening.listen()
        self.host, self.port, self._limit_s = host, int(self._listening.getsockname()[1]), limit_s
        # The store listens at this address alone; by itself it would at every one of the machine.
        self._store: dist.TCPStore | None = dist.TCPStore(
            host, self.port, is_master=True, timeout=timedelta(seconds=limit_s), wait_for_workers=False,
            master_listen_fd=os.dup(self._listening.fileno()),
        )  # fmt: skip

    def send(self, file: Path, invitation: Invitation, device: torch.device) -> None:
        """Send ``file`` to all receivers; return once each has it. Raise ``BrokenOff``, or ``OSError`` of the file."""
        assert self._store is not None
        ends = time.monotonic() + invitation.limit_s
        piece = bytearray(min(_PIECE, invitation.length))
        with file.open("rb") as content, _group(self._store, invitation, self.host, ends) as group:
            for length in _pieces(invitation.length):
                if content.readinto(memoryview(piece)[:length]) != length:
                    raise OSError(f"{file} is shorter than it was")
                _broadcast(group, torch.frombuffer(piece, dtype=torch.uint8, count=length).to(device), ends)
            _all_here(group, device, ends)

    def close(self) -> None:
        """Close the port."""
        self._store = None
        self._listening.close()


def receive(invitation: Invitation, device: torch.device, worker: int = 0) -> bytes:
    """Return the bytes that are sent; see ``receive_into``."""
    content = io.BytesIO()
    receive_into(content, invitation, device, worker)
    return content.getvalue()


def receive_into(content: BinaryIO, invitation: Invitation, device: torch.device, worker: int = 0) -> None:
    """Write the bytes that are sent; ``worker`` is added to the invitation's place, where a server has several.

    Raises:
        BrokenOff: they did not all come within the limit.
        OSError: ``content`` cannot take them.
    """
    ends = time.monotonic() + invitation.limit_s
    mine = invitation.at(invitation.place + worker)
    try:
        limit = timedelta(seconds=invitation.limit_s)
        store = dist.TCPStore(mine.host, mine.port, is_master=False, timeout=limit, wait_for_workers=False)
    except RuntimeError as error:
        raise BrokenOff(f"no sender at {mine.host}:{mine.port}: {_first_line(error)}") from error
    with _group(store, mine, _own_address(mine.host, mine.port), ends) as group:
        for length in _pieces(mine.length):
            piece = torch.empty(length, dtype=torch.uint8, device=device)
            _broadcast(group, piece, ends)
            content.write(piece.cpu().numpy().data)
        _all_here(group, device, ends)


def _pieces(length: int) -> Iterator[int]:
    for start in range(0, length, _PIECE):
        yield min(_PIECE, length - start)


@contextmanager
def _group(store: dist.Store, invitation: Invitation, host: str, ends: float) -> Iterator[Any]:
    """Form the group of an invitation, beside whatever other groups the process is in; raise ``BrokenOff``."""
    size = invitation.size
    try:
        store.add(_HERE, 1)
        while (here := store.add(_HERE, 0)) < size:
            if time.monotonic() > ends:
                raise BrokenOff(f"{here} of {size} processes met within {invitation.limit_s:g} s")
            time.sleep(_LOOK_S)
        group = _formed(store, invitation, host, timedelta(seconds=max(ends - time.monotonic(), 1.0)))
    except BrokenOff:
        raise
    except RuntimeError as error:
        raise BrokenOff(f"the {size} processes of a broadcast did not meet: {_first_line(error)}") from error
    try:
        yield group
    finally:
        group.abort()


def _formed(store: dist.Store, invitation: Invitation, host: str, limit: timedelta) -> Any:
    kinds: Any = dist  # not every build of torch has both, and their options have no types
    if invitation.backend == "gloo":
        options = kinds.ProcessGroupGloo._Options()
        options._timeout = limit
        options._devices = [kinds.ProcessGroupGloo.create_device(hostname=host)]
        return kinds.ProcessGroupGloo(store, invitation.place, invitation.size, options)
    options = kinds.ProcessGroupNCCL.Options()
    options._timeout = 10 * limit  # the limit is kept here: where NCCL keeps it, it ends the process
    return kinds.ProcessGroupNCCL(store, invitation.place, invitation.size, options)


def _broadcast(group: Any, piece: torch.Tensor, ends: float) -> None:
    options: Any = dist.BroadcastOptions()
    options.rootRank = 0
    _done(lambda: group.broadcast([piece], options), piece.device, ends)


def _all_here(group: Any, device: torch.device, ends: float) -> None:
    """Wait until every process has come so far."""
    mark = torch.zeros(1, dtype=torch.int32, device=device)
    _done(lambda: group.allreduce([mark], dist.AllreduceOptions()), device, ends)


def _done(begin: Callable[[], Any], device: torch.device, ends: float) -> None:
    """Begin what a group does together, and wait for it; raise ``BrokenOff`` where somebody is gone or late."""
    try:
        work = begin()
        while not work.is_completed():
            if time.monotonic() > ends:
                raise BrokenOff("it was not over in time: a process stands still, or the network is too slow")
            time.sleep(_LOOK_S)
        work.wait()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except BrokenOff:
        raise
    except RuntimeError as error:
        raise BrokenOff(f"a process left the broadcast: {_first_line(error)}") from error


def _own_address(host: str, port: int) -> str:
    """Return the address of this machine by which it reaches ``host``; nothing is sent."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as looking:
        looking.connect((host, port))
        return str(looking.getsockname()[0])


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]
