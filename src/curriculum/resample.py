"""The next phase's tasks, drawn from the training tasks by what failed.

Owns ``next_tasks``. Pure and seeded: the same training tasks, failures and seed give the same tasks, in whatever
order the failures came. Never returns a task or a template of an evaluation set. Source: ALGORITHMS
section 1, curriculum (MiRA, Alg. 2 and A.3; WebRL for the critic's band).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from curriculum.settings import CurriculumSettings
from curriculum.similarity import EmbeddingSimilarity, Similarity, TfidfEncoder
from curriculum.training_tasks import TrainingTasks
from records.episodes import Task

Perturb = Callable[[Task, np.random.Generator], Task | None]
"""Returns a variation of a task with other parameters and an id of its own, or None where there is none."""


class EmptyBandError(ValueError):
    """No training task lies within the value critic's band; the text says between what its answers lie."""


class Origin(StrEnum):
    """Why a task is in a phase."""

    SIMILAR = "similar"
    PERTURBED = "perturbed"
    REPLAYED = "replayed"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class PhaseTasks:
    """The tasks of a phase in playing order, why each is there, and what was turned away.

    ``outside_band`` counts training tasks left out by the value critic, ``rejected`` perturbed tasks that
    were known already or belong to an evaluation set.
    """

    tasks: tuple[Task, ...]
    origins: tuple[Origin, ...]
    outside_band: int = 0
    rejected: int = 0

    def counts(self) -> dict[str, int]:
        """Return the number of tasks of each origin; every origin is named, also with 0."""
        found = Counter(self.origins)
        return {origin.value: found[origin] for origin in Origin}


def next_tasks(
    training: TrainingTasks,
    failures: Sequence[Task],
    settings: CurriculumSettings,
    *,
    seed: int,
    phase: int,
    similarity: Similarity | None = None,
    perturb: Perturb | None = None,
    values: Mapping[str, float] | None = None,
) -> PhaseTasks:
    """Return exactly ``settings.tasks_per_phase`` tasks.

    Replayed failures, perturbed failures of thinly covered sites and the neighbours of failures take
    their shares as far as there are any; the rest, and all of it without failures, is drawn evenly over
    the training tasks' templates.

    Args:
        training: what they are drawn from.
        failures: tasks judged failed; repetitions count once.
        settings: shares and limits.
        seed: the run's seed.
        phase: the phase these tasks are for; a part of the seed.
        similarity: how alike instructions are; by default TF-IDF over them.
        perturb: makes a variation of a failed task; without it none are made.
        values: V(s_0) by task id, for the critic's band; tasks without a value are outside it.

    Raises:
        EvaluationLeakError: where a failure, and so a task to be replayed, belongs to an evaluation set.
        EmptyBandError: where the band leaves no task.
        ValueError: where the band is asked for without values.
    """
    training.held_out.check(failures)
    failed = [task for _, task in sorted({task.task_id: task for task in failures}.items())]
    rng = np.random.default_rng([seed, phase])
    candidates = _in_band(training, settings, values)
    total = settings.tasks_per_phase
    chosen: list[tuple[Task, Origin]] = []

    replayed = _sample(failed, int(total * settings.replayed_share), rng)
    chosen += [(task, Origin.REPLAYED) for task in replayed]

    thin = training.thin_sites(settings.thin_site_tasks, {task.site for task in failed})
    sources = [task for task in failed if task.site in thin] if perturb else []
    quota = int(total * settings.perturbed_share)
    perturbed, rejected = _perturbed(training, sources, quota, settings, perturb, rng)
    chosen += [(task, Origin.PERTURBED) for task in perturbed]

    quota = total - len(chosen) - int(total * settings.coverage_share)
    scorer = similarity or EmbeddingSimilarity(TfidfEncoder([task.intent for task in training]))
    chosen += [(task, Origin.SIMILAR) for task in _similar(candidates, failed, quota, settings, scorer, rng)]

    chosen += [(task, Origin.COVERAGE) for task in _coverage(candidates, total - len(chosen), rng)]
    order = rng.permutation(len(chosen))
    tasks = tuple(chosen[i][0] for i in order)
    training.held_out.check(tasks)
    return PhaseTasks(tasks, tuple(chosen[i][1] for i in order), len(training) - len(candidates), rejected)


