"""Milestones distilled from successes, and what a judge of milestones is told of a task (ADMIRE, section 3.1).

Owns which success is shown to the language model, and whose milestones it gives. Invariants: the model is asked only
where a success is a first one or shorter than any before; what was distilled is in the run's record before an episode
is labelled by it; a task of which nothing succeeded yet has no milestones, and none of its own in their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.errors import RunStopped
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import MilestonesDistilled
from judges.llm.interface import LanguageModel
from judges.of_milestones.distillation import Distilled, distil
from judges.of_milestones.matching import filled
from judges.settings import MilestoneSettings
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Milestone, Task, Trajectory
from records.failures import EpisodeFailed
from records.supervision import some_at_once

_DISTILLING_S = 180.0
"""Fixed: for one success with all attempts; a model that takes longer would hold up a phase for hours."""


@dataclass(frozen=True, slots=True)
class Example:
    """A success that the model is shown: of which ``task``, whose milestones it gives, and those ``known`` so far."""

    of: str
    task: Task
    success: Trajectory
    known: Distilled | None


def distilled_before(manifest: RunManifest, phase: int) -> dict[str, Distilled]:
    """Return what the run distilled up to ``phase``, the newest by what it is of."""
    return {of: one for result in manifest.results(MilestonesDistilled, phase) for of, one in result.distilled.items()}


def owner(task: Task, settings: MilestoneSettings) -> str:
    """Return what a task shares its milestones with: its template, or itself alone."""
    return task.template if settings.per == "template" else task.task_id


def examples_of(
    episodes: Iterable[Trajectory],
    tasks: Mapping[str, Task],
    known: Mapping[str, Distilled],
    settings: MilestoneSettings,
) -> list[Example]:
    """Return the shortest success of each that has no milestones yet, or whose are of a longer one.

    ``tasks`` are the episodes' by id. Of several of the fewest steps it is the first by id.
    """
    shortest: dict[str, Trajectory] = {}
    for episode in episodes:
        if episode.success:
            of = owner(tasks[episode.episode_id], settings)
            shortest[of] = min(shortest.get(of, episode), episode, key=lambda one: (len(one.steps), one.episode_id))
    found = [Example(of, tasks[one.episode_id], one, known.get(of)) for of, one in sorted(shortest.items())]
    return [
        one for one in found if one.known is None or (settings.refined and len(one.success.steps) < one.known.steps)
    ]


def distil_all(
    examples: Sequence[Example], model: LanguageModel, at_once: int
) -> tuple[dict[str, Distilled], dict[str, str]]:
    """Return what ``model`` makes of the examples, ``at_once`` of them at a time, and who has nothing new and why.

    Raises:
        RunStopped: what language models may cost is spent.
    """

    async def of_one(example: Example) -> Distilled | None:
        deadline = Deadline(_DISTILLING_S, codes.JUDGE_DEADLINE, what="the milestones")
        return await deadline.run(distil(model, example.known, example.task, [example.success], deadline))

    try:
        answers = asyncio.run(some_at_once(examples, of_one, at_once))
    except EpisodeFailed as error:
        raise RunStopped(f"milestones of {len(examples)} examples: {error}") from error
    found = {one.of: answer for one, answer in zip(examples, answers, strict=True)}
    return (
        {of: answer for of, answer in found.items() if isinstance(answer, Distilled)},
        {of: str(answer) for of, answer in found.items() if isinstance(answer, EpisodeFailed)},
    )


def with_distilled(task: Task, distilled: Mapping[str, Distilled]) -> Task:
    """Return the task with its distilled milestones, its own parameters filled in; with none where none were."""
    found = distilled.get(task.task_id) or distilled.get(task.template)
    said = () if found is None else found.milestones
    return replace(task, milestones=tuple(Milestone(filled(one, task.parameters), {}) for one in said))


def distilled_line(result: MilestonesDistilled, settings: MilestoneSettings, phase: int) -> str:
    """Return a sentence about a phase's milestones.

    Raises:
        RunStopped: the model was asked in vain, and ``milestones.absent`` refuses that.
    """
    what = "templates" if settings.per == "template" else "tasks"
    line = f"{result.covered} of {result.met} {what} of phase {phase} have distilled milestones"
    if not result.absent:
        return f"{line}, {len(result.distilled)} of them new or refined"
    first = next(iter(result.absent.values()))
    asked = len(result.distilled) + len(result.absent)
    line += f"; for {len(result.absent)} of {asked} that were asked about there was no usable answer ({first})"
    if settings.absent == "refuse":
        raise RunStopped(f"{line}; see milestones.absent, and start the same command again to ask again")
    return line
