"""What a run consists of: the roles of its processes."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What of a run may stand on a machine of its own; the driver stands where its command was started."""

    DRIVER = "driver"
    WORKER = "worker"
    SERVER = "server"
    LEARNER = "learner"
