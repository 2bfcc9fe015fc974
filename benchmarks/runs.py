"""Training runs as child processes, and what is read back from their folders.

Owns the call of the command line and the evaluation outcomes of a finished run. Invariant: a run that is
complete in its folder is not run again, and one that was interrupted goes on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RunFolders, checkpoint_name
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_data import recorded_files
from cluster.run_folder.stage_results import Evaluated
from records.episodes import Trajectory
from replay.buffer import ReplayBuffer

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("runs") / "benchmarks"
LAPTOP = ROOT / "cluster" / "recipes" / "laptop.yaml"


class RunFailed(RuntimeError):
    """A training run did not end well; the text names its log."""


def child_environment(**more: str) -> dict[str, str]:
    """Return an environment in which a child Python finds the packages and uses one thread."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **more}


def start_training(
    recipe: Path, out: Path, overrides: Sequence[str] = (), **environment: str
) -> subprocess.Popen[bytes]:
    """Start ``waymark train``; its output goes to ``OUT.log``."""
    command = [sys.executable, "-m", "cluster.cli", "train", str(recipe), "--out", str(out)]
    for override in overrides:
        command += ["--set", override]
    out.parent.mkdir(parents=True, exist_ok=True)
    with _log(out).open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=child_environment(**environment))


def train(recipe: Path, out: Path, overrides: Sequence[str] = ()) -> FinishedRun:
    """Train, or finish, or only read the run in ``out``.

    Raises:
        RunFailed: the command line ended with an error.
    """
    process = start_training(recipe, out, overrides)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()  # it stops cleanly and can be resumed
        process.wait()
        raise
    check(code, out)
    return FinishedRun(out)


def check(code: int, out: Path) -> None:
    """Raise ``RunFailed`` with the end of the log where the exit code is not 0."""
    if code:
        said = _log(out).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        raise RunFailed(f"{out}: exit code {code}; see {_log(out)}: {' / '.join(said)}")


def _log(out: Path) -> Path:
    return out.with_name(out.name + ".log")


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
        for episode_id in self.manifest.result(phase, Evaluated).episodes:
            entry = self.buffer.entry(episode_id)
            if entry.split == split and entry.outcome is not None:
                played.setdefault(entry.task_id, []).append(entry.outcome)
        return {task: sum(found) / len(found) for task, found in sorted(played.items())}
