"""The environments of one worker: who gets which, when their host is replaced, and what becomes of who plays in it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import pytest

from environments.environment import Environment
from environments.kinds import EnvironmentHost
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from rollout_workers.slots import Slot, Slots

CRASHED = Failure(codes.BROWSER_CRASHED)
UNREACHABLE = Failure(codes.SITE_UNREACHABLE)


class Env:
    def __init__(self, host: Host) -> None:
        self.host, self.closed = host, 0

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.host.closed_before_environment |= self.host.closed > 0
        self.closed += 1


class Host:
    def __init__(self, *, starts: bool = True) -> None:
        self.starts, self.lives, self.closed = starts, True, 0
        self.closed_before_environment = False

    async def start(self) -> None:
        await asyncio.sleep(0)
        if not self.starts:
            raise EpisodeFailed(Failure(codes.BROWSER_LAUNCH_FAILED))

    async def environment(self) -> Environment:
        await asyncio.sleep(0)
        return cast(Environment, Env(self))

    def alive(self) -> bool:
        return self.lives

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1
        self.lives = False


class Hosts:
    """Makes hosts, and keeps them."""

    def __init__(self, starts: list[bool] | None = None) -> None:
        self.made: list[Host] = []
        self.starts = starts or []

    async def __call__(self) -> EnvironmentHost:
        self.made.append(Host(starts=self.starts.pop(0) if self.starts else True))
        return self.made[-1]


def slots_over(hosts: Hosts, count: int = 2) -> Slots:
    return Slots(hosts, count, close_deadline_s=5.0)


async def fail(slots: Slots, failure: Failure, times: int) -> None:
    for _ in range(times):
        async with slots.borrow() as (slot, _env):
            slot.note(failure)


def host_of(env: Environment) -> Host:
    return cast(Any, env).host


async def begin(slots: Slots) -> tuple[AbstractAsyncContextManager[tuple[Slot, Environment]], Slot, Environment]:
    playing = slots.borrow()
    slot, env = await playing.__aenter__()
    return playing, slot, env


async def test_an_environment_serves_one_episode_after_the_other_until_one_fails() -> None:
    hosts = Hosts()
    slots = slots_over(hosts, count=1)
    async with slots.borrow() as (_, first):
        pass
    async with slots.borrow() as (slot, again):
        slot.note(UNREACHABLE)
    async with slots.borrow() as (_, other):
        pass
    assert again is first
    assert other is not first
    assert cast(Any, first).closed == 1
    await slots.close()
    assert [host.closed for host in hosts.made] == [1]


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_a_host_in_which_only_failures_happen_is_replaced_once(count: int) -> None:
    hosts = Hosts()
    slots = slots_over(hosts, count)
    enough = max(3, count)
    await fail(slots, UNREACHABLE, enough - 1)
    async with slots.borrow():
        pass  # one that ends well: counted anew
    await fail(slots, UNREACHABLE, enough)
    assert len(hosts.made) == 1
    async with slots.borrow() as (_, env):
        assert host_of(env) is hosts.made[1]
    assert [host.closed for host in hosts.made] == [1, 0]
    await slots.close()


async def test_who_plays_in_a_host_that_is_replaced_ends_what_it_plays() -> None:
    hosts = Hosts()
    slots = slots_over(hosts, count=3)
    first, _, env = await begin(slots)
    second, slot, _ = await begin(slots)
    await fail(slots, UNREACHABLE, 3)
    async with slots.borrow() as (_, other):
        assert host_of(other) is hosts.made[1]
    assert [host.closed for host in hosts.made] == [0, 0], "two episodes are still played in it"
    slot.note(UNREACHABLE)  # of the host that is gone already: nothing against the new one
    await second.__aexit__(None, None, None)
    assert hosts.made[0].closed == 0
    await first.__aexit__(None, None, None)
    assert [host.closed for host in hosts.made] == [1, 0]
    assert cast(Any, env).closed == 1
    assert not hosts.made[0].closed_before_environment
    for _ in range(3):
        async with slots.borrow() as (_, env):
            assert host_of(env) is hosts.made[1]
    await slots.close()
    assert [host.closed for host in hosts.made] == [1, 1]


async def test_a_dead_host_is_closed_at_once_whoever_was_in_it() -> None:
    hosts = Hosts()
    slots = slots_over(hosts)
    playing, slot, _ = await begin(slots)
    hosts.made[0].lives = False
    async with slots.borrow() as (_, env):
        assert host_of(env) is hosts.made[1]
    assert hosts.made[0].closed == 1
    slot.note(CRASHED)
    await playing.__aexit__(None, None, None)
    assert [host.closed for host in hosts.made] == [1, 0]
    await slots.close()


async def test_all_that_begin_together_get_the_same_new_host() -> None:
    hosts = Hosts()
    slots = slots_over(hosts, count=4)
    await slots.start()
    hosts.made[0].lives = False
    begun = await asyncio.gather(*(begin(slots) for _ in range(4)))
    assert {host_of(env) for _, _, env in begun} == {hosts.made[1]}
    for playing, _, _ in begun:
        await playing.__aexit__(None, None, None)
    await slots.close()


async def test_a_host_that_does_not_start_is_closed_and_the_next_episode_tries_another() -> None:
    hosts = Hosts(starts=[True, False, True])
    slots = slots_over(hosts)
    await slots.start()
    hosts.made[0].lives = False
    with pytest.raises(EpisodeFailed, match="browser_launch_failed"):
        async with slots.borrow():
            pass
    assert hosts.made[1].closed == 1
    async with slots.borrow() as (_, env):
        assert host_of(env) is hosts.made[2]
    await slots.close()
    assert [host.closed for host in hosts.made] == [1, 1, 1]


async def test_the_end_closes_hosts_in_which_episodes_are_still_played() -> None:
    hosts = Hosts()
    slots = slots_over(hosts, count=3)
    playing, _, _ = await begin(slots)
    await fail(slots, UNREACHABLE, 3)
    async with slots.borrow():
        pass
    await slots.close()
    assert [host.closed for host in hosts.made] == [1, 1]
    await playing.__aexit__(None, None, None)
    assert [host.closed for host in hosts.made] == [1, 1]
