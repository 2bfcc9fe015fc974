"""One driver has a run folder, on file systems without locks too; one that was replaced records no stage."""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event, Thread

import pytest

from cluster.errors import RunInUse, RunStopped
from cluster.run_folder.driving import driving
from cluster.run_folder.manifest import RunManifest
from records.stores.folder_store import FolderStore
from records.stores.lease import KEY, LeaseHeld, LeaseLost, RunLease, read_head
from tests.cluster.test_manifest import RECIPE, made


def taken_over(out: Path) -> None:
    """Another machine's driver takes the run, for which this one was silent."""
    lease = RunLease(FolderStore(out))
    for left in reversed(range(20)):
        try:
            head = lease.take(alone=True)
            break
        except LeaseHeld:  # the driver's beat came between what was read and what was written
            assert left
    lease.commit(machine="elsewhere", holder="process 7 on elsewhere", epoch=head.epoch)


def test_the_lease_is_given_back_and_taken_again(tmp_path: Path) -> None:
    for epoch in (1, 2, 3):
        with driving(FolderStore(tmp_path)) as lease:
            assert lease.head.epoch == epoch
    head = read_head(FolderStore(tmp_path))
    assert head is not None
    assert head.holder == ""


def test_a_driver_that_was_replaced_records_no_stage(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)

    def replaced() -> None:
        with driving(FolderStore(tmp_path)) as own:
            manifest.fence = own.commit
            manifest.complete_stage(0, made(0, "clone"))
            taken_over(tmp_path)
            manifest.complete_stage(0, made(0, "critics"))

    with pytest.raises(RunStopped, match="taken over by process 7 on elsewhere"):
        replaced()
    assert RunManifest.read(tmp_path).stages() == [(0, "clone")]
    head = read_head(FolderStore(tmp_path))
    assert head is not None
    assert head.holder == "process 7 on elsewhere", "what the replaced driver did at its end changed nothing"


def test_a_driver_that_sleeps_between_its_commit_and_its_manifest_takes_nobodys_place(tmp_path: Path) -> None:
    manifest, other = RunManifest.open(tmp_path, RECIPE), RunManifest.open(tmp_path, RECIPE)

    def slow() -> None:
        other.complete_stage(0, made(0, "clone"), seconds=7.0)

    manifest.fence = slow
    with pytest.raises(LeaseLost, match="recorded by another driver"):
        manifest.complete_stage(0, made(0, "clone"))
    assert RunManifest.read(tmp_path).seconds == {0: {"clone": 7.0}}


def test_a_driver_that_was_replaced_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.run_folder.driving.BEAT_S", 0.1)
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    before = signal.getsignal(signal.SIGINT)

    def replaced() -> None:
        with driving(FolderStore(tmp_path)):
            taken_over(tmp_path)
            for _ in range(200):
                time.sleep(0.1)

    try:
        with pytest.raises(RunStopped, match="taken over"):
            replaced()
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, inherited)


def test_a_run_of_a_living_driver_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.run_folder.driving.BEAT_S", 0.2)
    store = FolderStore(tmp_path)
    with driving(store, renew=lambda lease: lease.commit(machine="elsewhere")) as lease:
        lease.commit(machine="elsewhere")
        with pytest.raises(RunInUse, match="in use by another driver"), driving(store):
            pass
        lease.check()


def test_a_snapshot_that_takes_long_holds_up_no_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.run_folder.driving.BEAT_S", 0.05)
    begun, put = Event(), Event()

    def snapshot(lease: RunLease) -> None:
        begun.set()
        put.wait(60)

    with driving(FolderStore(tmp_path), snapshot=snapshot) as lease:
        assert begun.wait(60)
        before = lease.head.beat
        for _ in range(1200):
            if lease.head.beat > before + 2:
                break
            time.sleep(0.05)
        assert lease.head.beat > before + 2
        put.set()


def test_a_driver_of_another_machine_that_is_being_ended_is_waited_for(tmp_path: Path) -> None:
    store, ending, told = FolderStore(tmp_path), Event(), list[str]()
    other = RunLease(store)
    other.take()
    other.commit(machine="elsewhere", holder="process 7 on elsewhere")

    def beat() -> None:
        while not ending.wait(0.2):
            other.commit()

    def end(text: str) -> None:
        told.append(text)
        ending.set()
        beating.join(30)
        other.give_back()

    beating = Thread(target=beat)
    beating.start()
    try:
        with driving(store, wait_s=3600, tell=end) as lease:
            assert lease.head.epoch == 2
    finally:
        ending.set()
    assert len(told) == 1
    assert re.search("in use by another driver .process 7 on elsewhere.*at most 3600 s for its end", told[0])


def test_a_damaged_lease_is_named(tmp_path: Path) -> None:
    with driving(FolderStore(tmp_path)) as lease:
        head = replace(lease.head, beat=99)
    record = FolderStore(tmp_path).record(KEY)
    assert record is not None
    FolderStore(tmp_path).swap(KEY, json.dumps(asdict(head))[:40].encode(), record.version)
    with pytest.raises(RunStopped, match="no lease of a run"), driving(FolderStore(tmp_path)):
        pass
