"""A run folder as somebody reads it who plays no part in it: its recipe, tasks, episodes, labels, and outcomes.

Owns ``RecordedRun``. Invariant: nothing in the folder is written; what its manifests do not record does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RunFolders, checkpoint_name
from cluster.run_folder.manifest import FILE_NAME, RunManifest
from cluster.run_folder.recorded_files import recorded_files
from cluster.run_folder.stage_results import Evaluated, MilestonesDistilled, RolloutsPlayed
from cluster.run_tasks import RunTasks
from cluster.task_sets import TaskSets
from records.episodes import Source, Task, Trajectory
from replay.buffer import Entry, ReplayBuffer
from replay.labels import LabelStore
from replay.progress import milestones_reached


@dataclass(frozen=True)
class RecordedRun:
    """A run folder, of a run that is complete or is not.

    Whatever is asked of it raises ``ManifestError`` where ``out`` holds no run, or one that this version cannot read.
    """

    out: Path

    @cached_property
    def manifest(self) -> RunManifest:
        """What the stages left behind."""
        return RunManifest.read(self.out)

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe that the run was started with."""
        return self.recipe_with(())

    def recipe_with(self, overrides: Sequence[str]) -> Recipe:
        """Return the run's recipe with ``key=value`` overrides; raise ``RecipeError`` where one is wrong."""
        return build_recipe(self.manifest.header["config"], overrides, origin=str(self.out / FILE_NAME))

    @cached_property
    def buffer(self) -> ReplayBuffer:
        """The run's episodes, of which those that a stage recorded count before others."""
        buffer = ReplayBuffer(self.folders.episodes)
        buffer.record(recorded_files(self.manifest.entries()))
        return buffer

    @cached_property
    def labels(self) -> LabelStore:
        """What judges said of the run's episodes, of which what a stage recorded counts before the rest."""
        labels = LabelStore(self.folders.labels)
        labels.record(recorded_files(self.manifest.entries()))
        return labels

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The task of every rollout and evaluation that the run records, by the episode's id."""
        played = {Evaluated.stage: self._drawn.evaluation, RolloutsPlayed.stage: self._drawn.rollouts}
        specs = [spec for phase, stage in self.manifest.stages() if stage in played for spec in played[stage](phase)]
        return {spec.episode_id: spec.task for spec in specs}

    @cached_property
    def milestone_tasks(self) -> dict[str, Task]:
        """The same tasks as judges of milestones see them: those of rollouts with their distilled milestones."""
        phases = [phase for phase, stage in self.manifest.stages() if stage == MilestonesDistilled.stage]
        return self.tasks | {
            name: task for phase in phases for name, task in self._drawn.milestone_tasks(phase).items()
        }

    @cached_property
    def _drawn(self) -> RunTasks:
        return RunTasks(TaskSets(self.recipe), self.manifest)

    @property
    def folders(self) -> RunFolders:
        """Where the run keeps what."""
        return RunFolders(self.out)

    @property
    def phases(self) -> int:
        """Number of the last phase."""
        return self.recipe.run.phases

    @property
    def model(self) -> str:
        """What the learner loads its model from."""
        return str(self.folders.policy)

    @property
    def last_checkpoint(self) -> Path:
        """The learner after the last phase."""
        return self.folders.checkpoint(checkpoint_name(self.phases))

    def judged(self, sources: Collection[Source]) -> list[Trajectory]:
        """Return the episodes of these sources that have a verdict, by their ids."""
        return [one for one in self.buffer.trajectories(self.buffer.ids(sources=sources)) if one.outcome is not None]

    def evaluation(self, phase: int) -> list[Trajectory]:
        """Return the judged episodes of the evaluation after a phase."""
        return self.buffer.trajectories(self.manifest.result(phase, Evaluated).episodes)

    def outcomes(self, phase: int, split: str) -> Mapping[str, float]:
        """Return the outcome of each judged task of a split, the mean where it was played several times."""
        played: dict[str, list[float]] = {}
        for entry in self.evaluated(phase):
            if entry.split == split and entry.outcome is not None:
                played.setdefault(entry.task_id, []).append(entry.outcome)
        return {task: sum(found) / len(found) for task, found in sorted(played.items())}

    def milestones(self, phase: int) -> dict[str, dict[str, float]]:
        """Return by split and task the share of its milestones that an evaluation's judged episodes reached.

        It is the mean where a task was played several times; tasks without milestones are left out.
        """
        played: dict[str, dict[str, list[float]]] = {}
        episodes = self.manifest.result(phase, Evaluated).episodes
        for episode in self.buffer.trajectories(episodes, pages=False):
            if (share := milestones_reached(episode)) is not None:
                played.setdefault(episode.split, {}).setdefault(episode.task_id, []).append(share)
        return {split: {task: fmean(found) for task, found in sorted(tasks.items())} for split, tasks in played.items()}

    def sampled_milestones(self, phase: int) -> float | None:
        """Return the mean share of milestones that a phase's judged rollouts reached, None where there are none."""
        episodes = self.buffer.trajectories(self.manifest.result(phase, RolloutsPlayed).episodes, pages=False)
        shares = [share for episode in episodes if (share := milestones_reached(episode)) is not None]
        return fmean(shares) if shares else None

    def evaluated(self, phase: int) -> list[Entry]:
        """Return what the index knows of the episodes of the evaluation after a phase, none where there was none."""
        return [self.buffer.entry(episode_id) for episode_id in self.manifest.result(phase, Evaluated).episodes]
