"""Bookmarks: where a training within a stage stands, on disk, so that a learner that died goes on from there.

Owns their folder and what ties a bookmark to its training. Invariants: a bookmark counts only for the very training
that wrote it, which its key says: the weights that the stage began with, what was trained since, settings, data and
shuffles; one of another training is removed. Once a checkpoint holds what was learned, there is none.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from learner.checkpoints import read_checkpoint, read_state, write_checkpoint
from learner.errors import CheckpointError, RankError
from learner.ranks import ALONE, Ranks

logger = logging.getLogger(__name__)


class Bookmarks:
    """The bookmarks in ``folder``, written every ``every_s`` seconds of a training; without a folder there are none.

    ``settings`` is what a learner of other settings has otherwise.
    """

    def __init__(
        self, folder: Path | None = None, every_s: float = 0.0, ranks: Ranks = ALONE, settings: str = ""
    ) -> None:
        self.folder = folder
        self.every_s = every_s
        self.ranks = ranks
        self._settings = settings
        self._origin = ""

    def key(self, name: str, facts: Iterable[bytes]) -> str:
        """Return what names a training: its name, its ``facts``, and where its weights come from."""
        digest = hashlib.sha256(f"{self._settings} {self._origin} {name}".encode())
        for fact in facts:
            digest.update(len(fact).to_bytes(8, "little") + fact)
        return digest.hexdigest()

    def trained(self, key: str) -> None:
        """The weights now come from the training of this key, too."""
        self._origin = key

    def saved(self, checkpoint: str) -> None:
        """The weights are those of the checkpoint of this id: no bookmark is needed any more."""
        self._origin = checkpoint
        if self.folder is not None and self.ranks.first:
            shutil.rmtree(self.folder, ignore_errors=True)

    def loaded(self, checkpoint: str) -> None:
        """The weights are those of the checkpoint of this id; bookmarks of what came after it may lie there."""
        self._origin = checkpoint

    def write(self, name: str, module: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Put a bookmark in the place of the one that the training had."""
        if self.folder is not None:
            write_checkpoint(self.folder / name, {"model": module}, {"model": optimiser}, state, self.ranks)

    def read(self, name: str, key: str, module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Go back to the bookmark of the training with this key and return its state; None where there is none.

        One of another training, and one that is damaged, is removed.
        """
        path = None if self.folder is None else self.folder / name
        if path is None or not path.exists():
            return None
        state = self._of_key(path, key, module, optimiser)
        if state is None and self.ranks.first:
            shutil.rmtree(path, ignore_errors=True)
        return state

    def _of_key(
        self, path: Path, key: str, module: nn.Module, optimiser: torch.optim.Optimizer
    ) -> dict[str, Any] | None:
        try:
            if read_state(path).get("key") != key:
                return None
            return read_checkpoint(path, {"model": module}, {"model": optimiser}, self.ranks)
        except (CheckpointError, RankError) as error:
            logger.warning("%s; the training begins again", error)
            return None
