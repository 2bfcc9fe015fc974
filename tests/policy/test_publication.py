"""A publication accepts the servers that prove themselves and quarantines the others."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from policy.publication import Probe, Publication, ServerUnreachable, probe_gap, publish
from policy.published_weights import PublishedWeights, WeightsRejected

MANIFEST = PublishedWeights(3, "c" * 64, "/weights")
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
    return await publish(servers, MANIFEST, PROBE, tolerance=1e-3, timeout_s=1.0)


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
        (Server("bad", delay_s=60), "no answer within 1 s"),
    ],
)
async def test_a_server_that_misses_is_quarantined_with_the_reason(fault: Server, reason: str) -> None:
    publication = await publication_on(Server("good"), fault)
    assert publication.accepted == ("good",)
    assert list(publication.quarantined) == ["bad"]
    assert re.search(reason, publication.quarantined["bad"])
    assert publication.seconds < 60


def test_the_gap_is_the_largest_one() -> None:
    assert probe_gap([-1.0, -2.0], [-1.5, -1.9]) == 0.5
    assert probe_gap([], []) == math.inf
