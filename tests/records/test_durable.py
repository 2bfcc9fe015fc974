"""What lies in place of a file is never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from records.durable import NotAFile, open_file, read_text, replace_file, replace_folder
from tests.not_files import NOT_FILES, at_once


@pytest.mark.parametrize("kind", [kind for kind in NOT_FILES if "link" not in kind])
def test_only_files_are_opened(tmp_path: Path, kind: str) -> None:
    NOT_FILES[kind](tmp_path / "it")
    with at_once(), pytest.raises(NotAFile, match=f"it: expected a file, found {kind}"):
        open_file(tmp_path / "it")


def filled(path: Path, content: str) -> Path:
    path.mkdir()
    (path / "a").write_text(content)
    return path


@pytest.mark.parametrize("left", [False, True], ids=["", "what a killed process left"])
def test_a_folder_takes_the_place_of_another(tmp_path: Path, left: bool) -> None:
    filled(tmp_path / "c", "old")
    if left:
        filled(tmp_path / ".c.new.replaced", "older")
    replace_folder(filled(tmp_path / ".c.new", "new"), tmp_path / "c")
    assert [(path.name, (path / "a").read_text()) for path in tmp_path.iterdir()] == [("c", "new")]


def test_where_a_folder_cannot_have_its_name_the_old_one_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "c", "old")
    rename = os.rename

    def refused(source: Path, target: Path) -> None:
        if source.name == ".c.new":
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(OSError, match="No space left"):
        replace_folder(filled(tmp_path / ".c.new", "new"), tmp_path / "c")
    assert (tmp_path / "c" / "a").read_text() == "old"


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    replace_file(tmp_path / "it", "é\n".encode())
    (tmp_path / "link").symlink_to(tmp_path / "it")
    assert read_text(tmp_path / "it") == read_text(tmp_path / "link") == "é\n"
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none")
