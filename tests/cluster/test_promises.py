"""What the project's files promise is there: extras, markers, and the variables that the command line reads."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from sites import tasks
from sites.chains import splits

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def sources(*folders: str) -> dict[Path, str]:
    return {path: path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py")}


def test_an_extra_is_there_for_code_that_imports_it() -> None:
    code = "\n".join(sources("src", "cluster").values())
    for extra, requirements in PROJECT["project"]["optional-dependencies"].items():
        names = [re.split(r"[\[<>=; ]", requirement)[0].replace("-", "[._]") for requirement in requirements]
        used = [name for name in names if re.search(rf"^\s*(import|from) {name}", code, re.M)]
        assert used or extra == "dev", f"nothing imports what the extra {extra!r} brings"


def test_a_marker_is_there_for_tests_that_carry_it() -> None:
    tests = "\n".join(sources("tests").values())
    for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]:
        assert f"mark.{marker.partition(':')[0]}" in tests, marker


def test_every_environment_variable_that_is_read_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    code = "\n".join(sources("src", "cluster").values())
    read = set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"(?!\] =)", code))
    assert "RAY_ADDRESS" in read
    assert sorted(name for name in read if f"`{name}`" not in page) == []


def test_what_the_documentation_names_of_the_repository_is_there() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    tests = {path.stem for path in (ROOT / "tests").rglob("test_*.py")} | {*splits.SPLITS, *tasks.SPLITS}
    missing, named = [], 0
    for page in pages:
        text = page.read_text()
        paths = re.findall(r"(?<![\w/.-])((?:tests|src|cluster|benchmarks|deploy)/[\w./-]+\.\w+)", text)
        asked = [path for path in paths if not re.search(r"/(NAME|SITE)\.", path)]
        named += len(asked)
        missing += [f"{page.name}: {path}" for path in asked if not (ROOT / path).exists()]
        missing += [f"{page.name}: {name}" for name in re.findall(r"`(test_\w+)`", text) if name not in tests]
    assert named > 50
    assert missing == []
