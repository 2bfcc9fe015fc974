"""All atoms, by the site on which they are done; the first of a group are drawn as often as the last."""

from __future__ import annotations

from types import ModuleType

from sites.chains.atom import WORDINGS, Atom
from sites.chains.atoms import admin, code, forum, map, shop, wiki


def _atoms_of(*modules: ModuleType) -> dict[str, type[Atom]]:
    return {
        found.name: found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Atom) and found.__module__ == module.__name__ and found.name
    }


ATOMS = _atoms_of(shop, forum, map, wiki, code, admin)
"""Every kind of atom by its name, ``SITE.WHAT``."""
HELD_OUT = frozenset(
    {"shop.add_sized", "forum.downvote", "forum.pin", "map.rename_list", "code.set_company", "admin.invoice"}
)
"""Atoms that training never sees: some that resemble others, some that do not."""

if wrong := [name for name, kind in ATOMS.items() if len(set(kind.wordings)) != WORDINGS]:
    raise TypeError(f"expected {WORDINGS} different wordings of every atom, found another number of {wrong}")
