"""Numbers over time: ``OUT/metrics.jsonl`` always, TensorBoard event files when asked.

Owns both files. Invariants: a line is one JSON object ``{"time", "phase", "stage", <name>: number…}``
(``time`` is seconds since the epoch); lines are only appended, so a stage that was cut short and
done again has two lines, of which the last counts; those of stages that are rolled back are moved elsewhere. Event
files keep both. Needs neither torch nor TensorFlow.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from cluster.run_folder.durable import write_atomic
from records.durable import read_text

FILE_NAME = "metrics.jsonl"
_RESERVED = {"time", "phase", "stage"}


class MetricsLog:
    """Context manager that records named numbers of a phase's stages."""

    def __init__(self, out: Path, tensorboard: bool = True) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / FILE_NAME
        _end_torn_line(self._path)
        self._lines = self._path.open("a", encoding="utf-8")
        self._events = _EventFile(out / "tensorboard") if tensorboard else None

    def log(self, phase: int, stage: str, values: Mapping[str, float], step: int | None = None) -> None:
        """Append one line, and one TensorBoard scalar ``stage/name`` a finite value, at ``step`` (else ``phase``).

        A number that is not finite becomes ``null``. Raises ``ValueError`` for a reserved name.
        """
        taken = _RESERVED & set(values)
        if taken:
            raise ValueError(f"metric names {sorted(taken)} are taken by the line itself; choose others")
        now = time.time()
        numbers = {name: float(value) for name, value in values.items()}
        line: dict[str, Any] = {"time": round(now, 3), "phase": phase, "stage": stage}
        line.update({name: value if math.isfinite(value) else None for name, value in numbers.items()})
        self._lines.write(json.dumps(line, allow_nan=False) + "\n")
        self._lines.flush()
        if self._events is not None:
            finite = {f"{stage}/{name}": value for name, value in numbers.items() if math.isfinite(value)}
            self._events.add(finite, phase if step is None else step, now)

    def set_aside(self, stages: Collection[tuple[int, str]], place: Path) -> None:
        """Move the lines of these stages (phase, name) to the file ``place``, so that only their next ones count.

        Doing it again after it was cut short does the rest; nothing is written where no line is left to move.
        """
        lines = self._path.read_bytes().splitlines(keepends=True)
        moved = [line for line in lines if _stage_of(line) in stages]
        if not moved:
            return
        self._lines.close()
        write_atomic(place, b"".join(moved))
        write_atomic(self._path, b"".join(line for line in lines if _stage_of(line) not in stages))
        self._lines = self._path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Flush and close both files."""
        self._lines.close()
        if self._events is not None:
            self._events.close()

    def __enter__(self) -> MetricsLog:
        """Return the log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self.close()


def read_metrics(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a run in order, but one torn by a crash; raise ``OSError`` where the file cannot be read."""
    path = out / FILE_NAME
    if not path.exists():
        return
    for line in read_text(path, errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _stage_of(line: bytes) -> tuple[Any, Any] | None:
    """Return the phase and the stage of a line, None where it was torn."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return (value.get("phase"), value.get("stage")) if isinstance(value, dict) else None


def _end_torn_line(path: Path) -> None:
    """Close a line that a killed run left open, so that the next one does not grow onto it."""
    if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


class _EventFile:
    """TensorBoard scalars through ``tensorboard``'s own writer."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(folder))

    def add(self, scalars: Mapping[str, float], step: int, wall_time: float) -> None:
        """Write one event with these scalars."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._writer.add_event(Event(wall_time=wall_time, step=step, summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()
