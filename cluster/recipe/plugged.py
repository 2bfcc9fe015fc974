"""The sections of a recipe whose keys are plug points' names: ``environments`` and ``judges``.

Owns reading them. Invariants: every kind of Waymark's own has a section with all of its defaults, so that a resolved
recipe says everything; a kind of somebody else's has one where the recipe names it; nobody reads another's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from environments.kinds import KINDS
from judges.kinds import JUDGES
from plugs.options import read_options


def environment_section(name: str) -> str:
    """Return under which name of ``environments`` the options of the environment ``name`` stand."""
    return KINDS.find(name).section or name


def own_sections(section: str) -> dict[str, object]:
    """Return the default settings of everything of Waymark's own that has any, by its name in ``section``."""
    names = JUDGES.own if section == "judges" else [name for name in KINDS.own if environment_section(name) == name]
    return {name: made for name in names if fields(made := _settings(section, name)())}  # type: ignore[arg-type]


def read_section(section: str, given: object) -> tuple[dict[str, object], list[str]]:
    """Return the settings in ``section`` by name, Waymark's own filled up, and what is wrong with ``given``."""
    read, problems = own_sections(section), list[str]()
    if given is None:
        return read, problems
    if not isinstance(given, Mapping):
        return read, [f"{section}: expected a section for each name, found {given!r:.80}"]
    for name, options in given.items():
        where = f"{section}.{name}"
        try:
            settings = _settings(section, name)
        except ValueError as error:
            problems.append(f"{where}: {error}")
            continue
        try:
            read[name] = read_options(settings, over_defaults({name: settings()}, {name: options})[name], where)
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


PLUGGED = ("environments", "judges")
"""Sections of this kind."""


def section_path(path: str) -> list[str]:
    """Return the keys of a dotted path; a reference such as ``examples.guestbook:GUESTBOOK`` is one of them."""
    first, _, rest = path.partition(".")
    before, colon, after = rest.partition(":")
    if first not in (*PLUGGED, "monitors") or not colon:
        return path.split(".")
    name, *inner = after.split(".")
    return [first, f"{before}:{name}", *inner]


def _settings(section: str, name: str) -> type[object]:
    """Return the settings class of ``name``; raise ``ValueError`` where there is none of its own."""
    if section == "judges":
        found: type[object] = JUDGES.find(name).settings
        return found
    if environment_section(name) != name:
        raise ValueError(f"its settings stand in environments.{environment_section(name)}")
    return KINDS.find(name).settings
