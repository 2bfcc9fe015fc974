"""Where a run keeps what.

Owns the layout of the run folder and the removal of old checkpoints. Invariant: what the manifest's
newest stage needs is never removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from records.folder_mark import marked_folder
from records.stores.lease import KEY as LEASE
from records.stores.working_copy import address_of

if TYPE_CHECKING:
    from cluster.run_folder.stored_run import StoredRun


class RunFolders:
    """Paths under one run folder ``out``."""

    def __init__(self, out: Path, stored: StoredRun | None = None, mark: str = "") -> None:
        self.out = out
        self.mark = mark
        """By what processes of other nodes know the folder; empty where each node has one of its own."""
        self.stored = stored
        """The driver's side of a run in a store, of which ``out`` is the working copy."""
        self.policy = out / "policy"
        """Configuration, tokenizer and initial weights of the policy."""
        self.episodes = out / "episodes"
        """Shards of every episode played."""
        self.labels = out / LABELS
        """What judges say of recorded episodes (``replay.labels``)."""
        self.screenshots = out / "screenshots"
        """Pictures of the episodes that are recorded with them."""
        self.plans = out / "plans"
        """What planning agents knew of their episodes, one file each (``rollout_workers.planning.state``)."""
        self.weights = out / "weights"
        """Published weights, one file a version."""
        self.trained = out / "trained"
        """The policy after the last phase, as a folder that can be loaded by name."""
        self.current_weights = out / "weights" / "current.json"
        """Names the weights that were published last; a restarted server reads it."""
        self.bookmarks = out / "bookmarks"
        """Where trainings within a stage stand, for a learner that dies (``learner.bookmarks``)."""
        self.logs = out / "logs"
        """What policy servers that are processes of others print."""
        self.judging = out / "judging"
        """What language models were asked and what it cost, and their answers (``judges.llm``)."""
        self.rollbacks = out / ROLLBACKS
        """What was set aside because something that the run depended on was damaged."""

    def address(self, path: str | Path) -> str:
        """Return what another process, on any node, is told of a file or folder of the run."""
        if self.stored is None:
            return str(Path(path).resolve())
        return address_of(self.stored.copy.uri, self.stored.copy.name(Path(path)))

    def checkpoint(self, name: str) -> Path:
        """Return the folder of one checkpoint."""
        return self.out / "checkpoints" / name

    def checkpoint_files(self, name: str) -> list[Path]:
        """Return the files of one checkpoint, sorted."""
        return sorted(path for path in self.checkpoint(name).iterdir() if path.is_file())

    def learned(self) -> list[Path]:
        """Return every checkpoint and every file of published weights that is there, sorted."""
        return sorted([*self.checkpoint(CLONED).parent.glob("[!.]*"), *self.weights.glob("[!.]*.safetensors")])

    def meeting(self) -> Path:
        """Return a new name of a file in which the learner's ranks find each other; the next start removes it."""
        folder = self.checkpoint(CLONED).parent
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f".meeting-{uuid4().hex}"

    def bookmarked(self) -> list[str]:
        """Return what names the bookmarks that are there, by their content."""
        return [path.read_text(encoding="utf-8") for path in sorted(self.bookmarks.glob("[!.]*/COMPLETE"))]

    def forget_checkpoints(self, phase: int, keep: int) -> None:
        """Remove what ``kept_checkpoints`` does not name once ``phase`` is complete, and weights as old as that."""
        for old in range(0, phase + 1):
            for name in (checkpoint_name(old), critics_name(old)):
                if name not in kept_checkpoints(phase, keep):
                    shutil.rmtree(self.checkpoint(name), ignore_errors=True)
        for weights in sorted(self.weights.glob("*.safetensors"))[:-keep]:
            weights.unlink(missing_ok=True)
        shutil.rmtree(self.checkpoint(CLONED), ignore_errors=True)

    def written_into(self) -> tuple[Path, ...]:
        """Return the folders in the run folder where what is being written has a name that begins with a dot."""
        aside = (self.rollbacks, *self.rollbacks.glob("[0-9]*"))
        return (
            self.episodes,
            self.labels,
            self.weights,
            self.bookmarks,
            self.checkpoint(CLONED).parent,
            self.out / STAGES,
            self.out / LEASE,
            *aside,
        )

    def clear_leftovers(self) -> None:
        """Remove what a killed process was still writing; all of it has a name that begins with a dot.

        The pointer to the served weights goes as well: servers that start now wait for a publication.
        """
        leftovers = [path for folder in self.written_into() if folder.is_dir() for path in folder.glob(".*")]
        for path in leftovers + [path for name in _WRITTEN for path in self.out.glob(f".{name}.*")]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        self.current_weights.unlink(missing_ok=True)
        if self.stored is not None:
            self.stored.announce(None)


@contextmanager
def shared_folders(out: Path, stored: StoredRun | None = None) -> Iterator[RunFolders]:
    """Yield the folders under ``out``, absolute, for a run's processes; the folder is marked for as long as they live.

    Of a run in a store each node has a folder of its own, which needs no mark.
    """
    if stored is not None:
        yield RunFolders(out.resolve(), stored)
        return
    with marked_folder(out) as mark:
        yield RunFolders(out.resolve(), mark=mark)


REPORT = "report.html"
"""The page of a complete run, written last of all."""

_WRITTEN = ("policy", "trained", "manifest.json", "metrics.jsonl", "summary.json", REPORT)
"""What is written into the run folder itself; files of others there, hidden ones too, are left alone."""

LABELS = "labels"
"""The folder of the labels."""

RESULT = "result.json"
"""What came of an evaluation, beside the episodes that were kept of it."""

STAGES = "stages"
"""The folder of the stages' manifests (see ``cluster.run_folder.stage_files``)."""

ROLLBACKS = "rollbacks"
"""The folder of what was set aside, with a record of each rollback (see ``cluster.run_folder.rollback``)."""

CLONED = "cloned"
"""The checkpoint after cloning, before the critics have learned anything."""


def checkpoint_name(phase: int) -> str:
    """Return the name of the checkpoint after a phase (0: before the first)."""
    return f"phase-{phase:03d}"


def critics_name(phase: int) -> str:
    """Return the name of the checkpoint in the middle of a phase, when its critics are trained and its actor is not."""
    return f"{checkpoint_name(phase)}-critics"


def kept_checkpoints(phase: int, keep: int) -> list[str]:
    """Return the checkpoints that are kept once ``phase`` is complete: the ``keep`` newest."""
    return [checkpoint_name(kept) for kept in range(max(0, phase - keep + 1), phase + 1)]
