"""The episodes that a run plays, drawn from its recipe and from what its folder records.

Owns ``RunTasks``. Invariant: tasks depend on the recipe and the recorded choices alone, so that what is drawn again is
what was played; milestones that were written for a task are with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cluster.milestones.distilling import distilled_before, with_distilled
from cluster.milestones.writing import with_milestones, written_before
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import TasksChosen
from cluster.task_sets import TaskSets
from records.episodes import Task
from rollout_workers.spec import EpisodeSpec


@dataclass(frozen=True, slots=True)
class RunTasks:
    """What a run plays in each phase: ``sets`` are its recipe's tasks, ``manifest`` has what it chose and wrote."""

    sets: TaskSets
    manifest: RunManifest

    def rollouts(self, phase: int) -> list[EpisodeSpec]:
        """Return the rollouts of a phase; none before the first that has some."""
        return self.with_written(self.chosen(phase), phase)

    def tasks(self, phase: int) -> dict[str, Task]:
        """Return the tasks of a phase's rollouts by the episode's id."""
        return {spec.episode_id: spec.task for spec in self.rollouts(phase)}

    def milestone_tasks(self, phase: int) -> dict[str, Task]:
        """Return the same tasks as a judge of milestones is told of them, with what was distilled up to the phase."""
        distilled = distilled_before(self.manifest, phase)
        return {episode_id: with_distilled(task, distilled) for episode_id, task in self.tasks(phase).items()}

    def evaluation(self, phase: int, *, screenshots: int = 0) -> list[EpisodeSpec]:
        """Return the evaluation after a phase; the first ``screenshots`` episodes are recorded with pictures."""
        return self.with_written(self.sets.evaluation(phase, screenshots=screenshots), phase)

    def chosen(self, phase: int) -> list[EpisodeSpec]:
        """Return the rollouts of a phase without what was written for their tasks.

        The tasks were chosen at the end of the phase before.
        """
        if phase < self.sets.first_phase:
            return []
        first = phase == self.sets.first_phase
        return self.sets.rollouts(phase, None if first else self.manifest.result(phase - 1, TasksChosen).tasks)

    def with_written(self, specs: Iterable[EpisodeSpec], phase: int) -> list[EpisodeSpec]:
        """Return the episodes with the milestones that were written for their tasks up to a phase."""
        return with_milestones(specs, written_before(self.manifest, phase))
