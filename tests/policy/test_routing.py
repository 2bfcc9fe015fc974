"""Which server a client asks, over servers that answer as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from policy.client import Completion, Sampling, ServerUnreachable, StartFailed
from policy.routing import RoutedClient
from policy.settings import PolicySettings
from records.failures import EpisodeFailed

SETTINGS = PolicySettings(attempt_timeout_s=5.0, deadline_s=30.0)
EPISODES = [f"episode {i}" for i in range(12)]


@dataclass
class Told:
    """A server that raises ``fault`` as long as it has one."""

    fault: ServerUnreachable | None = None
    asked: int = 0

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, timeout_s: float) -> Completion:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return Completion((1,), (-1.0,), 0, "stop")


async def ask(client: RoutedClient) -> None:
    await asyncio.gather(*(client.complete([1], Sampling(), episode=episode) for episode in EPISODES))


async def test_the_episodes_of_a_server_that_is_away_are_answered_by_others_and_come_back_to_it() -> None:
    away, other = Told(), Told()
    client = RoutedClient({"a": away, "b": other}, SETTINGS)
    await ask(client)
    own, others = away.asked, other.asked
    assert min(own, others) > 0
    away.fault = StartFailed("the disk is slow")
    await ask(client)
    assert (away.asked, other.asked) == (2 * own, others + len(EPISODES))
    away.fault = None
    await ask(client)
    assert (away.asked, other.asked) == (3 * own, 2 * others + len(EPISODES))


async def test_servers_that_are_all_away_are_asked_in_turn_and_the_failure_names_why() -> None:
    servers = {name: Told(StartFailed(f"{name} could not start: the disk is slow")) for name in "abc"}
    client = RoutedClient(servers, PolicySettings(attempt_timeout_s=1.0, deadline_s=2.0))
    with pytest.raises(EpisodeFailed, match="could not start: the disk is slow") as failed:
        await client.complete([1], Sampling(), episode="e")
    assert failed.value.failure.code.name == "deadline"
    assert all(server.asked for server in servers.values())
