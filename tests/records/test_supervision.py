"""One place catches everything: what work raises becomes a value there, and cancellation passes."""

from __future__ import annotations

import asyncio
import gc
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.supervision import end_tasks, some_at_once, supervised

ROOT = Path(__file__).resolve().parents[2]


async def answering(value: object) -> object:
    await asyncio.sleep(0)
    if isinstance(value, BaseException):
        raise value
    return value


@pytest.mark.parametrize("said", [7, None, ValueError("no"), asyncio.CancelledError("gave up"), TimeoutError()])
async def test_a_result_and_an_error_come_back_as_values(said: object) -> None:
    assert await supervised(answering(said)) is said


async def test_a_caller_that_is_cancelled_is_cancelled_and_so_is_the_work() -> None:
    ended: list[str] = []

    async def patient() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("work")

    task = asyncio.ensure_future(supervised(patient()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["work"]


async def test_a_deadline_around_it_holds() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await supervised(asyncio.sleep(60))


async def test_tasks_are_over_when_they_are_ended_and_nobody_is_told_of_their_errors() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    failed, sleeping = asyncio.ensure_future(answering(ValueError())), asyncio.ensure_future(asyncio.sleep(60))
    await asyncio.sleep(0.01)
    await end_tasks(failed, sleeping)
    assert failed.done()
    assert sleeping.cancelled()
    del failed, sleeping
    gc.collect()
    assert told == []


def test_only_one_place_may_catch_everything() -> None:
    """Ruff forbids broad excepts (BLE) everywhere; gather must not be used to hide one."""
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "BLE" in rules["select"]
    assert not any("BLE" in code for codes in rules["per-file-ignores"].values() for code in codes)
    sources = {path: path.read_text() for folder in ("src", "cluster") for path in (ROOT / folder).rglob("*.py")}
    excused = [path.name for path, text in sources.items() for _ in re.finditer("noqa: BLE|noqa *$", text, re.M)]
    assert excused == ["supervision.py"]
    assert [path for path, text in sources.items() if "return_exceptions" in text] == []


async def test_of_many_questions_each_has_its_answer_or_its_failure_and_so_many_are_asked_at_once() -> None:
    asked: list[int] = []
    most = 0

    async def ask(number: int) -> str:
        nonlocal most
        asked.append(number)
        most = max(most, len(asked))
        await asyncio.sleep(0.001 * (5 - number))
        asked.remove(number)
        if number == 2:
            raise EpisodeFailed(Failure(codes.JUDGE_DEADLINE, "late"))
        return f"answer {number}"

    found = await some_at_once(range(5), ask, 3)
    assert [one if isinstance(one, str) else one.failure.detail for one in found] == [
        "answer 0", "answer 1", "late", "answer 3", "answer 4",
    ]  # fmt: skip
    assert most == 3
    assert await some_at_once([], ask, 3) == []


async def test_a_failure_that_ends_the_run_ends_the_other_questions_first() -> None:
    ended: list[int] = []

    async def ask(number: int) -> None:
        if number == 1:
            raise EpisodeFailed(Failure(codes.JUDGE_BUDGET, "nothing is left"))
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    with pytest.raises(EpisodeFailed, match="nothing is left"):
        await some_at_once(range(4), ask, 2)
    assert 0 in ended
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nobody asks on"
