"""Waiting for site leases: deadlines, resets in the background, leases that run out."""

import asyncio

import pytest

from environments.webarena.leases.desk import LeaseDesk
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.leases.units import Mode
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureKind

READ, WRITE = {"shop": Mode.READ}, {"shop": Mode.WRITE}


class Reset:
    """A reset that takes as long as the test wants and ends as it says."""

    def __init__(self) -> None:
        self.go, self.begun = asyncio.Event(), 0
        self.error: Exception | None = None

    async def reset(self, deployment: str) -> None:
        self.begun += 1
        await self.go.wait()
        if self.error is not None:
            raise self.error


def desk_with(reset: Reset, *, hold_s: float = 60.0, fresh: bool = True) -> tuple[LeaseDesk, SiteLedger]:
    book = SiteLedger({"a": ["shop"]}, resettable=["a"], fresh=fresh)
    return LeaseDesk(book, {"a": reset}, hold_s=hold_s), book


async def failure_of(waiting: object) -> Failure:
    with pytest.raises(EpisodeFailed) as caught:
        await waiting  # type: ignore[misc]
    return caught.value.failure


async def test_whoever_comes_after_a_writer_waits_for_the_reset() -> None:
    reset = Reset()
    desk, book = desk_with(reset)
    desk.release(await desk.acquire(WRITE, 1))
    assert reset.begun == 0
    waiting = asyncio.create_task(desk.acquire(READ, 5))
    await asyncio.sleep(0.01)
    assert (reset.begun, waiting.done()) == (1, False)
    reset.go.set()
    lease = await waiting
    assert desk.holds(lease)
    desk.release(lease)
    assert (book.held, book.waiting, book.resets) == (0, 0, 1)
    await desk.close()


async def test_a_reset_that_fails_is_told_to_those_who_wait_and_tried_again_for_the_next() -> None:
    reset = Reset()
    desk, book = desk_with(reset, fresh=False)
    reset.error = EpisodeFailed(Failure(codes.RESET_FAILED, "the disk is full"))
    reset.go.set()
    failure = await failure_of(desk.acquire(READ, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
    assert "the disk is full" in failure.detail
    reset.error = None
    desk.release(await desk.acquire(READ, 5))
    assert (reset.begun, book.waiting) == (2, 0)
    await desk.close()


async def test_an_error_nobody_expected_in_a_reset_reaches_those_who_wait() -> None:
    reset = Reset()
    desk, _ = desk_with(reset, fresh=False)
    reset.error = ZeroDivisionError("surprise")
    reset.go.set()
    failure = await failure_of(desk.acquire(READ, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
    assert "surprise" in failure.detail
    await desk.close()


async def test_waiting_ends_at_its_deadline_and_leaves_the_queue() -> None:
    desk, book = desk_with(Reset())
    lease = await desk.acquire(WRITE, 1)
    failure = await failure_of(desk.acquire(READ, 0.02))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "lease_timeout")
    assert "1 writer" in failure.detail
    assert book.waiting == 0
    desk.release(lease)
    await desk.close()


async def test_a_cancelled_wait_leaves_the_queue_and_gives_back_what_it_got() -> None:
    desk, book = desk_with(Reset())
    lease = await desk.acquire(READ, 1)
    waiting = asyncio.create_task(desk.acquire(WRITE, 5))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert book.waiting == 0
    late = asyncio.create_task(desk.acquire(WRITE, 5))
    await asyncio.sleep(0.01)
    desk.release(lease)  # grants, and the cancellation comes before the waiting task runs again
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert (book.held, book.waiting) == (0, 0)
    await desk.close()


async def test_a_lease_that_is_kept_too_long_is_taken_back_and_its_sites_are_reset() -> None:
    reset = Reset()
    desk, book = desk_with(reset, hold_s=0.02)
    reset.go.set()
    lease = await desk.acquire(READ, 1)
    await asyncio.sleep(0.05)
    assert not desk.holds(lease)
    desk.release(lease)  # late, and without effect
    assert book.released == 1
    desk.release(await desk.acquire(WRITE, 1))
    assert reset.begun == 1
    await desk.close()


async def test_closing_ends_waiting_and_resets() -> None:
    reset = Reset()
    desk, book = desk_with(reset, fresh=False)
    waiting = asyncio.create_task(desk.acquire(READ, 30))
    await asyncio.sleep(0.01)
    assert reset.begun == 1
    await desk.close()
    assert (await failure_of(waiting)).code.name == "leases_closed"
    assert (await failure_of(desk.acquire(READ, 30))).kind is FailureKind.INFRA
    assert book.waiting == 0


async def test_a_site_that_is_nowhere_is_the_tasks_failure() -> None:
    desk, _ = desk_with(Reset())
    failure = await failure_of(desk.acquire({"forum": Mode.READ}, 1))
    assert (failure.kind, failure.code.name) == (FailureKind.TASK, "no_site")
    await desk.close()
