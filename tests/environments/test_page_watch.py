"""A renderer that holds too much is ended and the reason told once; nothing else is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError

from environments.browser import page_watch
from environments.browser.page_watch import PageWatch
from environments.browser.process_facts import ancestors, resident_mb, worked_s
from records.failures import FailureKind

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")

HOLD = "import sys; held = bytearray(int(sys.argv[1]) << 20); print('held', flush=True); sys.stdin.read()"


def holder(megabytes: int) -> subprocess.Popen[bytes]:
    """Start a process that holds some memory until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", HOLD, str(megabytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.fixture
def small() -> Iterator[subprocess.Popen[bytes]]:
    yield from _held(1)


@pytest.fixture
def large() -> Iterator[subprocess.Popen[bytes]]:
    yield from _held(200)


def _held(megabytes: int) -> Iterator[subprocess.Popen[bytes]]:
    process = holder(megabytes)
    yield process
    process.kill()
    process.communicate(timeout=240)


class Wire:
    """Names the processes it was given, as Chromium does."""

    def __init__(self, **processes: str) -> None:
        self.asked = 0
        self._named = [{"id": int(pid[1:]), "type": kind} for pid, kind in processes.items()]

    async def send(self, method: str) -> dict[str, Any]:
        assert method == "SystemInfo.getProcessInfo"
        self.asked += 1
        if self.asked == 1:
            raise PlaywrightError("it is busy")
        return {"processInfo": self._named}


async def ended(process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(60):
        return await asyncio.to_thread(process.wait, 60)


async def test_a_renderer_past_the_limit_is_ended_and_the_reason_told_once(
    small: subprocess.Popen[bytes], large: subprocess.Popen[bytes]
) -> None:
    wire = Wire(**{f"p{small.pid}": "renderer", f"p{large.pid}": "renderer"})
    watch = PageWatch(wire, limit_mb=100)  # type: ignore[arg-type]
    watch.start()
    assert await ended(large) == -signal.SIGKILL
    told = watch.take_ended()
    assert told is not None
    assert (told.kind, told.code.name) == (FailureKind.INFRA, "page_memory")
    assert told.detail.endswith("MB; browser.page_memory_mb is 100")
    assert watch.take_ended() is None
    assert small.poll() is None
    await watch.stop()
    await watch.stop()


async def test_an_end_of_which_no_news_came_is_not_told_of_a_later_page(
    small: subprocess.Popen[bytes], large: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(**{f"p{small.pid}": "renderer", f"p{large.pid}": "renderer"})
    watch = PageWatch(wire, limit_mb=100)  # type: ignore[arg-type]
    watch.start()
    await ended(large)
    now = time.monotonic()
    monkeypatch.setattr(page_watch.time, "monotonic", lambda: now + 100.0)
    assert watch.take_ended() is None
    await watch.stop()


async def test_processes_that_are_no_renderers_are_left_alone(large: subprocess.Popen[bytes]) -> None:
    wire = Wire(**{f"p{large.pid}": "browser"})
    watch = PageWatch(wire, limit_mb=100)  # type: ignore[arg-type]
    watch.start()
    async with asyncio.timeout(60):
        while wire.asked < 3:
            await asyncio.sleep(0.05)
    assert large.poll() is None
    assert watch.take_ended() is None
    await watch.stop()


def test_a_process_that_has_gone_holds_nothing(small: subprocess.Popen[bytes]) -> None:
    assert 0 < resident_mb(small.pid) < 100
    small.kill()
    small.wait(60)
    assert resident_mb(small.pid) == worked_s(small.pid) == 0


def test_a_process_tells_who_is_between_and_how_long_it_has_worked(small: subprocess.Popen[bytes]) -> None:
    between = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
    assert between.stdout is not None
    inner = int(between.stdout.readline())
    assert ancestors(inner) == [between.pid]
    assert ancestors(small.pid) == ancestors(os.getppid()) == []
    os.kill(inner, signal.SIGKILL)
    between.communicate(timeout=60)
    assert 0.0 <= worked_s(small.pid) < worked_s(os.getpid())
