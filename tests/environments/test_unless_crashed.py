"""Work in a tab ends as soon as the tab's process has died, and cleans up first."""

from __future__ import annotations

import asyncio

import pytest

from environments.browser.calls import unless_crashed
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure


async def test_work_that_ends_gives_its_result_and_its_errors() -> None:
    async def good() -> str:
        await asyncio.sleep(0)
        return "done"

    async def bad() -> str:
        raise LookupError("no such element")

    assert await unless_crashed(asyncio.Event(), good) == "done"
    with pytest.raises(LookupError):
        await unless_crashed(asyncio.Event(), bad)


async def test_a_crash_ends_the_work_at_once_and_lets_it_clean_up() -> None:
    crashed, cleaned = asyncio.Event(), asyncio.Event()

    async def unanswered() -> None:
        try:
            crashed.set()
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    with pytest.raises(EpisodeFailed, match="infra/browser_crashed"):
        await unless_crashed(crashed, unanswered)
    assert cleaned.is_set()


async def test_work_that_fails_a_moment_before_the_crash_is_told_has_crashed() -> None:
    crashed = asyncio.Event()

    async def navigation() -> None:
        asyncio.get_running_loop().call_later(0.02, crashed.set)
        raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, "net::ERR_ABORTED"))

    with pytest.raises(EpisodeFailed, match="infra/browser_crashed") as raised:
        await unless_crashed(crashed, navigation)
    assert "ERR_ABORTED" in str(raised.value.__cause__)


async def test_a_deadline_ends_the_work_and_lets_it_clean_up() -> None:
    cleaned = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    with pytest.raises(EpisodeFailed, match="infra/step_timeout"):
        await Deadline(0.05, what="a step").run(unless_crashed(asyncio.Event(), slow))
    assert cleaned.is_set()
