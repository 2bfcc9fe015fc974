"""What was dispatched and what became of it: ``OUT/ledger/0003.jsonl``, one file a start, one line an event.

Owns these files. A line is one JSON object: ``{"phase", "stage", "event", "episode", "attempt", "worker"}`` and, where
an attempt failed, ``"failure"`` as ``kind/code``. Invariants: lines are only appended, in the order of what happened;
the line of a lease is durable before its episode is sent, that of its end before a stage counts it; a lease without an
end was cut short by the end of its start; an episode that a start found on the disk, and that no line accounts for, has
a line that says so; ``waymark audit`` needs nothing else to balance what was dispatched with what is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType

from records.durable import force_to_disk, open_file
from records.failures import Failure
from rollout_workers.leases import Event, Lease

FOLDER = "ledger"


class Found(StrEnum):
    """What a ledger says of an episode beside the events of its leases."""

    FOUND = "found"
    """Its shard was there when a start began, and no line says who played it."""


_NOBODY = Lease("", attempt=0, holder=-1)
"""Stands for the attempt that an episode was found without."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One event of one attempt at one episode."""

    start: int
    phase: int
    stage: str
    event: Event | Found
    episode: str
    attempt: int
    worker: int
    failure: str = ""

    @property
    def accounts(self) -> bool:
        """Whether the line says how its episode can have come to the disk."""
        return self.event in (Event.LEASE, Found.FOUND)


class LedgerFile:
    """Context manager that appends what happens in one start."""

    def __init__(self, out: Path, start: int) -> None:
        path = out / FOLDER / f"{start:04d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lines = path.open("a", encoding="utf-8")
        self._forced = True
        force_to_disk(path.parent)
        force_to_disk(out)

    def of(self, phase: int, stage: str) -> StageJournal:
        """Return what writes down the events of one stage."""
        return StageJournal(self, phase, stage)

    def append(self, line: dict[str, object]) -> None:
        """Write a line down, so that it outlives this process; see ``force``."""
        self._forced = False
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()

    def force(self) -> None:
        """Make all lines durable, so that they outlive this machine; nothing is done where they are."""
        if not self._forced:
            os.fsync(self._lines.fileno())
            self._forced = True

    def __enter__(self) -> LedgerFile:
        """Return the file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._lines.close()


class StageJournal:
    """Writes down the events of one stage, each at once; a ``rollout_workers.leases.Journal``."""

    def __init__(self, file: LedgerFile, phase: int, stage: str) -> None:
        self._file, self._phase, self._stage = file, phase, stage

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        """Write down an event of an attempt."""
        self._append(event, lease.episode_id, lease, failure)

    def found(self, episode_id: str) -> None:
        """Write down that an episode was on the disk when this start began, and that no line accounts for it."""
        self._append(Found.FOUND, episode_id, _NOBODY, None)

    def force(self) -> None:
        """Make all lines durable."""
        self._file.force()

    def _append(self, event: Event | Found, episode_id: str, lease: Lease, failure: Failure | None) -> None:
        line: dict[str, object] = {"phase": self._phase, "stage": self._stage, "event": event.value}
        line |= {"episode": episode_id, "attempt": lease.attempt, "worker": lease.holder}
        if failure is not None:
            line["failure"] = f"{failure.code}"
        self._file.append(line)


class LedgerReader:
    """Reads the ledger of a run on from where it was, so that each line is read once however it grows."""

    def __init__(self, out: Path) -> None:
        self._folder = out / FOLDER
        self._read: dict[Path, tuple[int, int]] = {}

    def read_on(self) -> Iterator[LedgerLine]:
        """Yield what was not read yet of every start, in order; a last line that was torn by a crash is left out.

        Raises ``ValueError`` naming any other line that is not one of a ledger; ``OSError`` where a file cannot be
        read.
        """
        for path in sorted(self._folder.glob("[0-9]*.jsonl")):
            at, number = self._read.get(path, (0, 0))
            with open_file(path) as file:
                file.seek(at)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    at, number = at + len(line), number + 1
                    self._read[path] = at, number
                    if len(line) > 1:
                        yield _parse(path, number, line.decode("utf-8", "replace"))


def read_ledger(out: Path) -> Iterator[LedgerLine]:
    """Yield every event of every start in order; raise as ``LedgerReader.read_on`` does."""
    return LedgerReader(out).read_on()


def _parse(path: Path, number: int, text: str) -> LedgerLine:
    try:
        found = json.loads(text)
        kind = Found if found["event"] == Found.FOUND else Event
        return LedgerLine(int(path.stem), **{**found, "event": kind(found["event"])})
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{FOLDER}/{path.name}, line {number}: not an event of a ledger ({error})") from error
