"""The generated table of modules: ``docs/reference/modules.md``, one line each, from the first line of its docstring.

Owns the reading of docstrings from source; imports none of the modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "modules.md"

_INTRO = """\
# Every module, in a line

Generated from the modules' docstrings by `make docs`; do not edit. What may import what is declared in `pyproject.toml`
(`tool.importlinter`) and held by `make lint`.
"""


def module_page() -> str:
    """Return the page as Markdown; raise ``ValueError`` naming a module without a docstring."""
    parts = [_INTRO]
    for package in packages():
        name = package.relative_to(package.parents[0] if package.name == "cluster" else ROOT / "src").as_posix()
        parts += [f"## {name}", "", first_sentence(package / "__init__.py"), "", "| module | what it is |", "|---|---|"]
        parts += [f"| `{where}` | {first_sentence(path)} |" for where, path in _modules(package)]
        parts.append("")
    return "\n".join(parts)


def packages() -> list[Path]:
    """Return the folders of Waymark's packages, by name."""
    found = [path.parent for path in (ROOT / "src").glob("*/__init__.py")]
    return sorted([ROOT / "cluster", *found], key=lambda path: path.name)


def first_sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring as one line; raise ``ValueError`` where it has none."""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not said:
        raise ValueError(f"{path.relative_to(ROOT)}: expected a docstring that says what the module owns, found none")
    return " ".join(said.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def _modules(package: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(package.rglob("*.py")):
        where = path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        if path != package / "__init__.py":
            yield where.removesuffix(".__init__"), path
