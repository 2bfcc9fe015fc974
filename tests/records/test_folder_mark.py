"""A process knows by the mark whether it sees the driver's very folder; one that does not makes nothing there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from records.folder_mark import FolderNotShared, lack, marked_folder, require_mark


def test_whoever_sees_the_mark_sees_the_folder(tmp_path: Path) -> None:
    with marked_folder(tmp_path) as mark:
        require_mark(mark)
        assert lack(mark) == ""
    assert os.listdir(tmp_path) == [], "the mark goes with the processes of the run"
    require_mark("")  # a run in a store, of which each node has a folder of its own


def test_a_folder_that_is_not_there_an_empty_one_and_an_older_copy_are_not_taken_for_it(tmp_path: Path) -> None:
    """As another node has them at the path of the driver's folder, which is moved away for that."""
    out, aside = tmp_path / "out", tmp_path / "aside"
    out.mkdir()
    (out / "manifest.json").write_text("{}")
    with marked_folder(out):
        shutil.copytree(out, tmp_path / "copy")  # with the mark of an earlier start
    with marked_folder(out) as mark:
        out.rename(aside)
        with pytest.raises(FolderNotShared, match=rf"^node \S+ does not see the run folder: {out} is not there; mount"):
            require_mark(mark)
        assert not out.exists(), "whoever looks makes nothing"
        for other in (tmp_path / "copy", tmp_path / "empty"):
            other.mkdir(exist_ok=True)
            other.rename(out)
            assert lack(mark) == f"{out} is another folder than the driver's"
            out.rename(other)
        aside.rename(out)
        assert lack(mark) == ""


def test_what_lies_there_and_cannot_be_opened_is_told_by_its_reason(tmp_path: Path) -> None:
    with marked_folder(tmp_path) as mark:
        Path(mark).unlink()
        Path(mark).mkdir()
        assert lack(mark).startswith(f"{tmp_path} cannot be read: ")
        Path(mark).rmdir()


def test_the_mark_of_a_driver_that_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / ".mark-0123"
    left.touch()
    with marked_folder(tmp_path) as mark:
        assert not left.exists(), "processes of the killed driver that live on write nothing more"
        assert sorted(os.listdir(tmp_path)) == [Path(mark).name]
