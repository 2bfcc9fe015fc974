"""The options of something that is plugged in: plain values of a recipe, made into its settings class.

Owns ``read_options``, ``read_each`` and ``reader_of``. Invariant: an unknown key or a wrong value is one line that
names it, never a default in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

from records.bounds import SettingError

S = TypeVar("S")


@dataclass(frozen=True)
class NoOptions:
    """The settings of what has no options."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


def reader_of(kind: type[S]) -> TypeAdapter[S]:
    """Return what reads values of a type. Making it takes far longer than reading, so each is made once."""
    made: Any = kind  # mypy holds that a class may not be hashable
    return _reader(made)


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def read_options(settings: type[S], options: object, where: str) -> S:
    """Return ``options`` as ``settings`` (a frozen dataclass that forbids extra keys); ``where`` names them in errors.

    It is empty for options that are named by themselves.

    Raises:
        ValueError: one line for each problem: the key, what was expected, what was found.
    """
    if isinstance(options, settings):
        return options
    # Imported here: a rollout worker is sent settings that were read, and is to do without pydantic.
    from pydantic import ValidationError

    try:
        return reader_of(settings).validate_python(options)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise ValueError("\n".join(_line(settings, where, problem) for problem in problems)) from error


def read_each(
    section: str, given: Mapping[str, object], settings_of: Callable[[str], type[object]]
) -> tuple[dict[str, object], list[str]]:
    """Return the options in ``section`` by name, each as its settings, and what is wrong with them, a line for each.

    ``settings_of`` returns a name's settings class; it raises ``ValueError`` saying why there is none.
    """
    read: dict[str, object] = {}
    problems: list[str] = []
    for name, options in given.items():
        where = f"{section}.{name}"
        try:
            settings = settings_of(name)
        except ValueError as error:
            problems.append(f"{where}: {error}")
            continue
        try:
            read[name] = read_options(settings, _filled(settings, options), where)
        except ValueError as error:
            problems += str(error).splitlines()
    return read, problems


def over_defaults(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``given`` with what it leaves out taken from the defaults, section by section.

    A section may have defaults of its own that differ from its class's (the potential critic's rates
    do); setting one of its keys must not reset the others.
    """
    merged = dict(given)
    for name, default in defaults.items():
        value = given.get(name)
        if not is_dataclass(default):
            if name not in given:
                merged[name] = default
        elif value is None or isinstance(value, dict):
            inner = {field.name: getattr(default, field.name) for field in fields(default)}
            merged[name] = over_defaults(inner, value or {})
    return merged


def _filled(settings: type[object], options: object) -> object:
    """Return options with what they leave out taken from the settings' defaults, where all of them have one."""
    if not _has_defaults(settings):
        return {} if options is None else options
    return over_defaults({"": settings()}, {"": options})[""]


def _has_defaults(settings: type[object]) -> bool:
    """Whether settings can be made of nothing."""
    return is_dataclass(settings) and not any(
        field.init and field.default is MISSING and field.default_factory is MISSING for field in fields(settings)
    )


def _line(settings: type, where: str, problem: ErrorDetails) -> str:
    path = _under(where, *problem["loc"])
    kind = problem["type"]
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        near = _near(settings, str(problem["loc"][-1]))
        return f"unknown key {path!r}" + (f"; did you mean {_under(where, near)!r}?" if near else "")
    if kind in {"dataclass_type", "dataclass_exact_type"}:
        return f"{path}: expected a section with keys of its own, found {problem['input']!r:.80}"
    if kind == "value_error":
        error = problem["ctx"]["error"]
        return f"{path}.{error}" if isinstance(error, SettingError) else f"{path}: {error}"
    return f"{path}: {problem['msg']}, found {problem['input']!r:.80}"


def _under(where: str, *keys: int | str) -> str:
    """Return the dotted name of what lies in ``where``, which may have no name."""
    return ".".join(map(str, (where, *keys) if where else keys))


def _near(settings: type, leaf: str) -> str | None:
    """Return the key of the settings, or of a section in them, whose last part is most like ``leaf``."""
    names = list(_keys(settings(), "")) if _has_defaults(settings) else [field.name for field in fields(settings)]
    keys = {key.rpartition(".")[2]: key for key in reversed(names)}
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
