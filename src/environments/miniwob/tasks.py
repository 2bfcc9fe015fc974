"""Tasks on MiniWoB++ pages: a page and a seed each, and their splits.

Owns which seeds belong to which split. Invariants: a task's split depends on its page and on a hash of its
page and seed only, so sets drawn with different seeds never leak into each other; the same arguments give
the same tasks. What a task asks for is known to its page only, which says it at the start of an episode.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Any

from environments.miniwob.pages import PAGES, Page
from records.episodes import Task

SITE = "miniwob"
SPLITS = ("train", "validation", "test", "validation_templates", "test_templates")
"""``validation`` and ``test`` hold unseen seeds of train pages; ``*_templates`` hold unseen pages."""

_SHARES = (("train", 70), ("validation", 85), ("test", 100))
_SEEDS = 2**31


class MiniwobTasks:
    """Draws tasks; a template is a page, its parameters are the page's name and a seed."""

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` different tasks of ``split``, taking the split's pages in turn; there are always enough.

        Raises ``ValueError`` when the split is unknown.
        """
        if split not in SPLITS:
            raise ValueError(f"unknown split {split!r}: expected one of {', '.join(SPLITS)}")
        wanted = split.removesuffix("_templates") if split.endswith("_templates") else "train"
        streams = [_tasks(page, seed, split) for page in PAGES.values() if page.split == wanted]
        return [next(streams[i % len(streams)]) for i in range(count)]

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the task of a page; raise ``KeyError`` for one that is not played."""
        return make_task(template.removeprefix(f"{SITE}."), parameters["seed"])

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return a training task of the same page with another seed; None for a page that is held out."""
        page = PAGES[task.parameters["page"]]
        if page.split != "train":
            return None
        return next(found for found in _tasks(page, rng.randrange(_SEEDS), "train") if found != task)


def make_task(page: str, seed: int) -> Task:
    """Return the task of one page and seed; raise ``KeyError`` for a page that is not played."""
    if page not in PAGES:
        raise KeyError(f"no page {page!r} is played; there are: {', '.join(PAGES)}")
    return Task(
        task_id=f"{SITE}.{page}.{seed}",
        sites=(SITE,),
        intent=f"Do what the page says ({page.replace('-', ' ')}, seed {seed}).",
        start_url=f"__MINIWOB__/miniwob/{page}.html",
        evaluation={"eval_types": ["page_reward"]},
        template=f"{SITE}.{page}",
        parameters={"page": page, "seed": seed},
        split=split_of(PAGES[page], seed),
    )


def split_of(page: Page, seed: int) -> str:
    """Return the split that a page and seed belong to (one of ``SPLITS``)."""
    if page.split != "train":
        return f"{page.split}_templates"
    bucket = int(hashlib.sha256(f"{page.name}/{seed}".encode()).hexdigest()[:8], 16) % 100
    return next(name for name, bound in _SHARES if bucket < bound)


def _tasks(page: Page, seed: int, split: str) -> Iterator[Task]:
    """Yield different tasks of ``page`` in ``split``, without end."""
    rng = random.Random(f"{seed}/{page.name}/{split}")
    seen: set[int] = set()
    while True:
        drawn = rng.randrange(_SEEDS)
        if drawn not in seen and split_of(page, drawn) == split:
            seen.add(drawn)
            yield make_task(page.name, drawn)
