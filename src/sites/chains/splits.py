"""Which chains belong to which split.

Owns the splits: each holds out one thing, and whatever else a chain has is as in training. Invariants: a chain belongs
to one split at most, which depends on its parameters and on the lengths that are trained alone; no evaluated chain has
the data of a seed of training.
"""

from __future__ import annotations

import hashlib
import json

from sites.chains.atom import TRAINED_WORDINGS
from sites.chains.atoms import HELD_OUT
from sites.chains.chain import TRAINED_JOININGS, Chain
from sites.chains.settings import ChainSettings

SPLITS = ("train", "validation", "test", "test_wordings", "test_long", "test_atoms")
"""``validation`` and ``test`` hold combinations of atoms that training does not have (of single atoms, parameters),
``test_wordings`` wordings, ``test_long`` lengths, and ``test_atoms`` atoms, at least one in each chain."""
EVALUATED_SEEDS = 1_000_000
"""The first seed of the data of evaluated chains; those of training are smaller."""
COMBINATIONS = {"train": "train", "validation": "validation", "test": "test", "test_wordings": "train"}
"""Which of the three shares of combinations a split takes; those that are not named take any."""
_SHARES = (("train", 70), ("validation", 85), ("test", 100))


def split_of(chain: Chain, settings: ChainSettings) -> str | None:
    """Return the split that a chain belongs to, None where it would hold out several things, or one in part."""
    evaluated = chain.data_seed >= EVALUATED_SEEDS
    rare = [link.wording >= TRAINED_WORDINGS for link in chain.links]
    if len(rare) > 1:
        rare.append(chain.joining >= TRAINED_JOININGS)
    held_out = {
        "test_atoms": any(atom.name in HELD_OUT for atom in chain.atoms),
        "test_long": len(chain.links) > settings.longest,
        "test_wordings": any(rare),
    }
    names = [name for name, held in held_out.items() if held]
    if len(names) > 1 or any(rare) != all(rare):
        return None
    bucket = _bucket(chain)
    split = names[0] if names else bucket
    fits = evaluated == (split != "train") and COMBINATIONS.get(split, bucket) == bucket
    return split if fits else None


def bucket_of(*facts: str) -> str:
    """Return which of ``train``, ``validation`` and ``test`` has these facts, in any order."""
    number = int(hashlib.sha256(" ".join(sorted(facts)).encode()).hexdigest()[:8], 16) % 100
    return next(name for name, bound in _SHARES if number < bound)


def _bucket(chain: Chain) -> str:
    """Return the share of its combination of atoms, or of a single atom with its parameters."""
    single = [json.dumps(chain.atoms[0].parameters, sort_keys=True)] if len(chain.links) == 1 else []
    return bucket_of(*(atom.name for atom in chain.atoms), *single)
