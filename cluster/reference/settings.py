"""The generated reference of every setting: ``docs/reference/config.md``.

Owns reading attribute docstrings from the settings' source. Invariant: the page says only what the
code says, so a setting without a docstring is an error here, not a gap there.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import yaml

from cluster.monitors.monitor import MONITORS
from cluster.recipe.plugged import PLUGGED
from cluster.recipe.recipe import Recipe
from policy.backend import BACKENDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"

_INTRO = """\
# Every setting of a recipe

Generated from the code by `make docs`; do not edit.

A recipe is a YAML file with the sections below. What it does not say has the default given here. An
unknown key is an error that names the nearest one. On the command line, `--set section.key=value`
overrides one setting, its value read as YAML: `--set run.phases=2 --set run.evaluation.splits=[test]`.
`waymark check RECIPE` prints the result.

A section whose path has `NAME` in it says what stands under a name of your own; one with `[]`, what an item of a list
holds.

Settings marked with ◦ are *operational*: counts of processes, cores and memory, limits and addresses. A run goes on
with other ones; of the rest it refuses every change.
"""


_PLUGGED = {
    "environments": "The options of each environment, by its name or `module:name`; one of your own has the keys of "
    "its settings class. `browserless` has those of `embedded`.",
    "judges": "The options of each judge, by its name or `module:name`; one of your own has the keys of its settings "
    "class.",
    "monitors": "What is told the run's numbers as they happen, each by its name or `module:name` with its options. A "
    "recipe that has this section names all of them. Without `metrics_log` a run that was killed does not tell the "
    "numbers of the stage that it had just completed.",
}
_PLACES: dict[Any, str] = {Mapping: ".NAME", tuple: "[]"}
"""How the place of what a mapping or a list holds is written."""
_HEADINGS = ("| key | type | default | meaning |", "|---|---|---|---|")


def reference_page() -> str:
    """Return the page as Markdown; raise ``ValueError`` naming a setting that has no docstring."""
    parts = [_INTRO]
    for name, field in Recipe.model_fields.items():
        settings = field.get_default(call_default_factory=True)
        if name in PLUGGED:
            parts += [f"## {name}", "", _PLUGGED[name], ""]
            for key, own in settings.items():
                parts.extend(_section(f"{name}.{key}", own, 3, name in Recipe.operational))
        else:
            parts.extend(_section(name, settings, 2))
        if name == "policy":
            others = [backend for backend in BACKENDS.own if backend != settings.backend]
            for backend in others:
                parts.extend(_section(f"policy.options of {backend}", BACKENDS.find(backend).settings(), 3))
        if name == "monitors":
            for other in (monitor for monitor in MONITORS.own if monitor not in settings):
                parts.extend(_section(f"{name}.{other}, where it is named", MONITORS.find(other).settings(), 3, True))
    return "\n".join(parts)


def attribute_docs(settings: type) -> dict[str, tuple[str, str]]:
    """Return ``{field: (annotation as written, docstring)}`` of a dataclass, in order of definition."""
    body = class_body(settings)
    documented: dict[str, tuple[str, str]] = {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            documented[node.target.id] = (ast.unparse(node.annotation), docstring_of(following))
    missing = [field.name for field in fields(settings) if not documented.get(field.name, ("", ""))[1]]
    if missing:
        raise ValueError(f"{settings.__module__}.{settings.__name__}: no docstring under {', '.join(missing)}")
    return {field.name: documented[field.name] for field in fields(settings)}


def class_body(kind: type) -> list[ast.stmt]:
    """Return what stands in a class, as its source has it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef)).body


def _section(path: str, settings: Any, level: int, operational: bool = False) -> list[str]:
    """Return the Markdown of one section and of the sections in it; ``operational`` where all of it is.

    ``settings`` are an object with the defaults, or a class: then a default is the class's own, and may be required.
    """
    kind = settings if isinstance(settings, type) else type(settings)
    docs = attribute_docs(kind)
    marked = tuple(docs) if operational else getattr(kind, "operational", ())
    summary = inspect.cleandoc(kind.__doc__ or "")
    lines = [f"{'#' * level} {path}", "", as_markdown(summary), ""]
    inner: list[str] = []
    rows: list[str] = []
    for name, (annotation, doc) in docs.items():
        value = _default_of(kind, name) if isinstance(settings, type) else getattr(settings, name)
        if is_dataclass(value) and not isinstance(value, type):
            inner.extend(_section(f"{path}.{name}", value, level + 1, name in marked))
        else:
            meaning = f"{'◦ ' if name in marked else ''}{as_markdown(doc)}"
            default = "required" if value is MISSING else _default(value)
            rows.append(f"| `{name}` | {as_cell(f'`{annotation}`')} | {as_cell(default)} | {as_cell(meaning)} |")
            for held, of_each in _held(kind, name):
                inner.extend(_section(f"{path}.{name}{held}", of_each, level + 1, name in marked))
    if rows:
        lines += [*_HEADINGS, *rows, ""]
    return lines + inner


def _default_of(kind: type, name: str) -> Any:
    """Return a field's default, or ``MISSING`` where it has none."""
    field = next(field for field in fields(kind) if field.name == name)
    return field.default if field.default_factory is MISSING else field.default_factory()


def _held(kind: type, name: str) -> list[tuple[str, type]]:
    """Return the settings classes that a mapping or a list holds, each with how its place is written."""
    hint = get_type_hints(kind)[name]
    place = _PLACES.get(get_origin(hint))
    return [(place, part) for part in get_args(hint) if place and isinstance(part, type) and is_dataclass(part)]


def docstring_of(node: ast.stmt | None) -> str:
    """Return what an attribute's docstring says, empty where ``node`` is none."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return ""


def _default(value: Any) -> str:
    """Return a default as it would be written in a recipe."""
    plain = _plain(value)
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return f"`{text.removesuffix('...' + chr(10)).strip()}`"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(child) for child in value]
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


def as_markdown(text: str) -> str:
    """Turn reStructuredText's double backticks into Markdown's single ones."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def as_cell(text: str) -> str:
    """Return a text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
