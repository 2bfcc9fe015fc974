"""Numbers as TensorBoard scalars ``stage/name`` under ``OUT/tensorboard``, through TensorBoard's own writer.

Owns the event files. They are only appended: what is rolled back stays in them. Needs neither torch nor TensorFlow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cluster.monitors.monitor import MonitorKind

FOLDER = "tensorboard"


@dataclass(frozen=True)
class TensorBoardSettings:
    """TensorBoard event files under ``OUT/tensorboard``."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


class TensorBoard:
    """A monitor: one event a stage, at the phase as its step, with the values that are finite."""

    def __init__(self, out: Path, options: TensorBoardSettings) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._folder = out / FOLDER
        self._writer = EventFileWriter(str(self._folder))

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Write one event and flush it."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [
            Summary.Value(tag=f"{stage}/{name}", simple_value=value)
            for name, value in values.items()
            if math.isfinite(value)
        ]
        self._writer.add_event(Event(wall_time=time.time(), step=phase, summary=Summary(value=scalars)))
        self._writer.flush()

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Leave the events as they are: TensorBoard shows both."""

    def links(self) -> Mapping[str, str]:
        """Return the folder."""
        return {"TensorBoard": str(self._folder)}

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


TENSORBOARD = MonitorKind(TensorBoardSettings, TensorBoard)
