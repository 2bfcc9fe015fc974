"""The tasks of a run's episodes, drawn again from what the run folder says.

Owns ``tasks_of_run`` and ``recorded_rollouts``. Invariant: tasks depend on the recipe and the recorded choices alone;
so what is drawn here is what was played; milestones that were written for a task are with it.
"""

from __future__ import annotations

from pathlib import Path

from cluster.milestones.writing import with_milestones, written_before
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import Evaluated, RolloutsPlayed, TasksChosen
from cluster.task_sets import TaskSets
from records.episodes import Task
from rollout_workers.spec import EpisodeSpec


def recorded_rollouts(phase: int, tasks: TaskSets, manifest: RunManifest) -> list[EpisodeSpec]:
    """Return the rollouts of a phase, whose tasks were chosen at the end of the one before; none before the first."""
    if phase < tasks.first_phase:
        return []
    first = phase == tasks.first_phase
    return tasks.rollouts(phase, None if first else manifest.result(phase - 1, TasksChosen).tasks)


def tasks_of_run(out: Path) -> dict[str, Task]:
    """Return the task of every rollout and evaluation that the run folder ``out`` records, by the episode's id.

    Raises:
        RunError: the folder holds no run, or its recipe cannot be read by this version.
    """
    manifest = RunManifest.read(out)
    recipe = build_recipe(manifest.header["config"], origin=f"{out}")
    tasks = TaskSets(recipe)
    specs: list[EpisodeSpec] = []
    for phase, stage in manifest.stages():
        if stage == Evaluated.stage:
            specs += with_milestones(tasks.evaluation(phase), written_before(manifest, phase))
        elif stage == RolloutsPlayed.stage:
            specs += with_milestones(recorded_rollouts(phase, tasks, manifest), written_before(manifest, phase))
    return {spec.episode_id: spec.task for spec in specs}
