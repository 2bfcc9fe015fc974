"""Bring every policy server to one version of the weights, and prove that it serves them.

Owns ``publish``. Publication is a transaction per server: weights come to it by a data plane, it must report their
version and checksum, and its log-probabilities of the probes must agree with the learner's; a server that misses is
quarantined with the reason, not waited for. Repeating a publication is harmless. Imports no ray and
no torch: servers are reached through the ``WeightServer`` protocol.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policy.client import RequestRefused, ServerUnreachable, StartFailed
from policy.data_planes import DataPlane, WeightTaker, by_file
from policy.published_weights import PublishedWeights
from policy.settings import PolicySettings

Ids = tuple[int, ...]
_LIMITS = {"float32": (1e-3, 1e-4), "bfloat16": (0.25, 0.05)}
"""By precision: (largest, mean). Measured: 1.5e-5 at most in float32; in bfloat16 0.07 to 0.14, and 0.01 to 0.03."""


class WeightServer(WeightTaker, Protocol):
    """A server that takes weights and can prove them."""

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the log-probabilities (A,) of ``action_ids`` at temperature 1; raise also ``RequestRefused``."""
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

    ``refused`` are those of the quarantined that told why no start of theirs can succeed (``StartFailed.refused``).
    ``probe_gaps`` holds, per server that answered, the largest difference of log-probabilities from the
    learner's, in nats; ``seconds`` is the whole publication's time.
    """

    weights: PublishedWeights
    accepted: tuple[str, ...]
    quarantined: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    probe_gaps: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def with_later(self, later: Publication) -> Publication:
        """Return this publication with one of the same weights to further servers."""
        return Publication(
            self.weights,
            self.accepted + later.accepted,
            self.quarantined | later.quarantined,
            self.refused + later.refused,
            self.probe_gaps | later.probe_gaps,
            self.seconds + later.seconds,
        )


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """What a server's log-probabilities may differ from the learner's, in nats: one of them, and all on average.

    A half-precision server is off by more at single tokens than one update moves them; old weights show in the mean.
    """

    largest: float
    mean: float


@dataclass(frozen=True, slots=True)
class _Answer:
    server: str
    gap: float | None
    fault: str | None
    refused: bool = False


def probe_limits(settings: PolicySettings, expected_in: str = "float32") -> ProbeLimits:
    """Return the limits that the settings name, or those of the coarser precision: theirs, or the probes' own."""
    largest, mean = max(_LIMITS[settings.dtype], _LIMITS[expected_in])
    return ProbeLimits(settings.probe_tolerance or largest, settings.probe_mean_tolerance or mean)


async def publish(
    servers: Sequence[WeightServer],
    weights: PublishedWeights,
    probes: Sequence[Probe],
    *,
    limits: ProbeLimits,
    timeout_s: float,
    plane: DataPlane = by_file,
) -> Publication:
    """Hand ``weights`` to all ``servers`` at once and check each.

    Args:
        servers: the servers, with distinct names.
        weights: what they are to serve.
        probes: what to compare, at least one.
        limits: what is accepted over all of them.
        timeout_s: longest wait for one server to take them, and to answer the probes, in seconds.
        plane: how the weights come to the servers.
    """
    began = time.monotonic()
    handed = await plane(servers, weights, timeout_s)
    proofs = (
        _proof(server, served, weights, probes, limits, timeout_s)
        for server, served in zip(servers, handed, strict=True)
    )
    answers = await asyncio.gather(*proofs)
    return Publication(
        weights=weights,
        accepted=tuple(a.server for a in answers if a.fault is None),
        quarantined={a.server: a.fault for a in answers if a.fault is not None},
        refused=tuple(a.server for a in answers if a.refused),
        probe_gaps={a.server: a.gap for a in answers if a.gap is not None},
        seconds=time.monotonic() - began,
    )


async def _proof(
    server: WeightServer,
    served: PublishedWeights | Exception,
    weights: PublishedWeights,
    probes: Sequence[Probe],
    limits: ProbeLimits,
    timeout_s: float,
) -> _Answer:
    if isinstance(served, Exception):
        return _Answer(server.name, None, str(served), isinstance(served, StartFailed) and served.refused)
    try:
        async with asyncio.timeout(timeout_s):
            found = [await server.score(probe.prompt_ids, probe.action_ids) for probe in probes]
    except TimeoutError:
        return _Answer(server.name, None, f"no answer to the probes within {timeout_s:g} s")
    except (RequestRefused, ServerUnreachable) as error:
        return _Answer(server.name, None, str(error))
    gaps = [gap for probe, logprobs in zip(probes, found, strict=True) for gap in probe_gaps(probe.logprobs, logprobs)]
    gap = max(gaps)
    if (served.version, served.checksum) != (weights.version, weights.checksum):
        fault = (
            f"expected version {weights.version} ({weights.checksum[:12]}…), "
            f"it serves {served.version} ({served.checksum[:12]}…)"
        )
        return _Answer(server.name, gap, fault)
    return _Answer(server.name, gap, probe_fault(gaps, limits))


def probe_fault(gaps: Sequence[float], limits: ProbeLimits) -> str | None:
    """Return what is wrong with a server whose log-probabilities are off by ``gaps`` (N,), None where nothing is."""
    gap, mean = max(gaps), sum(gaps) / len(gaps)
    if gap <= limits.largest and mean <= limits.mean:
        return None
    return (
        f"its log-probabilities of the probes are off by {gap:.2e} nats ({mean:.2e} on average), "
        f"allowed are {limits.largest:.0e} ({limits.mean:.0e})"
    )


def probe_gaps(expected: Sequence[float], found: Sequence[float]) -> list[float]:
    """Return the absolute differences (A,); one that is infinite where the lengths differ, NaN counts as infinite."""
    if len(expected) != len(found) or not expected:
        return [float("inf")]
    gaps = [abs(e - f) for e, f in zip(expected, found, strict=True)]
    return [gap if gap == gap else float("inf") for gap in gaps]
