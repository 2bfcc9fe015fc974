"""How a fuzzing target is read many times: what counts as a finding, and how a hang is noticed.

Owns ``Target``, ``Outcome`` and ``read_many``. Invariants: an input is named by its target, the seed and its
number, and is drawn from these alone; whatever a reader raises beyond its documented errors is a finding and
does not end the run; a reader that works in Python is interrupted after ``LIMIT_S``.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

LIMIT_S = 20.0
"""Longest that one input may take, in seconds of processor time."""
_MOST_FINDINGS = 20


class BrokenPromise(AssertionError):
    """An input was taken, and what came of it is not what its reader promises."""


class Hung(BaseException):
    """An input takes too long; no reader may catch it."""


def require(holds: bool, promise: str) -> None:
    """Raise ``BrokenPromise`` unless ``holds``."""
    if not holds:
        raise BrokenPromise(promise)


@dataclass(frozen=True, slots=True)
class Target:
    """``read`` takes what ``make`` draws, and a folder to write in. One call reads ``texts`` inputs."""

    name: str
    make: Callable[[random.Random], Any]
    read: Callable[[Any, Path], None]
    refusals: tuple[type[Exception], ...] = ()
    texts: int = 1


@dataclass
class Outcome:
    """What came of some inputs; ``findings`` name the input's number and what went wrong, at most twenty of them."""

    inputs: int = 0
    taken: int = 0
    refused: int = 0
    found: int = 0
    slowest_s: float = 0.0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add what came of other inputs."""
        for name, value in asdict(other).items():
            mine = getattr(self, name)
            setattr(self, name, max(mine, value) if name == "slowest_s" else mine + value)
        self.findings = self.findings[:_MOST_FINDINGS]

    def finding(self, number: int, what: str) -> None:
        """Count a finding, and keep it while there are few."""
        self.found += 1
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(f"{number}: {what[:300]}")


def draw_input(target: Target, seed: int, number: int) -> Any:
    """Return an input of a target."""
    return target.make(random.Random(f"{target.name}/{seed}/{number}"))


def read_many(target: Target, numbers: range, folder: Path, seed: int = 0) -> Outcome:
    """Read the inputs of these numbers, in the main thread, and return what came of them."""
    outcome, started = Outcome(), time.perf_counter()
    before = signal.signal(signal.SIGVTALRM, _hang)
    logging.disable(logging.CRITICAL)  # readers report what they refuse
    try:
        for number in numbers:
            _read_one(target, number, folder, seed, outcome)
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGVTALRM, before)
    outcome.seconds = time.perf_counter() - started
    return outcome


def _read_one(target: Target, number: int, folder: Path, seed: int, outcome: Outcome) -> None:
    given = draw_input(target, seed, number)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        target.read(given, folder)
        outcome.taken += target.texts
    except target.refusals:
        outcome.refused += target.texts
    except Hung:
        outcome.finding(number, f"not read within {LIMIT_S:g} s")
    except Exception as error:  # noqa: BLE001 - what is not documented is what is looked for
        outcome.finding(number, f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    outcome.inputs += target.texts
    outcome.slowest_s = max(outcome.slowest_s, time.process_time() - started)


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hung
