"""Accounts for the episodes of one start: what it found, what is written down of the rest, and whether a phase adds up.

Owns when a phase is audited. Invariants: the ledger is read once a start; a phase is audited once, when it is complete,
and no stage of a later one begins before; an episode that was on the disk when the start began, though no line of the
ledger accounts for it, has a line before anything counts it. What was audited before is ``waymark audit``'s to look
over. Imports neither torch nor Ray.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence

from cluster.audit.audit import require_balance
from cluster.display.run_display import RunDisplay
from cluster.errors import RunStopped
from cluster.run_folder.ledger import LedgerFile, LedgerLine, LedgerReader, StageJournal
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.starts import balanced_manifests, note_balanced
from replay.buffer import ReplayBuffer
from rollout_workers.spec import EpisodeSpec

logger = logging.getLogger(__name__)


class Accounting:
    """The accounts of one start; ``ledger`` is its file, ``buffer`` has the run's episodes."""

    def __init__(self, manifest: RunManifest, ledger: LedgerFile, buffer: ReplayBuffer, display: RunDisplay) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._buffer = buffer
        self._display = display
        self._reader = LedgerReader(manifest.out)
        self._lines: dict[int, list[LedgerLine]] = defaultdict(list)
        self._unwritten: set[str] = set()
        self._audited = -1

    def take_up(self) -> None:
        """Read what earlier starts wrote down, and note which episodes on the disk no line accounts for.

        Raises:
            RunStopped: the ledger cannot be read.
        """
        self._audited = self._audited_before()
        self._unwritten = set(self._buffer.ids())
        self._read_on()

    def journal(self, phase: int, stage: str, specs: Sequence[EpisodeSpec]) -> StageJournal:
        """Return what writes down the attempts at these episodes; those that were found are written down here."""
        journal = self._ledger.of(phase, stage)
        asked = [spec.episode_id for spec in specs if spec.episode_id in self._unwritten]
        self._unwritten.difference_update(asked)
        found = [episode_id for episode_id in asked if episode_id in self._buffer]
        for episode_id in found:
            journal.found(episode_id)
        if found:
            line = (
                f"{len(found)} episodes of phase {phase} {stage} were found whose lines in the ledger are lost, as "
                "happens where a machine ends suddenly; they count, and the ledger says that they were found"
            )
            logger.warning(line)
            self._display.note(line)
        return journal

    def require_balance(self, phase: int) -> None:
        """Audit a complete phase, unless this was done before it was gone on from.

        Raises:
            RunStopped: it does not add up; the text says what is wrong.
        """
        if phase <= self._audited:
            return
        self._read_on()
        require_balance(self._manifest.out, phase, self._buffer, self._lines.pop(phase, []))
        note_balanced(self._manifest.out, self._manifest.start, self._manifest.last)
        self._audited = phase

    def _audited_before(self) -> int:
        """Return the newest phase that is known to add up, -1 where there is none.

        No manifest of a phase is written before the phase before it was audited. Of the newest phase, the file of a
        start says so, by the SHA-256 of the manifest that stood last then.
        """
        newest = max((phase for phase, _ in self._manifest.stages()), default=0)
        return newest if self._manifest.last in balanced_manifests(self._manifest.out) else newest - 1

    def _read_on(self) -> None:
        """Read what was written down since, and keep the lines of phases that are to be audited yet."""
        try:
            for line in self._reader.read_on():
                if line.accounts:
                    self._unwritten.discard(line.episode)
                if line.phase > self._audited:
                    self._lines[line.phase].append(line)
        except (OSError, ValueError) as error:
            raise RunStopped(
                f"the ledger of this run cannot be read: {error}; restore it from a copy, and start the same command "
                f"again (`waymark audit {self._manifest.out}` lists everything that is wrong)"
            ) from error
