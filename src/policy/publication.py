"""Bring every policy server to one version of the weights, and prove that it serves them.

Owns ``publish``. Publication is a transaction per server: it must report the weights' version and
checksum, and its log-probabilities of a probe must agree with the learner's; a server that misses is
quarantined with the reason, not waited for. Repeating a publication is harmless. Imports no ray and
no torch: servers are reached through the ``WeightServer`` protocol.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policy.published_weights import PublishedWeights, WeightsRejected


class ServerUnreachable(RuntimeError):
    """A policy server gave no answer; ``for_good`` where it will not come back."""

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good


class WeightServer(Protocol):
    """A server that takes weights; raises ``WeightsRejected`` or ``ServerUnreachable``."""

    name: str

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Take new weights and return what is served then."""
        ...

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the log-probabilities (A,) of ``action_ids`` at temperature 1."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """A prompt (P,), an action (A,), and the learner's log-probabilities (A,) of it under the new weights."""

    prompt_ids: tuple[int, ...]
    action_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Publication:
    """Who serves ``weights`` now, and who does not and why.

    ``probe_gaps`` holds, per server that answered, the largest difference of log-probabilities from the
    learner's, in nats; ``seconds`` is the whole publication's time.
    """

    weights: PublishedWeights
    accepted: tuple[str, ...]
    quarantined: dict[str, str] = field(default_factory=dict)
    probe_gaps: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Answer:
    server: str
    gap: float | None
    fault: str | None


async def publish(
    servers: Sequence[WeightServer], weights: PublishedWeights, probe: Probe, *, tolerance: float, timeout_s: float
) -> Publication:
    """Hand ``weights`` to all ``servers`` at once and check each.

    Args:
        servers: the servers, with distinct names.
        weights: what they are to serve.
        probe: what to compare.
        tolerance: largest accepted difference of a log-probability, in nats.
        timeout_s: longest wait for one server, in seconds.
    """
    began = time.monotonic()
    answers = await asyncio.gather(*(_publish_to(s, weights, probe, tolerance, timeout_s) for s in servers))
    return Publication(
        weights=weights,
        accepted=tuple(a.server for a in answers if a.fault is None),
        quarantined={a.server: a.fault for a in answers if a.fault is not None},
        probe_gaps={a.server: a.gap for a in answers if a.gap is not None},
        seconds=time.monotonic() - began,
    )


async def _publish_to(
    server: WeightServer, weights: PublishedWeights, probe: Probe, tolerance: float, timeout_s: float
) -> _Answer:
    try:
        async with asyncio.timeout(timeout_s):
            served = await server.load_weights(weights)
            logprobs = await server.score(probe.prompt_ids, probe.action_ids)
    except TimeoutError:
        return _Answer(server.name, None, f"no answer within {timeout_s:g} s")
    except (WeightsRejected, ServerUnreachable) as error:
        return _Answer(server.name, None, str(error))
    gap = probe_gap(probe.logprobs, logprobs)
    if (served.version, served.checksum) != (weights.version, weights.checksum):
        fault = (
            f"expected version {weights.version} ({weights.checksum[:12]}…), "
            f"it serves {served.version} ({served.checksum[:12]}…)"
        )
        return _Answer(server.name, gap, fault)
    if not gap <= tolerance:
        fault = f"its log-probabilities of the probe are off by {gap:.2e} nats, allowed are {tolerance:.0e}"
        return _Answer(server.name, gap, fault)
    return _Answer(server.name, gap, None)


def probe_gap(expected: Sequence[float], found: Sequence[float]) -> float:
    """Return the largest absolute difference; infinite where the lengths differ, NaN counts as infinite."""
    if len(expected) != len(found) or not expected:
        return float("inf")
    gaps = [abs(e - f) for e, f in zip(expected, found, strict=True)]
    return max(gap if gap == gap else float("inf") for gap in gaps)
