"""One driver has a run; whoever was replaced can commit nothing more."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier, Event, Thread
from uuid import uuid4

import pytest

from records.stores.address import open_store
from records.stores.folder_store import FolderStore
from records.stores.lease import KEY, Head, LeaseHeld, LeaseLost, RunLease, read_head, this_machine
from records.stores.store import Store, StoreError
from tests.records.stores.contract import unanswered


@pytest.fixture(params=["folder", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "folder":
        return FolderStore(tmp_path)
    if request.param == "s3":
        for name, value in request.getfixturevalue("s3").items():
            monkeypatch.setenv(name, value)
        return open_store(f"s3://waymark-tests/{uuid4().hex}")
    return open_store(f"memory://tests/{uuid4().hex}")


def held_elsewhere(store: Store, **changes: object) -> Head:
    """Let a driver of another machine hold the run."""
    head = RunLease(store).take(alone=True)
    other = replace(head, machine="elsewhere", holder="process 7 on elsewhere", **changes)
    found = store.record(KEY)
    assert found is not None
    store.swap(KEY, json.dumps(asdict(other)).encode(), found.version)
    return other


def test_epochs_grow_and_what_was_committed_is_found(store: Store) -> None:
    first = RunLease(store)
    assert first.take().epoch == 1
    first.commit(newest="abc")
    first.give_back()
    second = RunLease(store).take()
    assert (second.epoch, second.newest) == (2, "abc")


def test_a_replaced_driver_commits_nothing(store: Store) -> None:
    old, new = RunLease(store), RunLease(store)
    old.take()
    old.check()
    assert new.take(alone=True).epoch == 2
    for attempt in (lambda: old.commit(newest="late"), old.check):
        with pytest.raises(LeaseLost, match="taken over by process"):
            attempt()
    old.give_back()
    new.check()
    head = read_head(store)
    assert head is not None
    assert (head.epoch, head.newest) == (2, "")


def test_a_driver_that_was_replaced_after_a_swap_without_an_answer_commits_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = RunLease(store), RunLease(store)
    old.take()
    with unanswered(store, monkeypatch), pytest.raises(StoreError, match="timed out"):
        old.commit(newest="late")
    taken = new.take(alone=True)
    for attempt in (old.commit, old.check):
        with pytest.raises(LeaseLost, match="taken over by process"):
            attempt()
    assert read_head(store) == taken


def test_a_store_that_is_away_at_the_end_keeps_nobody_from_ending(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = RunLease(store)
    lease.take()
    with unanswered(store, monkeypatch):
        lease.give_back()
    with pytest.raises(LeaseLost, match="has not taken"):
        lease.commit()


def test_a_driver_of_another_machine_that_writes_is_left_alone(store: Store) -> None:
    held_elsewhere(store)
    driver, stop = RunLease(store), Event()
    driver._head, driver._version = read_head(store), store.record(KEY).version  # type: ignore[union-attr]

    def beat() -> None:
        while not stop.wait(0.2):
            driver.commit()

    beating = Thread(target=beat)
    beating.start()
    try:
        with pytest.raises(LeaseHeld, match="process 7 on elsewhere"):
            RunLease(store).take(gone_s=20)
    finally:
        stop.set()
        beating.join(30)


def test_a_driver_of_another_machine_that_is_silent_is_replaced(store: Store) -> None:
    before = held_elsewhere(store, newest="abc")
    taken = RunLease(store).take(gone_s=0.5)
    assert (taken.epoch, taken.newest) == (before.epoch + 1, "abc")


def test_a_dead_process_of_this_machine_is_replaced_at_once(store: Store) -> None:
    if " " not in this_machine():
        pytest.skip("only Linux tells which process it was")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    found = RunLease(store).take()
    record = store.record(KEY)
    assert record is not None
    store.swap(KEY, json.dumps(asdict(replace(found, process=child))).encode(), record.version)
    assert RunLease(store).take(gone_s=3600).epoch == 2


def test_one_of_eight_takers_wins(store: Store) -> None:
    start = Barrier(8)

    def take(number: int) -> bool:
        start.wait(30)
        try:
            return RunLease(store).take(alone=True).epoch == 1
        except LeaseHeld:
            return False

    with ThreadPoolExecutor(8) as takers:
        firsts = list(takers.map(take, range(8)))
    assert firsts.count(True) == 1


def test_a_record_that_is_no_lease_is_named(store: Store) -> None:
    store.swap(KEY, b'{"epoch": 1}', None)
    with pytest.raises(StoreError, match="no lease of a run"):
        RunLease(store).take()
