"""The generated page of settings is complete and up to date."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cluster.recipe.recipe import Recipe, flatten, resolved
from cluster.recipe.reference import PAGE, attribute_docs, reference_page


@dataclass(frozen=True)
class Documented:
    """A settings class."""

    wait_s: float | None = None
    """Longest wait,
    in seconds."""
    count: int = 3


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), (
        "run `python -m cluster.recipe.reference` and commit the page"
    )


def test_every_setting_is_on_the_page() -> None:
    page = reference_page()
    for path in flatten(resolved(Recipe())):
        section, _, key = path.rpartition(".")
        body = page.split(f"# {section}\n", 1)[1].split("\n#", 1)[0]
        assert f"| `{key}` |" in body, path


def test_a_setting_without_a_docstring_is_an_error() -> None:
    with pytest.raises(ValueError, match="Documented: no docstring under count"):
        attribute_docs(Documented)


def test_annotations_are_shown_as_written_and_bars_do_not_break_the_table() -> None:
    assert "| `time_limit_s` | `float \\| None` | `null` |" in reference_page()
