"""One lease desk for several workers: what is lost on the way, who dies, and whose turn it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from environments.webarena.leases.desk import LeaseDesk
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.leases.remote import RemoteLeases
from environments.webarena.leases.shared import OwnerReport, SharedDesk
from environments.webarena.leases.units import Mode, SiteLease
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureKind

READ, WRITE = {"shop": Mode.READ}, {"shop": Mode.WRITE}
UNREACHABLE = EpisodeFailed(Failure(codes.LEASES_UNREACHABLE, "no answer"))


class Reset:
    """Counts resets; ``error`` makes them fail."""

    def __init__(self) -> None:
        self.begun, self.error = 0, False

    async def reset(self, deployment: str) -> None:
        self.begun += 1
        await asyncio.sleep(0)
        if self.error:
            raise EpisodeFailed(Failure(codes.RESET_FAILED, "the disk is full"))


class Port:
    """The way to a desk; ``down`` loses what is said, ``deaf`` loses the answers."""

    def __init__(self, desk: SharedDesk) -> None:
        self.desk, self.down, self.deaf, self.reports = desk, False, False, 0

    async def acquire(
        self, owner: str, number: int, modes: Mapping[str, Mode], timeout_s: float
    ) -> SiteLease | Failure:
        if self.down:
            raise UNREACHABLE
        answer = await self.desk.acquire(owner, number, modes, timeout_s)
        if self.deaf:
            raise UNREACHABLE
        return answer

    async def report(self, report: OwnerReport) -> frozenset[int]:
        self.reports += 1
        if self.down:
            raise UNREACHABLE
        return await self.desk.report(report)


class World:
    """A desk with one deployment, and the workers that use it."""

    def __init__(self, *, silence_s: float = 600.0) -> None:
        self.silence_s, self.reset, self.time = silence_s, Reset(), 0.0
        self.book = SiteLedger({"a": ["shop"]}, resettable=["a"], fresh=True)
        self.desk = SharedDesk(LeaseDesk(self.book, {"a": self.reset}, hold_s=600), silence_s=silence_s)

    def worker(self, owner: str) -> tuple[RemoteLeases, Port]:
        port = Port(self.desk)
        return RemoteLeases(port, owner=owner, silence_s=self.silence_s, clock=lambda: self.time), port


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def eventually(done: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0.005)


async def failure_of(waiting: object) -> Failure:
    with pytest.raises(EpisodeFailed) as caught:
        await waiting  # type: ignore[misc]
    return caught.value.failure


async def test_workers_share_the_sites_for_reading_and_wait_for_each_other_when_one_writes() -> None:
    world = World()
    (one, _), (two, _) = world.worker("one"), world.worker("two")
    reading, also_reading = await one.acquire(READ, 5), await two.acquire(READ, 5)
    assert one.holds(reading)
    assert two.holds(also_reading)
    writing = asyncio.create_task(one.acquire(WRITE, 5))
    await settled()
    assert not writing.done()
    one.release(reading)
    two.release(also_reading)
    lease = await writing
    late = asyncio.create_task(two.acquire(READ, 5))
    await settled()
    assert (late.done(), world.reset.begun) == (False, 0)
    one.release(lease)
    after = await late
    assert world.reset.begun == 1
    assert after.epochs != lease.epochs, "sessions of before the reset are void in every worker"
    two.release(after)
    await settled()
    assert (world.book.held, world.book.waiting) == (0, 0)
    await world.desk.close()


async def test_a_form_sent_on_a_reading_lease_is_told_across_the_way() -> None:
    world = World()
    one, _ = world.worker("one")
    one.release(await one.acquire(READ, 5), ["shop"])
    await one.acquire(READ, 5)
    assert world.reset.begun == 1
    await one.close()
    await world.desk.close()


async def test_a_worker_that_dies_loses_its_sites_which_are_reset_and_its_place_in_the_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    (dying, port), (other, _) = world.worker("worker 7"), world.worker("other")
    await dying.acquire(READ, 5)
    late = asyncio.create_task(other.acquire(WRITE, 60))
    await settled()
    waiting = asyncio.create_task(dying.acquire(READ, 60))
    await settled()
    port.down = True
    with caplog.at_level(logging.WARNING):
        world.desk._silent("worker 7")
    assert "worker 7 said nothing for 600 s: 1 leases taken back, 1 requests dropped" in caplog.text
    lease = await late
    assert world.reset.begun == 1, "what the dead worker may have changed is not known"
    assert (await failure_of(waiting)).code.name == "lease_lost"
    other.release(lease)
    await settled()
    assert (world.book.held, world.book.waiting) == (0, 0)
    for worker in (dying, other):
        await worker.close()
    await world.desk.close()


async def test_a_worker_that_has_nothing_may_be_silent(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    worker, _ = world.worker("one")
    assert (await failure_of(worker.acquire({"forum": Mode.READ}, 5))).code.name == "no_site"
    await settled()
    for owner in list(world.desk._owners):
        world.desk._silent(owner)
    assert (caplog.text, world.desk._owners) == ("", {})
    await worker.close()
    await world.desk.close()


async def test_a_worker_that_says_nothing_is_taken_for_dead_by_the_clock() -> None:
    world = World(silence_s=0.1)
    worker, port = world.worker("one")
    await worker.acquire(READ, 5)
    port.down = True
    await eventually(lambda: world.book.held == 0)
    await worker.close()
    await world.desk.close()


async def test_a_worker_that_waits_and_holds_for_long_is_heard_of_again_and_again() -> None:
    world = World(silence_s=2.0)
    worker, port = world.worker("one")
    lease = await worker.acquire(WRITE, 60)
    waiting = asyncio.create_task(worker.acquire(WRITE, 60))
    await eventually(lambda: port.reports >= 8)
    assert (world.book.held, world.book.waiting) == (1, 1)
    worker.release(lease)
    worker.release(await waiting)
    await worker.close()
    await world.desk.close()


async def test_a_worker_that_is_cut_off_gives_up_its_lease_no_later_than_the_desk_takes_it_back() -> None:
    world = World()
    worker, port = world.worker("one")
    lease = await worker.acquire(READ, 5)
    port.down = True
    world.time = 599.9
    assert worker.holds(lease)
    world.time = 600.0
    assert not worker.holds(lease)
    await worker.close()
    await world.desk.close()


async def test_a_worker_that_comes_back_after_too_long_learns_that_its_lease_is_gone() -> None:
    world = World()
    worker, port = world.worker("one")
    lease = await worker.acquire(READ, 5)
    port.down = True
    world.time = 600.0
    world.desk._silent("one")
    port.down = False
    worker._news.set()
    await settled()
    assert not worker.holds(lease)
    worker.release(lease)
    await worker.close()
    assert world.book.released == 1
    await world.desk.close()


async def test_a_lease_that_the_desk_takes_back_for_taking_too_long_is_told_to_its_worker() -> None:
    world = World()
    worker, _ = world.worker("one")
    lease = await worker.acquire(READ, 5)
    (granted,) = world.book._held.values()
    world.desk._desk._take_back(granted)
    assert worker.holds(lease), "the desk has not been asked yet"
    worker._news.set()
    await settled()
    assert not worker.holds(lease)
    await worker.close()
    await world.desk.close()


async def test_an_answer_that_is_lost_on_the_way_leaves_no_lease_behind() -> None:
    world = World()
    worker, port = world.worker("one")
    keeping = await worker.acquire(READ, 5)
    port.deaf = True
    assert (await failure_of(worker.acquire(READ, 5))).code.name == "leases_unreachable"
    await settled()
    assert world.book.held == 1
    assert worker.holds(keeping)
    await worker.close()
    await world.desk.close()


async def test_what_was_given_back_while_the_desk_was_out_of_reach_is_told_later() -> None:
    world = World()
    worker, port = world.worker("one")
    lease = await worker.acquire(READ, 5)
    port.down = True
    worker.release(lease, ["shop"])
    await settled()
    assert world.book.held == 1
    port.down = False
    worker._news.set()
    await settled()
    assert world.book.held == 0
    worker.release(await worker.acquire(READ, 5))
    assert world.reset.begun == 1, "that it was written to was not forgotten"
    await worker.close()
    await world.desk.close()


async def test_a_cancelled_wait_leaves_the_queue() -> None:
    world = World()
    (one, _), (two, _) = world.worker("one"), world.worker("two")
    lease = await one.acquire(WRITE, 5)
    waiting = asyncio.create_task(two.acquire(READ, 60))
    await settled()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await settled()
    assert world.book.waiting == 0
    one.release(lease)
    await settled()
    assert world.book.held == 0
    await world.desk.close()


async def test_a_worker_that_closes_gives_everything_back_at_once_and_takes_nothing_more() -> None:
    world = World()
    (one, _), (two, _) = world.worker("one"), world.worker("two")
    await one.acquire(WRITE, 5)
    await one.close()
    two.release(await two.acquire(READ, 5))
    assert world.reset.begun == 1
    failure = await failure_of(one.acquire(READ, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "leases_closed")
    await two.close()
    await world.desk.close()


async def test_waiting_ends_at_its_deadline_and_a_failed_reset_is_a_failure_of_the_infrastructure() -> None:
    world = World()
    (one, _), (two, _) = world.worker("one"), world.worker("two")
    lease = await one.acquire(WRITE, 5)
    failure = await failure_of(two.acquire(READ, 0.02))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "lease_timeout")
    world.reset.error = True
    one.release(lease)
    failure = await failure_of(two.acquire(READ, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
    assert "the disk is full" in failure.detail
    failure = await failure_of(two.acquire({"forum": Mode.READ}, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.TASK, "no_site")
    world.reset.error = False
    two.release(await two.acquire(READ, 5))
    await settled()
    assert (world.book.held, world.book.waiting) == (0, 0)
    await world.desk.close()


async def test_a_desk_that_is_out_of_reach_is_a_failure_of_the_infrastructure() -> None:
    world = World()
    worker, port = world.worker("one")
    port.down = True
    failure = await failure_of(worker.acquire(READ, 5))
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "leases_unreachable")
    await worker.close()
    await world.desk.close()


async def test_a_desk_that_begins_anew_tells_everybody_that_their_leases_are_gone() -> None:
    world, successor = World(), World()
    worker, port = world.worker("one")
    lease = await worker.acquire(READ, 5)
    port.desk = successor.desk
    worker._news.set()
    await settled()
    assert not worker.holds(lease)
    again = await worker.acquire(READ, 5)
    assert worker.holds(again)
    worker.release(again)
    await settled()
    assert successor.book.held == 0
    await worker.close()
    for desk in (world.desk, successor.desk):
        await desk.close()


async def test_a_writer_gets_its_turn_however_many_readers_of_other_workers_come() -> None:
    world = World()
    order: list[str] = []

    async def read(leases: RemoteLeases, name: str) -> None:
        lease = await leases.acquire(READ, 30)
        order.append(name)
        await asyncio.sleep(0)
        leases.release(lease)

    async def write(leases: RemoteLeases) -> None:
        lease = await leases.acquire(WRITE, 30)
        order.append("write")
        leases.release(lease)

    workers = [world.worker(f"worker {number}")[0] for number in range(4)]
    before = [asyncio.create_task(read(leases, "before")) for leases in workers]
    await asyncio.sleep(0)
    writer = asyncio.create_task(write(workers[0]))
    await asyncio.sleep(0)
    after = [asyncio.create_task(read(leases, "after")) for leases in workers * 5]
    await asyncio.gather(*before, writer, *after)
    assert order.index("write") == order.count("before")
    assert order.count("after") == 20
    await settled()
    assert (world.book.held, world.book.waiting, world.book.granted) == (0, 0, 25)
    for leases in workers:
        await leases.close()
    await world.desk.close()
