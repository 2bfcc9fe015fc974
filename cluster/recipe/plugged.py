"""The sections of a recipe whose keys are plug points' names: ``environments``, ``judges`` and ``monitors``.

Owns reading them. Invariants: every environment and judge of Waymark's own has a section with all of its defaults, so
that a resolved recipe says everything; one of somebody else's has one where the recipe names it; of monitors the recipe
names all or none; nobody reads another's options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from cluster.monitors.monitor import DEFAULT as MONITORED
from cluster.monitors.monitor import MONITORS
from environments.kinds import KINDS
from judges.kinds import JUDGES
from plugs.options import read_each
from plugs.registry import Registry


def environment_section(name: str) -> str:
    """Return under which name of ``environments`` the options of the environment ``name`` stand."""
    return KINDS.find(name).section or name


def own_sections(section: str) -> dict[str, object]:
    """Return the default settings of Waymark's own by name in ``section``; of monitors, those that run unasked."""
    if section == "monitors":
        return {name: _settings(section, name)() for name in MONITORED}
    names = JUDGES.own if section == "judges" else [name for name in KINDS.own if environment_section(name) == name]
    made = ((name, _settings(section, name)()) for name in names)
    return {name: settings for name, settings in made if is_dataclass(settings) and fields(settings)}


def read_section(section: str, given: object) -> tuple[dict[str, object], list[str]]:
    """Return the settings in ``section`` by name, Waymark's own filled up, and what is wrong with ``given``."""
    if given is None:
        return own_sections(section), []
    if not isinstance(given, Mapping):
        return {}, [f"{section}: expected a section for each name, found {given!r:.80}"]
    read, problems = read_each(section, given, partial(_settings, section))
    return (read if section == "monitors" else own_sections(section) | read), problems


_REGISTRIES: dict[str, Registry[Any]] = {"environments": KINDS, "judges": JUDGES, "monitors": MONITORS}
PLUGGED = tuple(_REGISTRIES)
"""Sections of this kind."""


def section_path(path: str) -> list[str]:
    """Return the keys of a dotted path; a reference such as ``examples.guestbook:GUESTBOOK`` is one of them."""
    first, _, rest = path.partition(".")
    before, colon, after = rest.partition(":")
    if first not in PLUGGED or not colon:
        return path.split(".")
    name, *inner = after.split(".")
    return [first, f"{before}:{name}", *inner]


def _settings(section: str, name: str) -> type[object]:
    """Return the settings class of ``name``; raise ``ValueError`` where there is none of its own."""
    if section == "environments" and environment_section(name) != name:
        raise ValueError(f"its settings stand in environments.{environment_section(name)}")
    found: type[object] = _REGISTRIES[section].find(name).settings
    return found
