"""A node keeps no more of runs in stores than its bound, and nothing goes that is in use or nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cluster.run_folder.lock import RunLock
from records.stores.node_bound import trim
from records.stores.working_copy import WorkingCopy, working_copy

SIZE = 1000
Made = Callable[[str, int], Path]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkingCopy]:
    monkeypatch.setenv("WAYMARK_NODE_FOLDER", str(tmp_path / "node"))
    monkeypatch.setenv("WAYMARK_NODE_FOLDER_GB", str(2.5 * SIZE / 1e9))
    working_copy.cache_clear()
    yield working_copy(f"memory://tests/{uuid4().hex}")
    working_copy.cache_clear()


@pytest.fixture
def made(copy: WorkingCopy) -> Made:
    """Make a file in the working copy that was used so many hours ago, and is in the store."""

    def make(name: str, hours: int, kept: bool = True) -> Path:
        path = copy.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode().ljust(SIZE))
        if kept:
            copy.keep(path)
        then = path.stat().st_mtime - 3600 * hours
        os.utime(path, (then, then))
        return path

    return make


def test_what_was_used_longest_ago_goes_and_comes_back(copy: WorkingCopy, made: Made) -> None:
    paths = [made(f"episodes/{name}.arrow", hours) for hours, name in ((3, "b"), (4, "a"), (1, "d"), (2, "c"))]
    digest = copy.keep(paths[0])
    assert trim(copy.folder.parent) == 2 * SIZE
    assert sorted(path.name for path in (copy.folder / "episodes").iterdir()) == ["c.arrow", "d.arrow"]
    assert copy.bring("episodes/b.arrow", digest).read_bytes().startswith(b"episodes/b.arrow")
    assert trim(copy.folder.parent) == SIZE
    assert sorted(path.name for path in (copy.folder / "episodes").iterdir()) == ["b.arrow", "d.arrow"], "b was used"


def test_nothing_goes_below_the_bound(copy: WorkingCopy, made: Made) -> None:
    made("episodes/a.arrow", 3), made("episodes/b.arrow", 2)
    assert trim(copy.folder.parent) == 0


def test_what_the_store_has_not_stays(copy: WorkingCopy, made: Callable[..., Path]) -> None:
    paths = [made(f"episodes/{i}.arrow", 9, kept=i > 2) for i in range(4)]
    assert trim(copy.folder.parent) == SIZE
    assert [path.exists() for path in paths] == [True, True, True, False]


def test_what_was_used_within_minutes_stays(copy: WorkingCopy, made: Made) -> None:
    paths = [made(f"weights/{i}.safetensors", 0) for i in range(4)]
    assert trim(copy.folder.parent) == 0
    assert all(path.exists() for path in paths)


@pytest.mark.parametrize(
    ("lock", "stays"),
    [("run.lock", {"episodes", "weights"}), ("learner.lock", {"episodes"}), ("other.lock", set())],
    ids=["the driver is here", "the learner is here", "neither"],
)
def test_what_is_in_use_stays(copy: WorkingCopy, made: Made, lock: str, stays: set[str]) -> None:
    for i in range(4):
        made(f"episodes/{i}.arrow", 9), made(f"weights/{i}.safetensors", 8)
    with RunLock(copy.folder, name=lock):
        trim(copy.folder.parent)
        left = {top: len(list((copy.folder / top).iterdir())) for top in ("episodes", "weights")}
    assert {top for top, count in left.items() if count == 4} == stays


def test_what_else_a_run_has_stays(copy: WorkingCopy, made: Made) -> None:
    paths = [made(f"{name}/{i}", 9) for i in range(3) for name in ("bookmarks", "ledger", "logs")]
    assert trim(copy.folder.parent) == 0
    assert all(path.exists() for path in paths)


def test_other_runs_of_the_node_count(copy: WorkingCopy, made: Made) -> None:
    old = [made(f"episodes/{i}.arrow", 9) for i in range(3)]
    other = WorkingCopy(f"memory://tests/{uuid4().hex}")
    new = other.folder / "episodes" / "new.arrow"
    new.parent.mkdir(parents=True)
    new.write_bytes(bytes(SIZE))
    other.keep(new)
    assert [path.exists() for path in (*old, new)].count(True) == 2
    assert new.exists()
