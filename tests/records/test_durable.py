"""What lies in place of a file is never waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from records.durable import NotAFile, open_file, read_text, replace_file
from tests.not_files import NOT_FILES, at_once


@pytest.mark.parametrize("kind", [kind for kind in NOT_FILES if "link" not in kind])
def test_only_files_are_opened(tmp_path: Path, kind: str) -> None:
    NOT_FILES[kind](tmp_path / "it")
    with at_once(), pytest.raises(NotAFile, match=f"it: expected a file, found {kind}"):
        open_file(tmp_path / "it")


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    replace_file(tmp_path / "it", "é\n".encode())
    (tmp_path / "link").symlink_to(tmp_path / "it")
    assert read_text(tmp_path / "it") == read_text(tmp_path / "link") == "é\n"
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none")
