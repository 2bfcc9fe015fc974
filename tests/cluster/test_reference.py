"""The generated pages are complete and up to date."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.recipe.recipe import Recipe, flatten, resolved
from cluster.reference import decisions, modules
from cluster.reference.__main__ import PAGES
from cluster.reference.settings import attribute_docs, reference_page


@dataclass(frozen=True)
class Documented:
    """A settings class."""

    wait_s: float | None = None
    """Longest wait,
    in seconds."""
    count: int = 3


@pytest.mark.parametrize("path", list(PAGES), ids=lambda path: path.name)
def test_the_pages_in_the_repository_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path](), "run `make docs` and commit the pages"


def test_a_module_without_a_docstring_and_a_record_without_a_title_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "ROOT", tmp_path)
    (tmp_path / "bare.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match=r"bare\.py: expected a docstring"):
        modules.first_sentence(tmp_path / "bare.py")
    monkeypatch.setattr(decisions, "FOLDER", tmp_path)
    (tmp_path / "0007-lost.md").write_text("# Lost\n")
    with pytest.raises(ValueError, match=r"0007-lost\.md: expected a first line '# 7\. Title'"):
        decisions.index()


def test_the_index_says_which_records_are_superseded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "FOLDER", tmp_path)
    (tmp_path / "0007-old.md").write_text("# 7. The old way\n\nSuperseded by 9. It said much.\n")
    (tmp_path / "0009-new.md").write_text("# 9. The new way\n\n**Context.** Much.\n")
    assert decisions.index().splitlines()[-2:] == [
        "- [7](0007-old.md) The old way (superseded by 9)",
        "- [9](0009-new.md) The new way",
    ]


def test_every_setting_is_on_the_page() -> None:
    page = reference_page()
    for path, value in flatten(resolved(Recipe())).items():
        section, _, key = path.rpartition(".")
        if section == "monitors" and value == {}:
            assert f"### {path}\n" in page, "a monitor without settings has its heading"
            continue
        body = page.split(f"# {section}\n", 1)[1].split("\n#", 1)[0]
        assert f"| `{key}` |" in body, path


def test_a_setting_without_a_docstring_is_an_error() -> None:
    with pytest.raises(ValueError, match="Documented: no docstring under count"):
        attribute_docs(Documented)


def test_annotations_are_shown_as_written_and_bars_do_not_break_the_table() -> None:
    assert "| `time_limit_s` | `float \\| None` | `null` |" in reference_page()
