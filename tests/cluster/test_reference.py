"""The generated pages are complete and up to date."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from cluster.monitors.monitor import MONITORS
from cluster.recipe.recipe import Recipe, flatten, resolved
from cluster.reference import decisions, modules
from cluster.reference.__main__ import PAGES
from cluster.reference.settings import attribute_docs, reference_page
from environments.kinds import KINDS
from judges.kinds import JUDGES
from policy.backend import BACKENDS


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


def settings_classes() -> set[type]:
    """Every dataclass that a recipe's own sections, and the options of all that Waymark plugs in, are made of."""
    registries: list[Any] = [KINDS, JUDGES, MONITORS, BACKENDS]
    sections = [type(getattr(Recipe(), name)) for name in Recipe.model_fields]
    waiting = [*sections, *(registry.find(name).settings for registry in registries for name in registry.own)]
    found: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind not in found:
            found.add(kind)
            waiting += [part for hint in get_type_hints(kind).values() for part in parts_of(hint)]
    return {kind for kind in found if dataclasses.fields(kind)}


def parts_of(hint: Any) -> Iterator[Any]:
    """A type and, however deep, all that it is made of."""
    yield hint
    for inner in get_args(hint):
        yield from parts_of(inner)


def test_every_class_of_settings_that_a_recipe_leads_to_has_a_table() -> None:
    classes = settings_classes()
    assert {"ModelSettings", "LoginFormSettings", "DeploymentSettings"} <= {kind.__name__ for kind in classes}
    sections = reference_page().split("\n#")
    for kind in classes:
        summary = " ".join((kind.__doc__ or "").split(".")[0].split()).replace("``", "`")
        mine = [section for section in sections if summary in " ".join(section.split())]
        assert mine, f"{kind.__name__} has no table"
        for section in mine:
            path = section.lstrip("#").split("\n")[0].strip()
            inner = [line for line in sections if line.lstrip("#").strip().startswith(f"{path}.")]
            for field in dataclasses.fields(kind):
                there = f"| `{field.name}` |" in section or any(f"{path}.{field.name}\n" in line for line in inner)
                assert there, f"{path}.{field.name}"


def test_what_a_name_of_the_users_or_an_item_of_a_list_holds_is_on_the_page() -> None:
    page = reference_page()
    model = page.split("# judges.llm.models.NAME\n", 1)[1].split("\n#", 1)[0]
    assert "| `model` | `str` | required |" in model
    assert "| `base_url` | `str` | `''` | ◦ Address" in model
    assert "| `models` | `Mapping[str, ModelSettings]` | `{}` |" in page
    reset = page.split("# environments.webarena.deployments[].reset\n", 1)[1].split("\n#", 1)[0]
    assert "| `kind` | `str` | `none` | ◦ " in reset, "what is in an operational setting is operational"


def test_a_setting_without_a_docstring_is_an_error() -> None:
    with pytest.raises(ValueError, match="Documented: no docstring under count"):
        attribute_docs(Documented)


def test_annotations_are_shown_as_written_and_bars_do_not_break_the_table() -> None:
    assert "| `time_limit_s` | `float \\| None` | `null` |" in reference_page()
