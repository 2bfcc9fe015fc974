"""Milestones for the tasks that bring none: open each task's first page, and let a language model write them.

Owns which tasks need some and the way to them. Invariants: a task is asked about once a run, and what was written is in
the run's record before an episode of it is played; a task without any is counted with its reason, never silently
played as if it had none to reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.errors import RunStopped
from cluster.first_pages import open_first_page
from cluster.recipe.recipe import Recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import MilestonesWritten, TaskMilestones
from environments.hosted import Hosted, hosted_on
from environments.kinds import KINDS
from judges.answers import with_answer
from judges.llm.asking import Read
from judges.llm.interface import LanguageModel
from judges.of_milestones.writer import PROMPT, write_milestones
from judges.settings import MilestoneSettings
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Milestone, Task
from records.failures import EpisodeFailed
from records.supervision import some_at_once
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec

_WRITING_S = 180.0
"""Fixed: for one task with all attempts; a model that takes longer would hold up a phase of tasks for hours."""
NOT_ASKED = "milestones.model is empty"


@dataclass(frozen=True, slots=True)
class WritingLimits:
    """How long a first page and its milestones may take, and how many are under way at once."""

    milestones: MilestoneSettings
    rollout: RolloutSettings


def evaluates_with_milestones(recipe: Recipe) -> bool:
    """Whether evaluated tasks need milestones too: a policy is told of them, or its planning goes by them."""
    told = recipe.policy.shows_milestones or recipe.rollout.planning.mode != "none"
    return told and writes_milestones(recipe)


def writes_milestones(recipe: Recipe) -> bool:
    """Whether a model writes milestones from the first pages of tasks that bring none."""
    return bool(recipe.milestones.model) and recipe.milestones.source == "first_page"


def absent_line(written: MilestonesWritten, asked: int, settings: MilestoneSettings, where: str) -> str:
    """Return a sentence about the tasks that have no milestones now, with the first reason; empty where all have some.

    Raises:
        RunStopped: ``milestones.absent`` refuses such tasks.
    """
    if not written.absent:
        return ""
    first = next(iter(written.absent.values()))
    line = f"{len(written.absent)} of {asked} tasks have no milestones, and are played as if there were none ({first})"
    if settings.absent == "refuse":
        raise RunStopped(f"{where}: {line}; see milestones.absent")
    return line


def written_before(manifest: RunManifest, phase: int) -> dict[str, TaskMilestones]:
    """Return the milestones by task id that the run wrote up to ``phase``."""
    return {name: one for result in manifest.results(MilestonesWritten, phase) for name, one in result.written.items()}


def with_milestones(specs: Iterable[EpisodeSpec], written: Mapping[str, TaskMilestones]) -> list[EpisodeSpec]:
    """Return the episodes, those of tasks that bring no milestones with the ones that were written for them."""
    return [
        replace(spec, task=replace(spec.task, milestones=written[spec.task.task_id].milestones))
        if not spec.task.milestones and spec.task.task_id in written
        else spec
        for spec in specs
    ]


def tasks_without(specs: Iterable[EpisodeSpec]) -> list[Task]:
    """Return the tasks among the episodes that have no milestones, each once."""
    return list({spec.task.task_id: spec.task for spec in specs if not spec.task.milestones}.values())


def nothing_written(tasks: Sequence[Task]) -> MilestonesWritten:
    """Return the record of tasks that nobody was asked about."""
    return MilestonesWritten({}, {task.task_id: NOT_ASKED for task in tasks}, 0.0)


def generate_milestones(recipe: Recipe, split: str, count: int) -> tuple[list[Task], MilestonesWritten]:
    """Return ``count`` tasks of ``split`` and what the recipe's model writes for them, whether they bring some or not.

    Raises:
        ValueError: there is no such environment, model or split, or there are fewer tasks.
        EpisodeFailed: the environment's host does not start.
    """
    name, model = recipe.run.environment, recipe.judges_of_run.language_model(recipe.milestones.model)
    limits = WritingLimits(recipe.milestones, recipe.rollout)
    settings = recipe.environment_settings(name)
    tasks = KINDS.find(name).tasks(settings).task_set(recipe.run.evaluation.seed, split, count)

    async def written() -> MilestonesWritten:
        with KINDS.find(name).service(settings) as service:
            async with hosted_on(name, settings, service, recipe.browser) as running:
                return await write_for(tasks, running, model, limits)

    return tasks, asyncio.run(written())


async def write_for(
    tasks: Sequence[Task], hosted: Hosted, model: LanguageModel, limits: WritingLimits
) -> MilestonesWritten:
    """Return what ``model`` wrote for ``tasks``, ``milestones.at_once`` of them at a time, and who has none and why.

    Raises:
        EpisodeFailed: with a failure that ends the run, such as a spent budget.
    """

    async def of_task(task: Task) -> Read[tuple[Milestone, ...]]:
        page = await open_first_page(task, hosted, limits.rollout, picture=limits.milestones.picture)
        deadline = Deadline(_WRITING_S, codes.JUDGE_DEADLINE, what="the milestones")
        return await deadline.run(write_milestones(model, task, page, limits.milestones, deadline))

    answers = await some_at_once(tasks, of_task, limits.milestones.at_once)
    found = list(zip(tasks, answers, strict=True))
    written = [(task, one) for task, one in found if isinstance(one, Read)]
    return MilestonesWritten(
        {task.task_id: _of_task(task, one, limits.milestones) for task, one in written},
        {task.task_id: str(one) for task, one in found if isinstance(one, EpisodeFailed)},
        sum(one.cost_usd for _, one in written),
    )


def _of_task(task: Task, written: Read[tuple[Milestone, ...]], settings: MilestoneSettings) -> TaskMilestones:
    whole = replace(task, milestones=written.value)
    return TaskMilestones((with_answer(whole) if settings.answer else whole).milestones, written.model, PROMPT)
