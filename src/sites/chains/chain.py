"""A chain: atoms to be done one after the other, as one task.

Owns ``Chain``: its instruction, its expert, what it is judged by, and how it is written into a task's parameters.
Invariants: all of it follows from the parameters and the data of their seed; the atoms of a chain touch nothing in
common, so that none undoes another; the verdict is that every atom's wish is fulfilled and that the forms were sent in
the order in which they are asked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self
from urllib.parse import urlencode

from records.episodes import Milestone, Task
from sites.app import ORDER
from sites.chains.atom import Atom
from sites.chains.atoms import ATOMS
from sites.checks import Evaluation, PagesOf, Target, pages
from sites.experts import Expert, Intent
from sites.task_template import Parameters

FAMILY = "chains"
JOININGS = (
    ("{0}.", " Then {1}."),
    ("First {1}.", " Next {1}."),
    ("1. {0}.", " {n}. {0}."),
    ("Do this in order. {0}.", " {0}."),
    ("{0}.", " After that {1}."),
    ("Begin with this: {1}.", " Go on with this: {1}."),
)
"""How a first and a further instruction are written: 0 begins with a capital letter, 1 with a small one."""
TRAINED_JOININGS = 4
"""How many of them, the first ones, training sees."""


@dataclass(frozen=True)
class Link:
    """One atom of a chain, in one of its wordings."""

    atom: Atom
    wording: int


@dataclass(frozen=True)
class Chain:
    """Links in their order, how their instructions are joined, and the seed of the sites' data and layout."""

    links: tuple[Link, ...]
    joining: int
    data_seed: int

    @classmethod
    def filled(cls, parameters: Parameters) -> Self:
        """Return the chain of a task's parameters."""
        links = (Link(ATOMS[name].filled(own), wording) for name, wording, own in parameters["atoms"])
        return cls(tuple(links), parameters["joining"], parameters["data_seed"])

    @property
    def parameters(self) -> Parameters:
        """The chain as a task's parameters."""
        atoms = [[link.atom.name, link.wording, link.atom.parameters] for link in self.links]
        return {"data_seed": self.data_seed, "joining": self.joining, "atoms": atoms}

    @property
    def digest(self) -> str:
        """SHA-256 of the parameters, in hex."""
        return hashlib.sha256(json.dumps(self.parameters, sort_keys=True).encode()).hexdigest()

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms in their order."""
        return tuple(link.atom for link in self.links)

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites in the order in which they are visited first."""
        return tuple(dict.fromkeys(atom.site for atom in self.atoms))

    @property
    def template(self) -> str:
        """The name under which results are grouped: the length."""
        return f"{FAMILY}.{len(self.links)}"

    @property
    def intent(self) -> str:
        """The instruction."""
        first, further = JOININGS[self.joining]
        worded = [link.atom.worded(link.wording) for link in self.links]
        parts = [
            (further if n else first).format(text, text[0].lower() + text[1:], n=n + 1) for n, text in enumerate(worded)
        ]
        return "".join(parts)

    def expert(self) -> Expert:
        """Do all atoms in their order."""
        site, at_home = self.sites[0], True
        for atom in self.atoms:
            yield from approach(atom, site, at_home=at_home)
            yield from atom.expert()
            site, at_home = atom.site, False

    def steps(self, data: Mapping[str, Any]) -> int:
        """Return the expert's number of actions, the exit included."""
        own = sum(atom.steps(data[atom.site]) for atom in self.atoms)
        ways = sum(atom.site != before.site or atom.from_home for before, atom in pairwise(self.atoms))
        return own + ways + 1

    def evaluation(self, data: Mapping[str, Any]) -> Evaluation:
        """Return WebArena's ``eval`` object: what all atoms want, and the order in which they were done."""
        wanted = [target for atom in self.atoms for target in atom.wanted(data[atom.site])]
        return pages(*wanted, *([self._in_order(data)] if len(self.atoms) > 1 else []))

    def milestones(self, data: Mapping[str, Any]) -> tuple[Milestone, ...]:
        """Return one milestone an atom, which its trace reaches."""
        return tuple(
            Milestone(link.atom.worded(link.wording), link.atom.done(data[link.atom.site])) for link in self.links
        )

    def _in_order(self, data: Mapping[str, Any]) -> Target:
        forms = [("form", f"{atom.site}:{atom.path(data[atom.site])}") for atom in self.atoms]
        return PagesOf(self.sites[0]).equals(f"{ORDER}?{urlencode(forms)}", "#order", "in order")


def approach(atom: Atom, site: str, *, at_home: bool) -> Generator[Intent, object, None]:
    """Go where an atom begins, from a page of ``site`` that may be its home page."""
    if atom.site != site:
        yield Intent("click", atom.site, "link")
    elif atom.from_home and not at_home:
        yield Intent("click", "Home", "link")


def is_chain(task: Task) -> bool:
    """Whether a task is a chain."""
    return task.template.startswith(f"{FAMILY}.")
