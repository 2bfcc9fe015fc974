"""vLLM's process ends with its starter, whatever kills which of them. A stand-in plays vLLM: no model is loaded.

It reads its standard input to the end first, so that one that inherited the starter's pipe would not come up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import policy.vllm.inside as inside

LAUNCH = Path(inside.__file__).parent / "launch.py"
STAND_IN = """
import subprocess, sys, time
engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
sys.stdin.read()
print(engine.pid, flush=True)
time.sleep(120)
"""
SLOW_WATCHER = """
import os, time
first, setsid = os.getpid(), os.setsid
def late():
    if os.getpid() != first:
        time.sleep(1.0)
    setsid()
os.setsid = late
"""
LIMIT_S = 30.0


@pytest.fixture
def slow_watcher(tmp_path: Path) -> None:
    """The process that watches the server takes its time to begin."""
    (tmp_path / "sitecustomize.py").write_text(SLOW_WATCHER)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server as ``VllmProcess`` starts one, with the process id of its engine."""
    package = tmp_path / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(STAND_IN)
    server = subprocess.Popen(
        [sys.executable, str(LAUNCH)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert server.stdout is not None
    engine = int(server.stdout.readline())
    yield server, engine
    end_starter(server)
    for process in (server.pid, engine):
        if psutil.pid_exists(process):
            os.kill(process, signal.SIGKILL)
    server.stdout.close()
    server.wait(LIMIT_S)


def is_gone(process: int) -> bool:
    """Whether a process ends within the limit; one that only waits to be collected has ended."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            if psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def end_starter(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()


def test_server_and_engine_end_with_the_starters_pipe(started: tuple[subprocess.Popen[bytes], int]) -> None:
    server, engine = started
    end_starter(server)
    assert is_gone(server.pid)
    assert is_gone(engine)


def test_a_server_that_stands_still_ends_too(started: tuple[subprocess.Popen[bytes], int]) -> None:
    server, engine = started
    os.killpg(server.pid, signal.SIGSTOP)
    end_starter(server)
    assert is_gone(server.pid)
    assert is_gone(engine)


@pytest.mark.usefixtures("slow_watcher")
def test_a_signal_to_the_group_never_meets_who_watches_it(
    started: tuple[subprocess.Popen[bytes], int],
) -> None:
    server, engine = started
    os.killpg(server.pid, signal.SIGSTOP)
    end_starter(server)
    assert is_gone(server.pid)
    assert is_gone(engine)


def test_an_engine_whose_server_was_killed_alone_ends_with_the_starter(
    started: tuple[subprocess.Popen[bytes], int],
) -> None:
    server, engine = started
    server.kill()
    server.wait(LIMIT_S)
    assert psutil.Process(engine).status() != psutil.STATUS_ZOMBIE, "the engine outlives its server"
    end_starter(server)
    assert is_gone(engine)


def test_both_live_while_the_starter_does(started: tuple[subprocess.Popen[bytes], int]) -> None:
    server, engine = started
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.5)
    assert psutil.Process(engine).is_running()
