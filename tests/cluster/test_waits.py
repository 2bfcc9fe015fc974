"""The table of waits in the documentation names every one, with the value that the code has."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from cluster.recipe.recipe import Recipe, flatten, resolved
from policy.vllm.backend import VllmSettings

ROOT = Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").split("\n## Waits\n", 1)[1].split("\n## ", 1)[0]
)
ROWS = re.findall(r"^\| `([^`]+)` \| ([^|]+?) \| ([^|]+) \|$", SECTION, re.MULTILINE)
NOT_TIMES = {"environments.embedded.faults.slow_s", "learner.bookmark_every_s"}
"""Settings in seconds that are no waits of Waymark's."""


def in_seconds(settings: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name.endswith("_s") and name not in NOT_TIMES}


def constants() -> dict[str, float]:
    """Every module's own numbers of seconds, as ``module.NAME``."""
    found = {}
    for top, prefix in (("src", ""), ("cluster", "cluster.")):
        for path in sorted((ROOT / top).rglob("*.py")):
            module = prefix + path.relative_to(ROOT / top).with_suffix("").as_posix().replace("/", ".")
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                target = node.targets[0] if isinstance(node, ast.Assign) else None
                if isinstance(target, ast.Name) and target.id.endswith("_S") and isinstance(node.value, ast.Constant):  # type: ignore[union-attr]
                    found[f"{module}.{target.id}"] = getattr(importlib.import_module(module), target.id)
    return found


def test_every_setting_in_seconds_is_in_the_table_with_its_default() -> None:
    told = {name: default for name, default, _ in ROWS if not name.rpartition(".")[2].isupper()}
    expected = in_seconds(flatten(resolved(Recipe())))
    webarena = resolved(Recipe())["environments"]["webarena"]
    expected |= in_seconds(flatten(webarena["deployments"][0], "environments.webarena.deployments[]."))
    expected |= in_seconds(flatten(asdict(VllmSettings()), "policy.options."))
    assert told == {name: "none" if value is None else f"{value:g}" for name, value in expected.items()}


def test_every_constant_in_seconds_is_in_the_table_with_its_value_and_says_why_it_is_one() -> None:
    told = {name: value for name, value, _ in ROWS if name.rpartition(".")[2].isupper()}
    assert told == {name: f"{value:g}" for name, value in constants().items()}


@pytest.mark.parametrize("name", sorted(constants()))
def test_a_constant_has_a_line_about_it(name: str) -> None:
    module, _, constant = name.rpartition(".")
    source = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
    assert re.search(rf'^{constant} = [\d.]+\n"""', source, re.MULTILINE), f"say under {name} why nobody changes it"


def test_every_wait_says_what_happens_when_it_is_over() -> None:
    assert len(ROWS) == len({name for name, _, _ in ROWS})
    assert [name for name, _, effect in ROWS if len(effect.split()) < 3] == []


def test_there_are_few_waits_to_set() -> None:
    assert len([name for name, _, _ in ROWS if not name.rpartition(".")[2].isupper()]) <= 36
