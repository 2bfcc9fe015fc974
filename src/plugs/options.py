"""The options of something that is plugged in: plain values of a recipe, made into its settings class.

Owns ``read_options``. Invariant: an unknown key or a wrong value is one line that names it, never a default in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

from records.bounds import SettingError

S = TypeVar("S")


@dataclass(frozen=True)
class NoOptions:
    """The settings of what has no options."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


def read_options(settings: type[S], options: object, where: str) -> S:
    """Return ``options`` as ``settings`` (a frozen dataclass that forbids extra keys); ``where`` names them in errors.

    Raises:
        ValueError: one line for each problem: the key, what was expected, what was found.
    """
    if isinstance(options, settings):
        return options
    # Imported here: a rollout worker is sent settings that were read, and is to do without pydantic.
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(settings).validate_python(options)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise ValueError("\n".join(_line(settings, where, problem) for problem in problems)) from error


def _line(settings: type, where: str, problem: ErrorDetails) -> str:
    path = ".".join(map(str, (where, *problem["loc"])))
    kind = problem["type"]
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        near = _near(settings, str(problem["loc"][-1]))
        return f"unknown key {path!r}" + (f"; did you mean {f'{where}.{near}'!r}?" if near else "")
    if kind in {"dataclass_type", "dataclass_exact_type"}:
        return f"{path}: expected a section with keys of its own, found {problem['input']!r:.80}"
    if kind == "value_error":
        error = problem["ctx"]["error"]
        return f"{path}.{error}" if isinstance(error, SettingError) else f"{path}: {error}"
    return f"{path}: {problem['msg']}, found {problem['input']!r:.80}"


def _near(settings: type, leaf: str) -> str | None:
    """Return the key of the settings, or of a section in them, whose last part is most like ``leaf``."""
    keys = {key.rpartition(".")[2]: key for key in reversed(list(_keys(settings(), "")))}
    found = difflib.get_close_matches(leaf, list(keys), n=1)
    return keys[found[0]] if found else None


def _keys(section: Any, prefix: str) -> Iterator[str]:
    """Yield the dotted names of all settings, those of a list's items with ``[]``."""
    for field in fields(section):
        value = getattr(section, field.name)
        yield f"{prefix}{field.name}"
        if is_dataclass(value):
            yield from _keys(value, f"{prefix}{field.name}.")
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            yield from _keys(value[0], f"{prefix}{field.name}[].")
