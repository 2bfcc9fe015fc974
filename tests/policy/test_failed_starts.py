"""When a server whose start failed is started again, and what its failure is called."""

from __future__ import annotations

import copy
import socket
from pathlib import Path

import pytest

from policy.client import StartFailed
from policy.server_start import ServerStart, StartRefused
from policy.server_watch import FailedStarts
from policy.settings import PolicySettings
from policy.vllm.backend import VllmSettings
from policy.vllm.process import NotReady, VllmProcess


def failed(start: str, *, refused: bool = False) -> StartFailed:
    return StartFailed(f"start {start} failed", start=start, refused=refused)


def test_pauses_double_up_to_the_longest_and_each_failed_start_is_followed_by_one_start() -> None:
    starts, now, pauses = FailedStarts(), 100.0, []
    for number in range(8):
        pause_s = starts.note(failed(str(number)), now)
        assert pause_s is not None
        pauses.append(pause_s)
        assert not starts.due(now, proven=True)
        assert starts.note(failed(str(number)), now + 1) is None, "it is known already"
        now += pause_s
        assert starts.due(now, proven=True)
        assert not starts.due(now + 1000, proven=True), "it was started again: what it says now is old"
        assert starts.reason == f"start {number} failed"
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


def test_pauses_begin_anew_once_the_server_has_been_up() -> None:
    starts = FailedStarts()
    assert [starts.note(failed(start), 0.0) for start in "ab"] == [5, 10]
    starts.over()
    assert starts.reason == ""
    assert starts.note(failed("c"), 0.0) == 5


def test_what_is_refused_is_tried_again_only_where_the_same_has_come_up_before() -> None:
    starts = FailedStarts()
    pause_s = starts.note(failed("a", refused=True), 0.0)
    assert pause_s is not None
    assert not starts.due(pause_s + 1e6, proven=False)
    assert starts.due(pause_s + 1e6, proven=True)


def test_a_start_that_fails_says_why_to_whoever_asks() -> None:
    def build() -> int:
        raise TimeoutError("the store is slow")

    start = ServerStart("policy server server-1", build)
    told = "policy server server-1 could not start: TimeoutError: the store is slow"
    with pytest.raises(StartFailed, match=told) as first:
        start.built()
    with pytest.raises(StartFailed) as second:
        start.built()
    crossed = copy.copy(first.value)  # as it crosses to another process
    assert (crossed.start, crossed.refused, crossed.for_good) == (second.value.start, False, False)
    assert ServerStart("policy server server-1", lambda: 7).built() == 7


def process(folder: Path, script: str) -> VllmProcess:
    """A process of vLLM whose Python is a script of the shell."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return VllmProcess(
        PolicySettings(), VllmSettings(), "model", python=str(python), host="127.0.0.1", token="t",
        log_file=folder / "vllm.log",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("echo unrecognized arguments: --nonsense; exit 2", StartRefused, "status 2.*unrecognized arguments"),
        ("echo address already in use; exit 1", NotReady, "status 1.*address already in use"),
        ("exec sleep 60", NotReady, "not ready within policy.options.start_timeout_s"),
    ],
)
def test_a_vllm_that_does_not_know_its_arguments_is_refused_and_any_other_end_is_not(
    tmp_path: Path, script: str, kind: type[Exception], said: str
) -> None:
    started = process(tmp_path, script)
    with pytest.raises(kind, match=said):
        started.wait(lambda: False, 0.0 if script.startswith("exec") else 60.0)
    started._process.kill()
    started.kill()


def test_two_servers_of_one_machine_do_not_share_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = process(tmp_path, "exit 1")
    port = int(first.url.rpartition(":")[2])
    with socket.socket() as taken, monkeypatch.context() as same:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", port))  # as vLLM does, so that a second one could
        same.setattr("policy.vllm.process._free_port", lambda host: port)
        with pytest.raises(OSError, match="in use"):
            process(tmp_path, "exit 1")
        first.kill()
        process(tmp_path, "exit 1").kill()
