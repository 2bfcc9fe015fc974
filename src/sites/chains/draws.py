"""Chains drawn at random, for one split and of one length.

Owns which atoms come together. Invariants: a chain has different kinds of atoms of one to three sites, the sites one
after the other; its atoms touch nothing in common; its expert needs no more actions than any task may.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sites.chains.atom import TRAINED_WORDINGS, WORDINGS, Atom
from sites.chains.atoms import ATOMS, HELD_OUT
from sites.chains.chain import JOININGS, TRAINED_JOININGS, Chain, Link
from sites.chains.settings import ChainSettings
from sites.chains.splits import COMBINATIONS, EVALUATED_SEEDS, bucket_of, split_of

Kinds = Sequence[type[Atom]]
Data = Mapping[str, Any]
"""Base data by site."""
LONGEST = 30
"""Actions of the longest chain's expert, the exit included."""
MOST_SITES = 3
_TRIES = 60


def draw(
    rng: random.Random,
    sites: Sequence[str],
    split: str,
    length: int,
    settings: ChainSettings,
    data_of: Callable[[Sequence[str], int], Data],
) -> Chain | None:
    """Draw a chain of ``split`` with ``length`` atoms, or None where none is found.

    ``data_of`` returns the data of some sites of a seed.
    """
    for _ in range(_TRIES):
        kinds = _kinds(rng, sites, length, unseen=split == "test_atoms")
        if kinds and (found := draw_of(rng, kinds, split, settings, data_of)):
            return found
    return None


def draw_of(
    rng: random.Random,
    kinds: Kinds,
    split: str,
    settings: ChainSettings,
    data_of: Callable[[Sequence[str], int], Data],
) -> Chain | None:
    """Draw the parameters, wordings and data of a chain of ``split`` of these atoms, or None where none is found."""
    bucket = bucket_of(*(kind.name for kind in kinds))
    if (len(kinds) > 1 and COMBINATIONS.get(split, bucket) != bucket) or _shortest(kinds) > LONGEST:
        return None
    data_seed = rng.randrange(settings.data_seeds) + (0 if split == "train" else EVALUATED_SEEDS)
    data = data_of(list(dict.fromkeys(kind.site for kind in kinds)), data_seed)
    for _ in range(_TRIES):
        atoms = [kind.sample(data[kind.site], rng) for kind in kinds]
        chain = _worded(rng, atoms, data_seed, rare=split == "test_wordings")
        touched = [thing for atom in chain.atoms for thing in atom.touches(data[atom.site])]
        apart = len(touched) == len(set(touched))
        if apart and chain.steps(data) <= LONGEST and split_of(chain, settings) == split:
            return chain
    return None


def _kinds(rng: random.Random, sites: Sequence[str], length: int, *, unseen: bool) -> Kinds:
    """Draw kinds of atoms, with ``unseen`` one that is held out among them; none where the drawn sites have too few."""
    visited = rng.sample(sites, min(len(sites), length, rng.randint(1, MOST_SITES)))
    pool = [kind for kind in ATOMS.values() if kind.site in visited]
    trained = [kind for kind in pool if kind.name not in HELD_OUT]
    held_out = [kind for kind in pool if kind.name in HELD_OUT]
    first = [rng.choice(held_out)] if unseen and held_out else []
    if len(first) < unseen or len(trained) < length - len(first):
        return ()
    chosen = first + rng.sample(trained, length - len(first))
    rng.shuffle(chosen)
    return sorted(chosen, key=lambda kind: visited.index(kind.site))


def _shortest(kinds: Kinds) -> int:
    """Return how many actions at least a chain of these atoms takes, in this order."""
    return sum(kind.length for kind in kinds) + sum(a.site != b.site for a, b in pairwise(kinds)) + 1


def _worded(rng: random.Random, atoms: Sequence[Atom], data_seed: int, *, rare: bool) -> Chain:
    """Put the atoms into words, ``rare`` ones or those of training; a single one is just said."""
    wordings = range(TRAINED_WORDINGS, WORDINGS) if rare else range(TRAINED_WORDINGS)
    joinings = range(TRAINED_JOININGS, len(JOININGS)) if rare else range(TRAINED_JOININGS)
    links = tuple(Link(atom, rng.choice(wordings)) for atom in atoms)
    return Chain(links, rng.choice(joinings) if len(links) > 1 else 0, data_seed)
