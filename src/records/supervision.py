"""The one place that catches whatever work raises, and the end of tasks that nobody waits for any more.

Owns ``supervised``, ``attempted``, ``some_at_once`` and ``end_tasks``. Invariant: an error becomes a value in the
caller's hands, never silence; a caller that is cancelled is cancelled. Imports nothing but the standard library and
``records``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from records.failures import EpisodeFailed

T = TypeVar("T")
Item = TypeVar("Item")


async def supervised(work: Awaitable[T]) -> T | Exception | asyncio.CancelledError:
    """Return what ``work`` returns, or what it raises; cancelling the caller passes through.

    For the borders where foreign code is called, whose errors have no types that one could name: a judge's client, an
    environment under examination, a site, an episode in a worker.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        caller = asyncio.current_task()
        if caller is not None and caller.cancelling():
            raise
        return error  # the work gave up by itself
    except Exception as error:  # noqa: BLE001 - the caller, who knows what the work was, says what its error means
        return error


def attempted(work: Callable[[], T]) -> T | Exception | asyncio.CancelledError:
    """Return what ``work`` returns, or what it raises: ``supervised`` for foreign code that waits for nothing.

    A module of somebody else's is such code: its import executes it.
    """

    async def done() -> T:
        return work()

    try:
        supervised(done()).send(None)
    except StopIteration as end:
        found: T | Exception | asyncio.CancelledError = end.value
        return found
    raise AssertionError("what awaits nothing ends when it is first asked")


async def some_at_once(
    items: Iterable[Item], work: Callable[[Item], Awaitable[T]], at_once: int
) -> list[T | EpisodeFailed]:
    """Return what ``work`` gives for each item, in order, or why it failed; ``at_once`` are worked on at a time.

    Raises:
        EpisodeFailed: with a failure that ends the run; the work that is left is ended first.
    """
    room = asyncio.Semaphore(at_once)

    async def of_one(item: Item) -> T | EpisodeFailed:
        async with room:
            try:
                return await work(item)
            except EpisodeFailed as error:
                if error.failure.code.ends_run:
                    raise
                return error

    tasks = [asyncio.ensure_future(of_one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        if tasks:
            await end_tasks(*tasks)


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and return when they are over; what they raise is dropped, for their caller has its answer."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # asyncio reports an error that nobody has looked at
