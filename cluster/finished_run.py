"""A run folder as somebody reads it who compares runs: its recipe, its episodes, its evaluations' outcomes.

Owns ``FinishedRun``. Invariant: nothing in the folder is written; what its manifests do not record does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RunFolders, checkpoint_name
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_data import recorded_files
from cluster.run_folder.stage_results import Evaluated, RolloutsPlayed
from records.episodes import Trajectory
from replay.buffer import Entry, ReplayBuffer
from replay.progress import milestones_reached


@dataclass(frozen=True)
class FinishedRun:
    """A run folder."""

    out: Path

    @cached_property
    def manifest(self) -> RunManifest:
        """What the stages left behind."""
        return RunManifest.read(self.out)

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe that the run was started with."""
        return build_recipe(self.manifest.header["config"], origin=str(self.out / "manifest.json"))

    @cached_property
    def buffer(self) -> ReplayBuffer:
        """The run's episodes."""
        buffer = ReplayBuffer(self.folders.episodes)
        buffer.record(recorded_files(self.manifest.entries()))
        return buffer

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
