"""Chains for tests: of single atoms, and drawn for a split over few seeds of data."""

from __future__ import annotations

import random
from functools import lru_cache

from records.episodes import Task
from sites.chains.atoms import ATOMS
from sites.chains.chain import Chain, Link
from sites.chains.settings import ChainSettings
from sites.chains.source import ChainTasks
from sites.registry import SITES
from sites.tasks import site_data

SETTINGS = ChainSettings(data_seeds=3)
SOURCE = ChainTasks(tuple(SITES), SETTINGS)


def single(name: str, seed: int = 0) -> Task:
    """The chain of one atom, in the wording that the seed means."""
    kind = ATOMS[name]
    atom = kind.sample(site_data(kind.site, 7), random.Random(seed))
    link = Link(atom, seed % len(kind.wordings))
    return SOURCE.task("chains.1", Chain((link,), 0, 7).parameters)


@lru_cache(maxsize=16)
def chains(split: str, count: int) -> tuple[Task, ...]:
    """Chains of a split, of each of its lengths."""
    return tuple(SOURCE.task_set(5, split, count))
