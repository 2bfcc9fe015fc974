"""Where a run keeps what.

Owns the layout of the run folder and the removal of old checkpoints. Invariant: what the manifest's
newest stage needs is never removed.
"""

from __future__ import annotations

import shutil
from pathlib import Path


class RunFolders:
    """Paths under one run folder ``out``."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.policy = out / "policy"
        """Configuration, tokenizer and initial weights of the policy."""
        self.episodes = out / "episodes"
        """Shards of every episode played."""
        self.screenshots = out / "screenshots"
        """Pictures of the episodes that are recorded with them."""
        self.weights = out / "weights"
        """Published weights, one file a version."""
        self.trained = out / "trained"
        """The policy after the last phase, as a folder that can be loaded by name."""
        self.current_weights = out / "weights" / "current.json"
        """Names the weights that were published last; a restarted server reads it."""

    def checkpoint(self, name: str) -> Path:
        """Return the folder of one checkpoint."""
        return self.out / "checkpoints" / name

    def checkpoint_files(self, name: str) -> list[Path]:
        """Return the files of one checkpoint, sorted."""
        return sorted(path for path in self.checkpoint(name).iterdir() if path.is_file())

    def forget_checkpoints(self, phase: int, keep: int) -> None:
        """Remove checkpoints and weights that are older than the ``keep`` newest up to ``phase``."""
        for old in range(0, phase - keep + 1):
            shutil.rmtree(self.checkpoint(checkpoint_name(old)), ignore_errors=True)
        for weights in sorted(self.weights.glob("*.safetensors"))[:-keep]:
            weights.unlink(missing_ok=True)
        shutil.rmtree(self.checkpoint(CLONED), ignore_errors=True)


CLONED = "cloned"
"""The checkpoint after cloning, before the critics have learned anything."""


def checkpoint_name(phase: int) -> str:
    """Return the name of the checkpoint after a phase (0: before the first)."""
    return f"phase-{phase:03d}"
