"""Files that grow: whatever is appended and whenever they are put, they come back, and little is put."""

from __future__ import annotations

import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.stores import pieces
from records.stores.object_store import ObjectStore
from records.stores.objects import object_key
from records.stores.pieces import Pieces, fetch_named, from_json, holds, keys_of, put_grown, to_json
from records.stores.store import Content, DamagedObject

NAME = "ledger/0001.jsonl"
LARGEST = 512


class Counted(ObjectStore):
    """A store that counts the bytes that were put."""

    def __init__(self) -> None:
        super().__init__(f"memory://tests/{uuid4().hex}")
        self.put_bytes = 0

    def put(self, key: str, content: Content) -> bool:
        self.put_bytes += len(content) if isinstance(content, bytes) else content.stat().st_size
        return super().put(key, content)


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGEST", LARGEST)
        yield


def fetched(store: ObjectStore, found: Pieces, folder: Path) -> bytes:
    fetch_named(store, NAME, from_json(to_json(found)), folder / "fetched")
    return (folder / "fetched").read_bytes()


def most(size: int) -> float:
    return 2 * size / LARGEST + math.log2(LARGEST) + 2


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3 * LARGEST) | st.integers(0, 20), max_size=60))
def test_what_was_appended_comes_back_in_few_pieces(appended: list[int]) -> None:
    store, found, content = Counted(), (), b""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for size in appended:
            content += os.urandom(size)
            path.write_bytes(content)
            found = put_grown(store, NAME, path, found)
            assert sum(piece.size for piece in found) == len(content)
            assert len(found) <= most(len(content))
            assert holds(path, found)
        assert not appended or fetched(store, found, Path(folder)) == content


def test_a_line_behind_a_large_file_costs_a_line(tmp_path: Path) -> None:
    store, path = Counted(), tmp_path / "file"
    path.write_bytes(os.urandom(100 * LARGEST))
    found = put_grown(store, NAME, path, ())
    assert store.put_bytes == 100 * LARGEST
    with path.open("ab") as file:
        file.write(b"a line\n")
    assert put_grown(store, NAME, path, found)[:-1] == found
    assert store.put_bytes == 100 * LARGEST + 7


def test_of_many_lines_each_is_put_a_few_times(tmp_path: Path) -> None:
    store, path, found = Counted(), tmp_path / "file", ()
    with path.open("ab") as file:
        for _ in range(1000):
            file.write(os.urandom(8))
            file.flush()
            found = put_grown(store, NAME, path, found)
    assert store.put_bytes <= 8000 * math.log2(LARGEST)
    assert put_grown(store, NAME, path, found) == found


@pytest.mark.parametrize("other", [b"", b"short", b"x" * 2000])
def test_what_is_another_file_is_put_whole(other: bytes, tmp_path: Path) -> None:
    store, path = Counted(), tmp_path / "file"
    path.write_bytes(os.urandom(1500))
    before = put_grown(store, NAME, path, ())
    path.write_bytes(other)
    found = put_grown(store, NAME, path, before)
    assert not set(found) & set(before)
    assert fetched(store, found, tmp_path) == other


def test_a_piece_that_changed_in_the_store_is_named(tmp_path: Path) -> None:
    store, path = Counted(), tmp_path / "file"
    path.write_bytes(os.urandom(1500))
    found = put_grown(store, NAME, path, ())
    assert keys_of(NAME, found) == {object_key(NAME, piece.sha256) for piece in found}
    key = object_key(NAME, found[1].sha256)
    store.delete(key)
    store.put(key, b"x" * found[1].size)
    with pytest.raises(DamagedObject, match="remove it"):
        fetched(store, found, tmp_path)
    assert not (tmp_path / "fetched").exists()
