"""Numbers over time as the lines of ``OUT/metrics.jsonl``; a resumed run reads there which stages were told.

Owns the file. Invariants: a line is one JSON object ``{"time", "phase", "stage", <name>: number…}``
(``time`` is seconds since the epoch); lines are only appended, so a stage that was cut short and
done again has two lines, of which the last counts; those of stages that are rolled back are moved elsewhere.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from cluster.errors import ManifestError
from cluster.monitors.monitor import MonitorKind
from cluster.run_folder.durable import write_atomic
from records.durable import NotAFile, open_file, read_text

FILE_NAME = "metrics.jsonl"
_RESERVED = {"time", "phase", "stage"}


@dataclass(frozen=True)
class MetricsLogSettings:
    """A line for each stage in ``OUT/metrics.jsonl``."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


class MetricsLog:
    """A monitor: one line a stage."""

    def __init__(self, out: Path, options: MetricsLogSettings) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / FILE_NAME
        try:
            _end_torn_line(self._path)
        except NotAFile as error:
            raise ManifestError(f"{error}; move it away and start the same command again") from error
        self._lines = self._path.open("a", encoding="utf-8")

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Append one line; a number that is not finite becomes ``null``. Raise ``ValueError`` for a reserved name."""
        taken = _RESERVED & set(values)
        if taken:
            raise ValueError(f"metric names {sorted(taken)} are taken by the line itself; choose others")
        line: dict[str, Any] = {"time": round(time.time(), 3), "phase": phase, "stage": stage}
        line.update({name: float(value) if math.isfinite(value) else None for name, value in values.items()})
        self._lines.write(json.dumps(line, allow_nan=False) + "\n")
        self._lines.flush()

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Move the lines of these stages (phase, name) into ``folder``, so that only their next ones count.

        Doing it again after it was cut short does the rest; nothing is written where no line is left to move.
        """
        with open_file(self._path) as file:
            lines = file.read().splitlines(keepends=True)
        moved = [line for line in lines if _stage_of(line) in stages]
        if not moved:
            return
        self._lines.close()
        write_atomic(folder / FILE_NAME, b"".join(moved))
        write_atomic(self._path, b"".join(line for line in lines if _stage_of(line) not in stages))
        self._lines = self._path.open("a", encoding="utf-8")

    def links(self) -> Mapping[str, str]:
        """Return nothing: the run names the file at its end."""
        return {}

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


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
    if not path.exists():
        return
    with open_file(path) as file:
        content = file.read()
    if content and not content.endswith(b"\n"):
        with path.open("ab") as end:
            end.write(b"\n")


METRICS_LOG = MonitorKind(MetricsLogSettings, MetricsLog)
