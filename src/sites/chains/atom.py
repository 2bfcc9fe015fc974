"""An atom: one small thing to do on a site, in several wordings, with all that tells whether it was done.

Owns ``Atom``. Invariants: an atom begins on any page of its site and ends on the page that shows its trace; its
milestone holds there and nowhere before; it changes nothing that an atom with other ``touches`` changes; what it asks
for is not so before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from sites.checks import Check, Target
from sites.experts import Actions
from sites.task_template import Blanks

WORDINGS, TRAINED_WORDINGS = 6, 4
"""How many wordings an atom has, and how many of them, the first ones, training sees."""


class Atom(Blanks):
    """One kind of thing to do; an instance is one with its parameters.

    Its ``name`` begins with the ``site`` on which it is done, whose data are ``data``. ``wordings`` are format strings
    over the parameters, without a full stop. ``length`` is the number of actions that it takes at least, from the home
    page where it is ``from_home`` (see ``steps``).
    """

    site: ClassVar[str]
    length: ClassVar[int]
    wordings: ClassVar[tuple[str, ...]]
    from_home: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "", length: int = 0) -> None:
        """Make the class a frozen dataclass of its parameters, by name."""
        super().__init_subclass__(name=name)
        cls.length, cls.site = length, name.partition(".")[0]

    def worded(self, wording: int) -> str:
        """Return the instruction in one of its wordings."""
        return self.wordings[wording].format(**self.parameters)

    @abstractmethod
    def expert(self) -> Actions:
        """Do it, from any page of its site (the home page where it is ``from_home``)."""

    @abstractmethod
    def path(self, data: Any) -> str:
        """Return the path that its last form is sent to."""

    @abstractmethod
    def done(self, data: Any) -> Check:
        """Return the check of its trace on the page on which it ends."""

    @abstractmethod
    def wanted(self, data: Any) -> tuple[Target, ...]:
        """Return what pages must hold in the end."""

    def steps(self, data: Any) -> int:
        """Return the number of actions with these parameters, where they may ask for more than ``length``."""
        return self.length

    def things(self, data: Any) -> Iterator[str]:
        """Yield names for what it depends on or changes, besides its form."""
        yield from ()

    def touches(self, data: Any) -> frozenset[str]:
        """Return all that it depends on or changes: two atoms of one chain have nothing in common."""
        return frozenset(f"{self.site} {thing}" for thing in (self.path(data), *self.things(data)))
