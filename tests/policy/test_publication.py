"""A publication accepts the servers that prove themselves and quarantines the others."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from policy.client import RequestRefused, ServerUnreachable
from policy.publication import (
    Probe,
    ProbeLimits,
    Publication,
    probe_gaps,
    probe_limits,
    publish,
)
from policy.published_weights import PublishedWeights, WeightsRejected
from policy.settings import PolicySettings

MANIFEST = PublishedWeights(3, "c" * 64, "/weights")
LIMITS = ProbeLimits(largest=1e-3, mean=5e-4)
PROBE = Probe((1, 2), (3, 4), (-0.5, -1.5))


@dataclass
class Server:
    """A server that behaves as told."""

    name: str
    serves: PublishedWeights = MANIFEST
    logprobs: tuple[float, ...] = (-0.5, -1.5004)
    error: Exception | None = None
    delay_s: float = 0.0

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        await asyncio.sleep(self.delay_s)
        if self.error:
            raise self.error
        return self.serves

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        return list(self.logprobs)


async def publication_on(*servers: Server) -> Publication:
    return await publish(servers, MANIFEST, [PROBE], limits=LIMITS, timeout_s=1.0)


async def test_a_server_that_agrees_is_accepted() -> None:
    publication = await publication_on(Server("a"), Server("b"))
    assert publication.accepted == ("a", "b")
    assert publication.quarantined == {}
    assert publication.probe_gaps["a"] == pytest.approx(0.0004)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Server("bad", serves=replace(MANIFEST, version=2)), "expected version 3 .* it serves 2"),
        (Server("bad", serves=replace(MANIFEST, checksum="d" * 64)), "it serves 3 .dddd"),
        (Server("bad", logprobs=(-0.5, -1.6)), "off by 1.00e-01"),
        (Server("bad", logprobs=(-0.5, math.nan)), "off by inf"),
        (Server("bad", logprobs=(-0.5,)), "off by inf"),
        (Server("bad", error=WeightsRejected("torn file")), "torn file"),
        (Server("bad", error=ServerUnreachable("gone")), "gone"),
        (Server("bad", error=RequestRefused("the probe exceeds the context")), "exceeds the context"),
        (Server("bad", delay_s=60), "no answer within 1 s"),
    ],
)
async def test_a_server_that_misses_is_quarantined_with_the_reason(fault: Server, reason: str) -> None:
    publication = await publication_on(Server("good"), fault)
    assert publication.accepted == ("good",)
    assert list(publication.quarantined) == ["bad"]
    assert re.search(reason, publication.quarantined["bad"])
    assert publication.seconds < 60


async def test_a_small_difference_everywhere_is_refused_by_the_mean() -> None:
    limits = ProbeLimits(largest=0.25, mean=0.05)
    many = Probe((1, 2), tuple(range(100)), (-1.0,) * 100)
    for off, count, accepted in ((0.2, 10, True), (0.2, 100, False), (0.3, 1, False)):
        answers = (-1.0 - off,) * count + (-1.0,) * (100 - count)
        publication = await publish([Server("a", logprobs=answers)], MANIFEST, [many], limits=limits, timeout_s=1.0)
        assert bool(publication.accepted) is accepted, (off, count)


async def test_every_probe_counts() -> None:
    other = Probe((1,), (3, 4), (-0.5, -9.0))
    publication = await publish([Server("a")], MANIFEST, [PROBE, other], limits=LIMITS, timeout_s=1.0)
    assert publication.accepted == ()
    assert publication.probe_gaps["a"] == pytest.approx(9.0 - 1.5004)


def test_the_limits_are_those_of_the_precision_unless_they_are_set() -> None:
    assert probe_limits(PolicySettings()) == ProbeLimits(1e-3, 1e-4)
    assert probe_limits(PolicySettings(dtype="bfloat16")) == ProbeLimits(0.25, 0.05)
    assert probe_limits(PolicySettings(), "bfloat16") == ProbeLimits(0.25, 0.05), "the probes may be the coarser"
    assert probe_limits(PolicySettings(dtype="bfloat16", probe_tolerance=0.5)) == ProbeLimits(0.5, 0.05)


def test_the_gaps_are_those_of_each_token() -> None:
    assert probe_gaps([-1.0, -2.0], [-1.5, -1.9]) == pytest.approx([0.5, 0.1])
    assert probe_gaps([], []) == [math.inf]
