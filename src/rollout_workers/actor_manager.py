"""RLlib's actor manager, without the frameworks that RLlib's packages import on the way to it.

Owns this one import (docs/decisions/0001). Invariant: the driver carries no torch because of it; RLlib takes a missing
torch for one that is not installed, and the manager needs none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Let imports of a package that is not loaded yet fail as if it was not installed."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # how Python itself spells it
    try:
        yield
    finally:
        del sys.modules[package]


with _hidden("torch"):
    from ray.rllib.utils.actor_manager import CallResult, FaultTolerantActorManager

__all__ = ["CallResult", "FaultTolerantActorManager"]
