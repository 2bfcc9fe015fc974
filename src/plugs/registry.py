"""One plug point: what can be plugged in there, found by a registered name or as ``module:name``.

Owns ``Registry``. Invariants: nothing is imported before it is asked for; a name is looked up among Waymark's own, then
among the entry points of installed packages; whatever is found is of the plug point's type; whatever a module raises
when it is imported is said in a sentence.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from records.supervision import attempted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """The plug point called ``what`` (such as ``environment``), which takes objects of ``kind``.

    ``own`` maps Waymark's names to ``module:name``; ``group`` is the entry-point group of installed packages.
    """

    what: str
    kind: type[T]
    group: str
    own: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Return every registered name, sorted."""
        return tuple(sorted({*self.own, *entry_points(group=self.group).names}))

    def find(self, name: str) -> T:
        """Return what is called ``name``; raise ``ValueError`` saying what was expected and what there is."""
        if name in self.own:
            reference = self.own[name]
        elif ":" in name:
            reference = name
        elif name in (offered := entry_points(group=self.group)).names:  # reading them takes milliseconds
            reference = offered[name].value
        else:
            there = ", ".join(self.names())
            near = difflib.get_close_matches(name, self.names(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"expected {self._a} out of {there}, or 'module:name', found {name!r}{hint}")
        found = load(reference)
        if not isinstance(found, self.kind):
            raise ValueError(
                f"{reference!r}: expected {self._a} ({self.kind.__name__}), found a {type(found).__name__}"
            )
        return found

    @property
    def _a(self) -> str:
        return f"an {self.what}" if self.what[0] in "aeiou" else f"a {self.what}"


def load(reference: str) -> object:
    """Return what ``module:name`` names; raise ``ValueError`` saying which part is missing."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ValueError(f"expected 'module:name', found {reference!r}")
    try:
        imported = attempted(lambda: import_module(module))
    except SystemExit as error:
        raise ValueError(f"{reference!r}: {module!r} ends the process when it is imported: {error}") from error
    if isinstance(imported, ModuleNotFoundError):
        raise ValueError(f"{reference!r}: cannot import {imported.name!r}; is it on the Python path?") from imported
    if isinstance(imported, BaseException):
        said = f"{type(imported).__name__}: {imported}"
        raise ValueError(f"{reference!r}: cannot import {module!r}: {said}") from imported
    try:
        found: object = getattr(imported, name)
    except AttributeError as error:
        raise ValueError(f"{reference!r}: module {module!r} has no {name!r}") from error
    return found
