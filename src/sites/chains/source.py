"""Chains as a ``TaskSource`` of environments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

from records.episodes import Task
from records.placeholders import placeholder
from sites.chains.atom import Atom
from sites.chains.atoms import ATOMS
from sites.chains.chain import Chain
from sites.chains.draws import Data, draw, draw_of
from sites.chains.settings import ChainSettings
from sites.chains.splits import SPLITS, split_of
from sites.tasks import most_steps, site_data

_MISSES = 40
"""Draws without a new chain after which there are no more."""


class ChainTasks:
    """Chains of atoms on the named sites."""

    def __init__(self, sites: Sequence[str], settings: ChainSettings | None = None) -> None:
        """Raise ``ValueError`` where a name is that of no site with atoms."""
        atoms_of(sites)
        self._sites, self._settings = sorted(sites), settings or ChainSettings()

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` different chains of ``split``, of each of its lengths in turn.

        Raises ``ValueError`` when the split is unknown or has fewer than ``at_least`` (None: ``count``).
        """
        tasks = list(islice(self.drawn(seed, split), count))
        needed = count if at_least is None else at_least
        if len(tasks) < needed:
            raise ValueError(f"split {split!r} of chains has {len(tasks)} different tasks, {needed} were asked for")
        return tasks

    def drawn(self, seed: int, split: str) -> Iterator[Task]:
        """Return different chains of ``split`` as they are drawn, of each of its lengths in turn.

        Raises ``ValueError`` at once when the split is unknown.
        """
        if split not in SPLITS:
            raise ValueError(f"chains have no split {split!r}: expected one of {', '.join(SPLITS)}")
        return self._drawn(seed, split)

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the chain with these parameters."""
        return self._made(Chain.filled(parameters))

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return a training chain of the same atoms with other parameters, wordings and data, or None."""
        kinds = [type(atom) for atom in Chain.filled(task.parameters).atoms]
        chain = draw_of(rng, kinds, "train", self._settings, _data_of)
        return None if chain is None else self._made(chain)

    def _drawn(self, seed: int, split: str) -> Iterator[Task]:
        rng, seen, misses = random.Random(f"{seed}/chains/{split}"), set[str](), 0
        for length in cycle(self._settings.lengths_of(split)):
            chain = draw(rng, self._sites, split, length, self._settings, _data_of)
            if chain is None or chain.digest in seen:
                misses += 1
                if misses == _MISSES:
                    return
                continue
            seen.add(chain.digest)
            misses = 0
            yield self._made(chain)

    def _made(self, chain: Chain) -> Task:
        data, template = _data_of(chain.sites, chain.data_seed), chain.template
        horizon = chain.steps(data)
        return Task(
            task_id=f"{template}.{chain.digest[:10]}",
            sites=chain.sites,
            intent=chain.intent,
            start_url=f"{placeholder(chain.sites[0])}/",
            evaluation=chain.evaluation(data),
            template=template,
            parameters=chain.parameters,
            require_login=True,
            split=split_of(chain, self._settings) or "",
            horizon=horizon,
            max_steps=most_steps(horizon),
            milestones=chain.milestones(data),
            data_seed=chain.data_seed,
        )


def atoms_of(sites: Sequence[str]) -> list[type[Atom]]:
    """Return the atoms of these sites; raise ``ValueError`` where a name is that of no site with atoms."""
    have = sorted({kind.site for kind in ATOMS.values()})
    if unknown := [name for name in sites if name not in have]:
        raise ValueError(f"chains have atoms on {', '.join(have)}, found {', '.join(unknown)}; name sites only")
    return [kind for kind in ATOMS.values() if kind.site in sites]


def _data_of(sites: Sequence[str], data_seed: int) -> Data:
    return {site: site_data(site, data_seed) for site in sites}
