"""Admission to the sites: who gets a lease, resets in the background, leases that are kept too long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from environments.admission import Asking
from environments.environment import Grant
from environments.webarena.leases.admission import TAKE_BACK_S, SiteAdmission
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.leases.resets import Resets
from environments.webarena.leases.units import SiteLease
from records import failure_codes as codes
from records.episodes import Task
from records.failures import EpisodeFailed, Failure, FailureKind
from tests.environments.webarena.fake_sites import fake_task

T = TypeVar("T")
READ = fake_task(require_login=False)
WRITE = fake_task(require_login=False, evaluation={"eval_types": ["program_html"], "program_html": []})
ELSEWHERE = fake_task(sites=("gitlab",), require_login=False)
HOLD_S = 60.0


class Reset:
    """A reset that takes as long as the test wants and ends as it says."""

    def __init__(self) -> None:
        self.go, self.begun = threading.Event(), 0
        self.error: Exception | None = None

    async def reset(self, deployment: str) -> None:
        self.begun += 1
        while not self.go.is_set():
            await asyncio.sleep(0.002)
        if self.error is not None:
            raise self.error


class Book:
    """An admission over one deployment with a shop, and its resets."""

    def __init__(self, *, fresh: bool = True) -> None:
        self.reset, self.now = Reset(), 0.0
        self.ledger = SiteLedger({"a": ["shopping"]}, resettable=["a"], fresh=fresh)
        self.resets = Resets({"a": self.reset})
        self.admission = SiteAdmission(self.ledger, self.resets, hold_s=HOLD_S, clock=lambda: self.now)

    def __enter__(self) -> Book:
        self.resets.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.resets.__exit__(*error)

    def decided(self, request: str, task: Task) -> Grant | Failure:
        """Ask, and return what was decided in the end."""
        self.admission.ask(request, task)
        return until(lambda: self.admission.decided(1).get(request))

    def lease(self, request: str, task: Task) -> SiteLease:
        found = self.decided(request, task)
        assert isinstance(found, SiteLease), found
        return found

    def failure(self, request: str, task: Task) -> Failure:
        found = self.decided(request, task)
        assert isinstance(found, Failure), found
        return found

    def waits(self, request: str, task: Task) -> bool:
        self.admission.ask(request, task)
        return self.admission.decided(1) == {}


def until(look: Callable[[], T | None]) -> T:
    ends = time.monotonic() + 60
    while (found := look()) is None:
        assert time.monotonic() < ends, "nothing was decided"
        time.sleep(0.002)
    return found


def test_whoever_comes_after_a_writer_waits_for_the_reset() -> None:
    with Book() as book:
        book.admission.release(book.lease("one", WRITE))
        assert book.admission.decided(1) == {}
        assert book.reset.begun == 0, "a reset that nobody waits for is not begun"
        assert book.waits("two", READ)
        until(lambda: book.reset.begun or None)
        book.reset.go.set()
        book.admission.release(book.lease("two", READ))
        assert (book.ledger.held, book.ledger.waiting, book.ledger.resets) == (0, 0, 1)


def test_a_reset_begins_while_no_worker_has_room() -> None:
    with Book(fresh=False) as book:
        book.admission.ask("one", READ)
        assert book.admission.decided(0) == {}
        until(lambda: book.reset.begun or None)


def test_grants_are_no_more_than_asked_for_and_in_order() -> None:
    with Book() as book:
        for name in "abc":
            book.admission.ask(name, READ)
        assert list(book.admission.decided(2)) == ["a", "b"]
        assert list(book.admission.decided(2)) == ["c"]


def test_a_reset_that_fails_is_told_to_the_oldest_and_tried_again_for_the_next() -> None:
    with Book(fresh=False) as book:
        book.reset.error = EpisodeFailed(Failure(codes.RESET_FAILED, "the disk is full"))
        book.admission.ask("one", READ)
        book.admission.ask("two", READ)
        assert book.admission.decided(2) == {}
        book.reset.go.set()
        decided = until(lambda: book.admission.decided(0) or None)
        assert list(decided) == ["one"], "one failure for one reset"
        failure = decided["one"]
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
        assert "the disk is full" in failure.detail
        book.reset.error = None
        assert isinstance(until(lambda: book.admission.decided(1).get("two")), SiteLease | Failure)
        assert book.reset.begun >= 2


def test_an_error_nobody_expected_in_a_reset_reaches_those_who_wait() -> None:
    with Book(fresh=False) as book:
        book.reset.error = ZeroDivisionError("surprise")
        book.reset.go.set()
        failure = book.failure("one", READ)
        assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "reset_failed")
        assert "surprise" in failure.detail


def test_a_request_that_is_taken_back_leaves_the_queue() -> None:
    with Book() as book:
        lease = book.lease("one", WRITE)
        assert book.waits("two", READ)
        book.admission.withdraw("two")
        assert book.ledger.waiting == 0
        book.admission.release(lease)
        assert book.admission.decided(9) == {}


def test_what_was_written_to_be_read_only_is_reset() -> None:
    with Book() as book:
        book.reset.go.set()
        lease = book.lease("one", READ)
        lease.wrote.add("shopping")
        book.admission.release(lease)
        book.admission.release(book.lease("two", READ))
        assert book.reset.begun == 1


def test_the_sites_of_a_lost_episode_are_reset() -> None:
    with Book() as book:
        book.reset.go.set()
        book.admission.release(book.lease("one", READ), lost=True)
        book.admission.release(book.lease("two", READ))
        assert book.reset.begun == 1


def test_a_lease_that_is_kept_too_long_is_taken_back_and_its_sites_are_reset() -> None:
    with Book() as book:
        book.reset.go.set()
        lease = book.lease("one", READ)
        assert book.waits("two", WRITE)
        book.now = HOLD_S + TAKE_BACK_S / 2
        assert book.admission.decided(1) == {}, "its world ends the episode first"
        book.now = HOLD_S + TAKE_BACK_S
        late = until(lambda: book.admission.decided(1).get("two"))
        assert isinstance(late, SiteLease)
        assert book.reset.begun == 1
        book.admission.release(lease)  # late, and without effect
        assert (book.ledger.held, book.ledger.released) == (1, 1)


def test_closing_ends_resets() -> None:
    with Book(fresh=False) as book:
        book.admission.ask("one", READ)
        book.admission.decided(1)
        until(lambda: book.reset.begun or None)
    assert not book.resets._thread.is_alive()


def test_a_site_that_is_nowhere_is_the_tasks_failure() -> None:
    with Book() as book:
        failure = book.failure("one", ELSEWHERE)
        assert (failure.kind, failure.code.name) == (FailureKind.TASK, "no_site")
        assert book.ledger.waiting == 0


async def test_environments_without_a_pool_wait_for_their_own_grants_and_a_cancelled_wait_leaves_nothing() -> None:
    with Book() as book:
        asking = Asking(book.admission)
        lease = await asking.wait(READ)
        waiting = asyncio.create_task(asking.wait(WRITE))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (book.ledger.held, book.ledger.waiting) == (1, 0)
        book.admission.release(lease)
        with pytest.raises(EpisodeFailed, match="task/no_site"):
            await asking.wait(ELSEWHERE)
