"""What every store must do; a test class of a store gives ``store``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import pytest

from records.stores.lease import RunLease, read_head
from records.stores.objects import fetch_object, object_key, put_object, read_object
from records.stores.store import DamagedObject, MissingKey, RecordChanged, Store, StoreError

RACERS = 16


@contextmanager
def unanswered(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let swaps land and raise, as where the store was away for longer than its client asks again."""
    swap = store.swap

    def landed(key: str, content: bytes, version: str | None) -> str:
        swap(key, content, version)
        raise StoreError(f"{key}: timed out")

    with monkeypatch.context() as patched:
        patched.setattr(store, "swap", landed)
        yield


class StoreContract:
    def test_an_object_is_put_once_and_stays(self, store: Store) -> None:
        assert store.put("a/b.arrow", b"first")
        assert not store.put("a/b.arrow", b"second")
        assert store.read("a/b.arrow") == b"first"
        assert store.size("a/b.arrow") == 5

    def test_a_file_is_put_and_fetched_as_it_is(self, store: Store, tmp_path: Path) -> None:
        content = bytes(range(256)) * 5000
        (tmp_path / "file").write_bytes(content)
        assert store.put("files/one", tmp_path / "file")
        store.fetch("files/one", tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == content

    def test_what_is_not_there_is_missing(self, store: Store, tmp_path: Path) -> None:
        with pytest.raises(MissingKey, match="nothing/here"):
            store.read("nothing/here")
        with pytest.raises(MissingKey):
            store.fetch("nothing/here", tmp_path / "copy")
        assert store.size("nothing/here") is None
        assert store.keys("nothing") == []
        assert store.record("nothing") is None

    def test_keys_are_listed_below_a_prefix(self, store: Store) -> None:
        for key in ("a/one", "a/b/two", "ab/three", "c"):
            store.put(key, b".")
        assert store.keys("a") == ["a/b/two", "a/one"]

    def test_what_is_deleted_is_gone_and_may_be_put_again(self, store: Store) -> None:
        store.put("a/one", b"1")
        store.delete("a/one")
        store.delete("a/one")
        assert store.size("a/one") is None
        assert store.put("a/one", b"2")

    @pytest.mark.parametrize("key", ["../out", "/etc/passwd", "a/../../b", ".hidden", "a/.b", "", "a//b", "a\0b", "a/"])
    def test_a_key_does_not_lead_out(self, store: Store, key: str) -> None:
        with pytest.raises(ValueError, match="no key of a store"):
            store.put(key, b"x")
        with pytest.raises(ValueError, match="no key of a store"):
            store.read(key)

    def test_one_of_sixteen_racers_for_a_key_wins(self, store: Store) -> None:
        start = Barrier(RACERS)

        def race(racer: int) -> bool:
            start.wait(30)
            return store.put("race/key", f"racer {racer}".encode())

        with ThreadPoolExecutor(RACERS) as racers:
            won = list(racers.map(race, range(RACERS)))
        assert won.count(True) == 1
        assert store.read("race/key") == f"racer {won.index(True)}".encode()

    def test_a_record_changes_for_who_names_its_version(self, store: Store) -> None:
        first = store.swap("record", b"1", None)
        second = store.swap("record", b"2", first)
        for stale in (None, first):
            with pytest.raises(RecordChanged):
                store.swap("record", b"3", stale)
        found = store.record("record")
        assert found is not None
        assert (found.content, found.version) == (b"2", second)

    def test_one_of_sixteen_swappers_wins_each_time(self, store: Store) -> None:
        version = store.swap("record", b"start", None)
        for turn in range(3):
            start = Barrier(RACERS)

            def race(racer: int, turn: int = turn, version: str = version, start: Barrier = start) -> str | None:
                start.wait(30)
                try:
                    return store.swap("record", f"{turn} {racer}".encode(), version)
                except RecordChanged:
                    return None

            with ThreadPoolExecutor(RACERS) as racers:
                versions = list(racers.map(race, range(RACERS)))
            (version,) = [found for found in versions if found is not None]
            found = store.record("record")
            assert found is not None
            assert (found.content, found.version) == (f"{turn} {versions.index(version)}".encode(), version)

    def test_a_swapper_that_slept_over_many_changes_is_refused(self, store: Store) -> None:
        old = version = store.swap("record", b"0", None)
        for number in range(1, 40):
            version = store.swap("record", f"{number}".encode(), version)
        with pytest.raises(RecordChanged):
            store.swap("record", b"late", old)
        found = store.record("record")
        assert found is not None
        assert found.content == b"39"

    @pytest.mark.parametrize("changes", [{}, {"newest": "a" * 64}], ids=["a beat", "a snapshot"])
    def test_a_driver_whose_swap_landed_and_raised_goes_on(
        self, store: Store, changes: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = RunLease(store)
        lease.take(alone=True)
        for _ in range(2):
            with unanswered(store, monkeypatch), pytest.raises(StoreError, match="timed out"):
                lease.commit(**changes)
            lease.check()
            head = lease.commit()
            assert read_head(store) == head, "the record says what the driver takes for written"
            assert head.newest == ""

    @pytest.mark.parametrize("changes", [{}, {"newest": "a" * 64}], ids=["a beat", "a snapshot"])
    def test_a_run_whose_driver_had_no_answer_is_given_back(
        self, store: Store, changes: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = RunLease(store)
        lease.take(alone=True)
        with unanswered(store, monkeypatch), pytest.raises(StoreError, match="timed out"):
            lease.commit(**changes)
        lease.give_back()
        head = read_head(store)
        assert head is not None
        assert head.holder == ""

    def test_an_object_named_by_its_content_comes_back_verified(self, store: Store, tmp_path: Path) -> None:
        digest = put_object(store, "episodes/shard.arrow", b"episodes")
        assert put_object(store, "episodes/shard.arrow", b"episodes") == digest
        assert read_object(store, "episodes/shard.arrow", digest) == b"episodes"
        fetch_object(store, "episodes/shard.arrow", digest[:32], tmp_path / "here" / "shard.arrow")
        assert (tmp_path / "here" / "shard.arrow").read_bytes() == b"episodes"

    def test_a_torn_and_a_lying_object_are_refused(self, store: Store, tmp_path: Path) -> None:
        digest = put_object(store, "whole", b"episodes")
        for content, name in ((b"episo", "torn"), (b"EPISODES", "lying")):
            store.put(object_key(name, digest), content)
            with pytest.raises(DamagedObject, match=name):
                read_object(store, name, digest)
            with pytest.raises(DamagedObject, match=name):
                fetch_object(store, name, digest, tmp_path / name)
            assert list(tmp_path.iterdir()) == []
        with pytest.raises(DamagedObject, match="5 bytes instead of 8"):
            put_object(store, "torn", b"episodes")
