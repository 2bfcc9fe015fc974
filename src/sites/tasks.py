"""Tasks from templates: sampling, splits, and WebArena's JSON.

Owns which parameters belong to which split. Invariants: a task's split depends only on its template
and on a hash of its parameters, so sets drawn with different seeds never leak into each other; the
same arguments give the same tasks; ``data_seed`` must be the seed that the site server was given.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any

from records.episodes import Milestone, Task
from records.placeholders import placeholder
from sites.chains.chain import Chain, is_chain
from sites.collections import COLLECTIONS
from sites.experts import Expert
from sites.kept import SEEDS_KEPT
from sites.registry import SITES
from sites.skills import finish
from sites.task_template import Parameters, TaskTemplate

Template = type[TaskTemplate]

SPLITS = ("train", "validation", "test", "validation_templates", "test_templates")
"""``validation`` and ``test`` hold unseen parameters of train templates; ``*_templates`` hold unseen templates."""
_SHARES = (("train", 70), ("validation", 85), ("test", 100))
_TRIES_PER_TASK = 60
_SPARE_STEPS = 4
_SPARE_SHARE = 5
"""An episode may take a fifth more actions than the expert, and at least ``_SPARE_STEPS`` more."""
LONGEST_HORIZON = 30
"""Actions that an expert may need at most, the exit included."""


@lru_cache(maxsize=SEEDS_KEPT * len(SITES))
def site_data(site: str, data_seed: int) -> Any:
    """Return the base data of ``site``, built once per process and seed."""
    return SITES[site].build(data_seed)


def template_data(template: Template, data_seed: int) -> Any:
    """Return what the template's functions take as ``data``: its site's, or with several sites a mapping by name."""
    if len(template.sites) > 1:
        return {site: site_data(site, data_seed) for site in template.sites}
    return site_data(template.sites[0], data_seed)


def all_templates(names: Sequence[str] = ("shop", "forum")) -> list[Template]:
    """Return the templates of the named sites and collections in a fixed order.

    A collection (``sites.collections``) gives those of its templates whose sites are all named too. Raises
    ``KeyError`` for an unknown name and ``ValueError`` for a collection that has nothing for these sites.
    """
    return [template for name in names for template in _templates(name, names)]


def split_of(template: Template, parameters: Parameters) -> str:
    """Return the split that a task belongs to (one of ``SPLITS``)."""
    if template.split != "train":
        return f"{template.split}_templates"
    bucket = int(_digest(parameters)[:8], 16) % 100
    return next(name for name, bound in _SHARES if bucket < bound)


def generate(
    seed: int, names: Sequence[str] = ("shop", "forum"), per_template: int = 10, *, data_seed: int = 0
) -> list[Task]:
    """Return up to ``per_template`` different tasks of every template, of any split (see ``Task.split``)."""
    tasks: list[Task] = []
    for template in all_templates(names):
        stream = _tasks(template, seed, None, data_seed)
        tasks.extend(task for task, _ in zip(stream, range(per_template), strict=False))
    return tasks


def task_set(
    seed: int,
    names: Sequence[str] = ("shop", "forum"),
    split: str = "train",
    count: int = 100,
    *,
    data_seed: int = 0,
    scripted: bool = True,
    at_least: int | None = None,
) -> list[Task]:
    """Return the first ``count`` of ``drawn_tasks``.

    Raises ``ValueError`` when the split is unknown or all its templates together cannot give ``at_least`` so many
    tasks (None: ``count``).
    """
    tasks = list(islice(drawn_tasks(seed, names, split, data_seed=data_seed, scripted=scripted), count))
    needed = count if at_least is None else at_least
    if len(tasks) < needed:
        raise ValueError(f"split {split!r} of {list(names)} has {len(tasks)} different tasks, {needed} were asked for")
    return tasks


def drawn_tasks(
    seed: int,
    names: Sequence[str] = ("shop", "forum"),
    split: str = "train",
    *,
    data_seed: int = 0,
    scripted: bool = True,
) -> Iterator[Task]:
    """Return different tasks of ``split`` as they are drawn, taking the split's templates in turn, sites mixed.

    A set that is smaller than the number of templates has its share of every site. ``names`` are sites and
    collections (see ``all_templates``). Without ``scripted`` the templates that need a browser are left out. A
    template that has no further parameters gives its turns to the others. Raises ``ValueError`` at once when the split
    is unknown.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: expected one of {', '.join(SPLITS)}")
    wanted = split.removesuffix("_templates") if split.endswith("_templates") else "train"
    templates = _spread([t for t in all_templates(names) if t.split == wanted and (scripted or not t.scripted)])
    return _in_turn([_tasks(template, seed, split, data_seed) for template in templates])


