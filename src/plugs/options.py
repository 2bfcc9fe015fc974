"""The options of something that is plugged in: plain values of a recipe, made into its settings class.

Owns ``read_options``. Invariant: an unknown key or a wrong value is one line that names it, never a default in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from records.bounds import SettingError

S = TypeVar("S")


def read_options(settings: type[S], options: Mapping[str, object] | S, where: str) -> S:
    """Return ``options`` as ``settings`` (a frozen dataclass that forbids extra keys); ``where`` names them in errors.

    Raises:
        ValueError: one line for each problem: the key, what was expected, what was found.
    """
    if isinstance(options, settings):
        return options
    try:
        return TypeAdapter(settings).validate_python(options)
    except ValidationError as error:
        raise ValueError("\n".join(_line(where, problem) for problem in error.errors(include_url=False))) from error


def _line(where: str, problem: ErrorDetails) -> str:
    path = ".".join(map(str, (where, *problem["loc"])))
    if problem["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"unknown key {path!r}"
    if problem["type"] == "value_error":
        error = problem["ctx"]["error"]
        return f"{path}.{error}" if isinstance(error, SettingError) else f"{path}: {error}"
    return f"{path}: {problem['msg']}, found {problem['input']!r:.80}"
