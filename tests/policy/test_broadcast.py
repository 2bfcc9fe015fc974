"""A file of weights over a process group: whole in every process, or broken off in time and with the reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from policy.broadcast_sender import BroadcastSender
from policy.published_weights import PublishedWeights, TransferBroken
from policy.vllm.inside import waymark_broadcast
from policy.vllm.inside.waymark_broadcast import BrokenOff, Invitation, receive
from policy.weights import read_weights, write_weights

HOST, CPU, LIMIT_S = "127.0.0.1", torch.device("cpu"), 30.0


@pytest.fixture
def sender() -> BroadcastSender:
    return BroadcastSender("cpu", HOST)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three pieces and a bit."""
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(3 * (1 << 20) + 7))
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waymark_broadcast, "_PIECE", 1 << 20)


def sent(sender: BroadcastSender, file: Path) -> TransferBroken | None:
    try:
        sender.send(file)
    except TransferBroken as fault:
        return fault
    return None


def test_every_receiver_has_the_very_bytes(sender: BroadcastSender, file: Path) -> None:
    invitations = sender.invite(file, ["cpu", "cpu"], LIMIT_S)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(receive, Invitation.read(text), CPU) for text in invitations]
        sender.send(file)
        assert [one.result(LIMIT_S) for one in found] == [file.read_bytes()] * 2


def test_workers_of_one_server_take_places_side_by_side(sender: BroadcastSender, file: Path) -> None:
    first, _ = sender.invite(file, ["cpu", "cpu"], LIMIT_S)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(receive, Invitation.read(first), CPU, worker) for worker in (0, 1)]
        sender.send(file)
        assert [one.result(LIMIT_S) for one in found] == [file.read_bytes()] * 2


def test_weights_are_read_from_an_invitation_and_held_against_their_checksum(
    sender: BroadcastSender, tmp_path: Path
) -> None:
    written = write_weights({"w": torch.arange(6.0)}, tmp_path / "w.safetensors", 1)
    for checksum, refused in ((written.checksum, False), ("0" * 64, True)):
        (place,) = sender.invite(Path(written.path), ["cpu"], LIMIT_S)
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(read_weights, PublishedWeights(1, checksum, place))
            sender.send(Path(written.path))
            if refused:
                with pytest.raises(ValueError, match="expected checksum 0000"):
                    found.result(LIMIT_S)
            else:
                contents = found.result(LIMIT_S)
                assert isinstance(contents, dict)
                assert contents["w"].tolist() == list(range(6))


def test_who_does_not_come_is_waited_for_no_longer_than_was_said(sender: BroadcastSender, file: Path) -> None:
    first, _ = sender.invite(file, ["cpu", "cpu"], 2.0)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(receive, Invitation.read(first), CPU)
        assert "2 of 3 processes met within 2 s" in str(sent(sender, file))
        with pytest.raises(BrokenOff):
            found.result(LIMIT_S)


def test_a_sender_that_is_gone_is_said_to_be(sender: BroadcastSender, file: Path) -> None:
    (place,) = sender.invite(file, ["cpu"], 2.0)
    assert "processes met" in str(sent(sender, file))
    with pytest.raises(BrokenOff, match=r"no sender at 127.0.0.1"):
        receive(Invitation.read(place), CPU)


def test_a_sender_without_a_file_or_a_guest_says_so(sender: BroadcastSender, tmp_path: Path) -> None:
    with pytest.raises(TransferBroken, match="cannot send"):
        sender.invite(tmp_path / "nowhere", ["cpu"], LIMIT_S)
    with pytest.raises(TransferBroken, match="nobody is invited"):
        sender.send(tmp_path)


def test_an_invitation_reads_as_it_was_written_and_nothing_else_does() -> None:
    for host in (HOST, "fd00::7"):
        invitation = Invitation(host, 4000, 1, 3, "gloo", 12, 2.5)
        assert Invitation.read(str(invitation)) == invitation
    for text in ("/weights/3", "broadcast://host/", "broadcast://host:1/?place=1", "broadcast://h:1/?place=x&size=2"):
        with pytest.raises(ValueError, match=r"invitation|invalid"):
            Invitation.read(text)


_SLOWLY = """
import sys, time
import torch
import waymark_broadcast as module
original = module._broadcast
module._broadcast = lambda *args: (time.sleep(0.1), original(*args))
module._PIECE = 1 << 20
module.receive(module.Invitation.read(sys.argv[1]), torch.device("cpu"))
"""


@contextmanager
def slow_receiver(text: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that takes a piece every tenth of a second; it imports what a worker of vLLM does."""
    inside = {**os.environ, "PYTHONPATH": str(Path(waymark_broadcast.__file__).parent)}
    process = subprocess.Popen([sys.executable, "-c", _SLOWLY, text], env=inside, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_receiver_that_dies_or_stands_still_midway_ends_the_broadcast_for_all_in_time(
    sender: BroadcastSender, tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, limit_s = tmp_path / "large", 40.0
    file.write_bytes(bytes(60 << 20))
    first, second = sender.invite(file, ["cpu", "cpu"], limit_s)
    pieces: list[int] = []
    original: Callable[..., None] = waymark_broadcast._broadcast
    monkeypatch.setattr(waymark_broadcast, "_broadcast", lambda *args: (pieces.append(1), original(*args)))
    with slow_receiver(second) as process, ThreadPoolExecutor(2) as threads:
        here = threads.submit(receive, Invitation.read(first), CPU)
        sending = threads.submit(sent, sender, file)
        while len(pieces) < 10 and not sending.done():
            time.sleep(0.05)
        os.kill(process.pid, how)
        fault = sending.result(2 * limit_s)
        assert fault is not None
        assert ("left the broadcast" if how == signal.SIGKILL else "not over in time") in str(fault)
        with pytest.raises(BrokenOff):
            here.result(2 * limit_s)