def _in_turn(streams: list[Iterator[Task]]) -> Iterator[Task]:
    """Yield a task of each stream in turn, until all have ended."""
    while streams:
        for stream in tuple(streams):
            task = next(stream, None)
            if task is None:
                streams.remove(stream)
            else:
                yield task


def _spread(templates: Sequence[Template]) -> list[Template]:
    """Return the templates with those of each site or collection at even distances."""
    groups: dict[str, list[Template]] = {}
    for template in templates:
        groups.setdefault(template.name.partition(".")[0], []).append(template)
    placed = [(place / len(group), template) for group in groups.values() for place, template in enumerate(group)]
    return [template for _, template in sorted(placed, key=itemgetter(0))]


def make_task(filled: TaskTemplate, data: Any) -> Task:
    """Return the task of a template that is filled in; ``data`` is its ``template_data``."""
    template, parameters, horizon = type(filled), filled.parameters, filled.steps(data)
    if not 2 <= horizon <= LONGEST_HORIZON:
        raise ValueError(f"{filled.name}: expected a horizon of 2 to {LONGEST_HORIZON} actions, found {horizon}")
    return Task(
        task_id=f"{filled.name}.{_digest(parameters)[:10]}",
        sites=filled.sites,
        intent=filled.intent.format(**parameters),
        start_url=placeholder(filled.sites[0]) + filled.start,
        evaluation=filled.evaluation(data),
        template=filled.name,
        parameters=parameters,
        require_login=filled.require_login,
        split=split_of(template, parameters),
        horizon=horizon,
        max_steps=most_steps(horizon),
        milestones=tuple(Milestone(description, check) for description, check in filled.milestones(data)),
    )


def most_steps(horizon: int) -> int:
    """Return how many actions an episode may take at which the expert takes ``horizon``."""
    return horizon + max(_SPARE_STEPS, horizon // _SPARE_SHARE)


def to_webarena(task: Task) -> dict[str, Any]:
    """Return ``task`` as a JSON object of WebArena's task schema; ids are numbers derived from our names."""
    return {
        "sites": list(task.sites),
        "task_id": _number(task.task_id),
        "require_login": task.require_login,
        "storage_state": None,
        "start_url": task.start_url,
        "geolocation": None,
        "intent_template": template_named(task.template).intent.replace("{", "{{").replace("}", "}}"),
        "instantiation_dict": task.parameters,
        "intent": task.intent,
        "require_reset": task.require_reset,
        "eval": task.evaluation,
        "intent_template_id": _number(task.template),
    }


def template_named(name: str) -> Template:
    """Return the template called ``name``; raise ``KeyError`` saying which exist."""
    found = _by_name()
    if name not in found:
        raise KeyError(f"no task template {name!r}; there are: {', '.join(sorted(found))}")
    return found[name]


def expert_of(task: Task) -> Expert:
    """Return the expert of a chain or of the task's template, who says "done" at the end.

    Raises ``KeyError`` where it has none.
    """
    filled = Chain.filled(task.parameters) if is_chain(task) else template_named(task.template).of(task)

    def expert() -> Expert:
        yield from filled.expert()
        yield from finish()

    return expert()


def needs_browser(task: Task) -> bool:
    """Whether the task's template says that its pages need their scripts; a task of no template here says nothing."""
    template = _by_name().get(task.template)
    return template is not None and template.scripted


def _tasks(template: Template, seed: int, split: str | None, data_seed: int) -> Iterator[Task]:
    """Yield different tasks of ``template`` in ``split`` until sampling finds no new ones."""
    data = template_data(template, data_seed)
    rng = random.Random(f"{seed}/{template.name}/{split}")
    seen: set[str] = set()
    misses = 0
    while misses < _TRIES_PER_TASK:
        filled = template.sample(data, rng)
        key = _digest(filled.parameters)
        if key in seen or split not in (None, split_of(template, filled.parameters)):
            misses += 1
            continue
        misses = 0
        seen.add(key)
        yield make_task(filled, data)


def _templates(name: str, names: Sequence[str]) -> Sequence[Template]:
    if name in SITES:
        return SITES[name].templates
    if name not in COLLECTIONS:
        raise KeyError(f"no site {name!r}; there are: {', '.join(SITES)}, and collections: {', '.join(COLLECTIONS)}")
    found = [template for template in COLLECTIONS[name] if set(template.sites) <= set(names)]
    if not found:
        wanted = sorted({" and ".join(template.sites) for template in COLLECTIONS[name]})
        raise ValueError(f"{name!r} has tasks on {'; '.join(wanted)}: name such sites beside it, found {list(names)}")
    return found


@cache
def _by_name() -> Mapping[str, Template]:
    groups = [*(site.templates for site in SITES.values()), *COLLECTIONS.values()]
    return {template.name: template for group in groups for template in group}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _number(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[:7], 16)
