"""A worker's processes are found by their mark and do not outlive it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.browser import owned_processes
from environments.browser.owned_processes import (
    MarkedProcess,
    kill,
    kill_owned,
    marked_processes,
    orphans,
    process_mark,
)
from environments.browser.process import BrowserProcess

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")

OWNER = """
import subprocess, sys, time
from environments.browser import owned_processes
from environments.browser.owned_processes import mark_children, start_guard
owned_processes.MARK = sys.argv[2]
mark = mark_children()
guard = start_guard(mark, 60) if sys.argv[1] == "guarded" else None
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(mark, flush=True)
sys.stdin.read()
"""

RELAY = """
import os, time
ends = time.monotonic() + 60
print("running", flush=True)
while time.monotonic() < ends:
    if os.fork():
        os._exit(0)
    time.sleep(0.002)
"""
"""Runs on in a new process each time, as what is being started does; on a busy machine for longer than it sleeps."""


def start_owner(kind: str) -> tuple[subprocess.Popen[str], str]:
    """Start a process that owns a detached child; return it and its mark."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, kind, owned_processes.MARK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert owner.stdout is not None
    return owner, owner.stdout.readline().strip()


@pytest.fixture
def guarded() -> Iterator[tuple[subprocess.Popen[str], str]]:
    owner, mark = start_owner("guarded")
    yield owner, mark
    _end(owner, mark)


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Its children carry a mark of their own: a worker of another test would end those that have lost their owner."""
    monkeypatch.setattr(owned_processes, "MARK", "WAYMARK_UNGUARDED_OWNER")
    owner, mark = start_owner("unguarded")
    yield owner, mark
    _end(owner, mark)


def test_children_carry_the_mark_while_their_owner_lives(guarded: tuple[subprocess.Popen[str], str]) -> None:
    owner, mark = guarded
    (child,) = wait_for(mark, 1)
    assert mark == process_mark(owner.pid)
    assert "sleep" in child.command
    assert not child.orphaned


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_guard_ends_a_dead_owners_children(guarded: tuple[subprocess.Popen[str], str], how: int) -> None:
    owner, mark = guarded
    wait_for(mark, 1)
    owner.send_signal(how)
    owner.wait(10)
    assert wait_for(mark, 0) == []


def test_orphans_are_those_whose_owner_is_gone(unguarded: tuple[subprocess.Popen[str], str]) -> None:
    owner, mark = unguarded
    wait_for(mark, 1)
    assert mark not in {process.owner for process in orphans()}
    owner.kill()
    owner.wait(10)
    ours = [process for process in orphans() if process.owner == mark]
    assert len(ours) == 1
    assert kill(ours) == 1
    assert wait_for(mark, 0) == []


def test_what_runs_on_in_a_new_process_is_found_at_every_look_and_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_processes, "MARK", "WAYMARK_RELAY_OWNER")
    mark = "1:1"
    variables = {**os.environ, owned_processes.MARK: mark}
    with subprocess.Popen([sys.executable, "-c", RELAY], env=variables, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline()
        found = [bool(marked_processes(mark)) for _ in range(200)]
        kill_owned(mark, 30)
    assert all(found), f"{found.count(False)} of {len(found)} looks missed it"
    assert marked_processes(mark) == []


@pytest.mark.browser
async def test_no_secret_of_the_worker_is_in_the_environment_of_what_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"RAY_AUTH_TOKEN": "s3cret", "SHOPPING_PASSWORD": "s3cret", "HTTPS_PROXY": "http://me:s3cret@proxy"}
    secrets |= {"WAYMARK_VLLM_TOKEN": "s3cret", "WAYMARK_TOKEN_OF_OUR_OWN": "s3cret"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    mark = process_mark(os.getpid())
    assert mark is not None
    monkeypatch.setenv(owned_processes.MARK, mark)
    browser, guard = BrowserProcess(), owned_processes.start_guard("1:1", 60)
    try:
        await (await browser.open_context("<-loopback>")).new_page()
        assert (await browser.draw("<h1>drawn</h1>")).startswith(b"\x89PNG")
        started = {process.pid: process.command for process in marked_processes(mark)}
        for what in ("--waymark-browser=painter-", f"--waymark-browser={browser.browser_id}", "run-driver"):
            assert any(what in command for command in started.values()), what
        guards = [found.parent for found in Path("/proc").glob("[0-9]*/cmdline") if b"guard\x001:1" in _read(found)]
        assert guards
        for folder in [*guards, *(Path(f"/proc/{pid}") for pid in started)]:
            environment = _read(folder / "environ")
            assert b"PATH=" in environment
            assert b"s3cret" not in environment, _read(folder / "cmdline")
    finally:
        guard.close()
        await browser.close()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_without_proc_nothing_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(owned_processes, "_PROC", tmp_path / "proc")
    assert owned_processes.all_marked() == []
    assert process_mark(os.getpid()) is None


def test_a_reused_process_id_is_not_taken_for_the_owner() -> None:
    mine = process_mark(os.getpid())
    assert mine is not None
    pid, _, started = mine.partition(":")
    assert process_mark(int(pid)) != f"{pid}:{int(started) + 1}"


def wait_for(mark: str, count: int) -> list[MarkedProcess]:
    ends = time.monotonic() + 10
    while len(found := marked_processes(mark)) != count and time.monotonic() < ends:
        time.sleep(0.02)
    return found


def _end(owner: subprocess.Popen[str], mark: str) -> None:
    owner.kill()
    kill_owned(mark, 10)
    owner.communicate(timeout=10)
