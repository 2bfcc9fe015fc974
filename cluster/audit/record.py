"""Everything that a run folder says about itself, read once, and what the parts of an audit come to.

Owns reading for ``cluster.audit.audit``. Invariants: nothing is written; what cannot be read is a finding, never an
exception, but for a folder that holds no run at all. Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cluster.errors import ManifestError
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.layout import LABELS, ROLLBACKS
from cluster.run_folder.ledger import Found, LedgerLine, read_ledger
from cluster.run_folder.manifest import FILE_NAME, RunHeader, read_header
from cluster.run_folder.recorded_files import recorded_files
from cluster.run_folder.rollback import Rollback, read_rollbacks
from cluster.run_folder.stage_files import Fault, StageEntry, scan_stages
from cluster.run_folder.stage_results import R, StageResult, WithEpisodes
from records.labels import LabelSubject
from replay.buffer import ReplayBuffer
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore
from replay.settings import ReplaySettings
from rollout_workers.leases import Event

Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: which part of the audit found it, where, and what."""

    part: str
    subject: str
    found: str


@dataclass
class AuditPart:
    """One part of an audit: its name, how many things it looked at, and what is wrong with them."""

    name: str
    looked_at: int = 0
    findings: list[Finding] = field(default_factory=list)

    def require(self, holds: bool, subject: str, found: str) -> None:
        """Count one thing looked at, and a finding where it does not hold."""
        self.looked_at += 1
        if not holds:
            self.findings.append(Finding(self.name, subject, found))


@dataclass(frozen=True)
class AuditedRun:
    """A run folder as it was read."""

    out: Path
    header: RunHeader
    entries: dict[Key, StageEntry]
    faults: list[Fault]
    buffer: ReplayBuffer
    ledger: list[LedgerLine]
    ledger_fault: str
    rollbacks: list[Rollback]

    @classmethod
    def read(
        cls, out: Path, buffer: ReplayBuffer | None = None, ledger: Sequence[LedgerLine] | None = None
    ) -> AuditedRun:
        """Read a run folder; raise ``ManifestError`` where it holds none.

        A buffer that is open already is used, and lines of the ledger that were read already.
        """
        header = read_header(out)
        entries, _, faults = scan_stages(out, sha256_file(out / FILE_NAME))
        lines: list[LedgerLine] = []
        fault = ""
        try:
            lines.extend(read_ledger(out) if ledger is None else ledger)
        except (OSError, ValueError) as error:
            fault = str(error)
        rollbacks: list[Rollback] = []
        try:
            rollbacks.extend(read_rollbacks(out))
        except ManifestError as error:
            faults.append(Fault(ROLLBACKS, str(error)))
        if buffer is None:
            buffer = ReplayBuffer(out / "episodes")
            buffer.record(recorded_files(entries))
        return cls(out, header, {(e.phase, e.stage): e for e in entries}, faults, buffer, lines, fault, rollbacks)

    def episodes(self, key: Key) -> list[str]:
        """Return the ids of the episodes of a stage, none where it is not complete."""
        played = self.played(key)
        return [] if played is None else list(played.episodes)

    def played(self, key: Key) -> WithEpisodes | None:
        """Return the result of a stage that plays; None where it is another one or not complete."""
        entry = self.entries.get(key)
        return entry.result if entry is not None and isinstance(entry.result, WithEpisodes) else None

    def result(self, phase: int, kind: type[R]) -> R | None:
        """Return what the phase's stage of this kind left; None where it is not complete."""
        entry = self.entries.get((phase, kind.stage))
        return entry.result if entry is not None and isinstance(entry.result, kind) else None

    def has(self, kind: type[StageResult]) -> bool:
        """Return whether any phase's stage of this kind is complete."""
        return any(isinstance(entry.result, kind) for entry in self.entries.values())

    def rolled_back_in(self, key: Key) -> int:
        """Return the start in which a complete stage was rolled back last, 0 where it never was."""
        number = list(self.entries).index(key)
        return max((found.start for found in self.rollbacks if found.kept <= number), default=0)

    @cached_property
    def judges(self) -> dict[LabelSubject, str]:
        """The judges whose labels the run learns from, by subject."""
        return ReplaySettings(**self.header["config"]["replay"]).judges

    @property
    def max_staleness(self) -> int:
        """How many versions a rollout's weights may have been behind; runs of before there was the setting say none."""
        return int(self.header["config"]["rollout"].get("max_staleness", 0))

    @property
    def opens(self) -> bool:
        """Whether the start policy's rollouts open the buffer; those of runs of before there was the setting do not."""
        return bool(self.header["config"]["warm_start"].get("rollout_tasks", 0))

    @cached_property
    def labelled(self) -> LabelledBuffer:
        """The episodes as the run learns from them."""
        labels = LabelStore(self.out / LABELS)
        labels.record(recorded_files(self.entries.values()))
        return LabelledBuffer(self.buffer, labels, self.judges)

    @cached_property
    def leases(self) -> Counter[str]:
        """How often each episode was handed to a worker, in all starts."""
        return Counter(line.episode for line in self.ledger if line.event is Event.LEASE)

    @cached_property
    def found(self) -> set[str]:
        """Episodes that a start found on the disk when no line accounted for them yet."""
        accounted: set[str] = set()
        found: set[str] = set()
        for line in self.ledger:
            if line.event is Found.FOUND and line.episode not in accounted:
                found.add(line.episode)
            if line.accounts:
                accounted.add(line.episode)
        return found

    @cached_property
    def lines(self) -> dict[Key, list[LedgerLine]]:
        """The ledger's lines of each stage."""
        by_stage: dict[Key, list[LedgerLine]] = defaultdict(list)
        for line in self.ledger:
            by_stage[line.phase, line.stage].append(line)
        return by_stage

    def is_imported(self, episode_id: str) -> bool:
        """Return whether a stored episode is one of the data that the run began with, so that nobody played it."""
        return self.buffer.entry(episode_id).shard.name in self.header["data"]

    @cached_property
    def records(self) -> Counter[str]:
        """How many stored records each episode has."""
        stored = Counter(self.buffer.ids())
        stored.update(duplicate.episode_id for duplicate in self.buffer.scan.duplicates)
        return stored


def place(key: Key) -> str:
    """Return a stage as a person reads it."""
    return f"phase {key[0]} {key[1]}"
