"""What was dispatched and what became of it: ``OUT/ledger/0003.jsonl``, one file a start, one line an event.

Owns these files. A line is one JSON object: ``{"phase", "stage", "event", "episode", "attempt", "worker"}`` and, where
an attempt failed, ``"failure"`` as ``kind/code``. Invariants: lines are only appended, in the order of what happened;
a lease without an end was cut short by the end of its start; ``waymark audit`` needs nothing else to balance
what was dispatched with what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from records.durable import read_text
from records.failures import Failure
from rollout_workers.leases import Event, Lease

FOLDER = "ledger"


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One event of one attempt at one episode."""

    start: int
    phase: int
    stage: str
    event: Event
    episode: str
    attempt: int
    worker: int
    failure: str = ""


class LedgerFile:
    """Context manager that appends what happens in one start."""

    def __init__(self, out: Path, start: int) -> None:
        path = out / FOLDER / f"{start:04d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lines = path.open("a", encoding="utf-8")

    def of(self, phase: int, stage: str) -> Callable[[Event, Lease, Failure | None], None]:
        """Return what writes down the events of one stage, each at once."""

        def write(event: Event, lease: Lease, failure: Failure | None) -> None:
            line = {"phase": phase, "stage": stage, "event": event.value, "episode": lease.episode_id}
            line |= {"attempt": lease.attempt, "worker": lease.holder}
            if failure is not None:
                line["failure"] = f"{failure.code}"
            self._lines.write(json.dumps(line) + "\n")
            self._lines.flush()

        return write

    def __enter__(self) -> LedgerFile:
        """Return the file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._lines.close()


def read_ledger(out: Path) -> Iterator[LedgerLine]:
    """Yield every event of every start in order; a last line that was torn by a crash is left out.

    Raises ``ValueError`` naming any other line that is not one of a ledger; ``OSError`` where a file cannot be read.
    """
    for path in sorted((out / FOLDER).glob("[0-9]*.jsonl")):
        lines = read_text(path, errors="replace").split("\n")
        for number, line in enumerate(lines, start=1):
            if line and number < len(lines):
                yield _parse(path, number, line)


def _parse(path: Path, number: int, text: str) -> LedgerLine:
    try:
        found = json.loads(text)
        return LedgerLine(int(path.stem), **{**found, "event": Event(found["event"])})
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{FOLDER}/{path.name}, line {number}: not an event of a ledger ({error})") from error
