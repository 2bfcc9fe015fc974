"""How a look at one thing ended: the records behind ``waymark doctor`` and ``waymark check``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check ended; only ``FAIL`` stops a run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, and what to do where ``status`` is not ok."""

    name: str
    status: Status
    found: str
    advice: str = ""