def _in_band(training: TrainingTasks, settings: CurriculumSettings, values: Mapping[str, float] | None) -> list[Task]:
    if not settings.value_band:
        return list(training)
    if values is None:
        raise ValueError("curriculum.value_band: expected V(s_0) of the training tasks, found none; pass values")
    low, high = settings.value_low, settings.value_high
    kept = [task for task in training if task.task_id in values and low <= values[task.task_id] <= high]
    if not kept:
        known = [values[task.task_id] for task in training if task.task_id in values]
        spread = f"; of {len(known)} it is known, from {min(known):.3g} to {max(known):.3g}" if known else ""
        raise EmptyBandError(
            f"curriculum: expected tasks with V(s_0) in [{low}, {high}], found none among {len(training)}{spread}; "
            "widen the band"
        )
    return kept


def _similar(
    candidates: Sequence[Task],
    failed: Sequence[Task],
    quota: int,
    settings: CurriculumSettings,
    similarity: Similarity,
    rng: np.random.Generator,
) -> list[Task]:
    """Return up to ``quota`` neighbours: every failure's nearest first, then every failure's second, and so on."""
    if not failed or quota <= 0:
        return []
    scores = similarity.scores([task.intent for task in failed], [task.intent for task in candidates])
    order = rng.permutation(len(failed))
    neighbours = [_nearest(candidates, failed[i], scores[i], settings.neighbours) for i in order]
    ranked = [row[rank] for rank in range(settings.neighbours) for row in neighbours if rank < len(row)]
    if not settings.overlap:
        ranked = list({task.task_id: task for task in ranked}.values())
    return ranked[:quota]


def _nearest(candidates: Sequence[Task], failed: Task, scores: np.ndarray, count: int) -> list[Task]:
    """Return the ``count`` candidates with the highest scores, ties by id, the failed task itself left out."""
    order = np.argsort(-scores, kind="stable")[: count + 1]
    return [candidates[i] for i in order if candidates[i].task_id != failed.task_id][:count]


def _coverage(candidates: Sequence[Task], quota: int, rng: np.random.Generator) -> list[Task]:
    """Return ``quota`` tasks spread evenly over templates; tasks repeat only once a template is used up."""
    by_template: dict[str, list[Task]] = {}
    for task in candidates:
        by_template.setdefault(task.template, []).append(task)
    templates = [by_template[name] for name in sorted(by_template)]
    shuffled = [[tasks[i] for i in rng.permutation(len(tasks))] for tasks in templates]
    order = rng.permutation(len(shuffled))
    drawn = []
    for turn in range(quota):
        tasks = shuffled[order[turn % len(order)]]
        drawn.append(tasks[turn // len(order) % len(tasks)])
    return drawn


def _perturbed(
    training: TrainingTasks,
    sources: Sequence[Task],
    quota: int,
    settings: CurriculumSettings,
    perturb: Perturb | None,
    rng: np.random.Generator,
) -> tuple[list[Task], int]:
    """Return up to ``quota`` new variations of ``sources``, taken in turn, and how many were turned away."""
    if perturb is None or not sources:
        return [], 0
    known = {task.task_id for task in (*training, *sources)}
    made: list[Task] = []
    rejected = 0
    order = rng.permutation(len(sources))
    for turn in range(len(sources) * settings.perturbation_attempts):
        if len(made) >= quota:
            break
        task = perturb(sources[order[turn % len(order)]], rng)
        if task is None:
            continue
        if task.task_id in known or training.held_out.conflict(task):
            rejected += 1
            continue
        known.add(task.task_id)
        made.append(task)
    return made, rejected


def _sample(tasks: Sequence[Task], count: int, rng: np.random.Generator) -> list[Task]:
    """Return up to ``count`` different tasks, drawn evenly."""
    return [tasks[i] for i in rng.permutation(len(tasks))[:count]]
