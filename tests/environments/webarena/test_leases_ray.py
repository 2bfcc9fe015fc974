"""The lease desk as a Ray actor: two workers, one of which is killed in the middle of a changing episode."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from environments.webarena.leases.ray_desk import named_desk, start_desk
from environments.webarena.leases.remote import RemoteLeases
from environments.webarena.leases.units import Mode, SiteLease
from environments.webarena.settings import DeploymentSettings, ResetSettings, WebArenaSettings
from records.failures import EpisodeFailed
from tests.rollout_workers.ray_cluster import small_ray

pytestmark = [pytest.mark.faults, pytest.mark.slow]

SILENCE_S = 6.0
WRITE = {"shopping": Mode.WRITE}


class Worker:
    """A worker that takes a site to change it, and goes on for ever."""

    async def take(self, desk: str) -> bool:
        self.leases = named_desk(desk, SILENCE_S)
        self.lease = await self.leases.acquire(WRITE, 30)
        return self.leases.holds(self.lease)


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    with small_ray(num_cpus=1):
        yield


def settings(log: Path) -> WebArenaSettings:
    program = f"import os; open({str(log)!r}, 'a').write(os.environ['WAYMARK_DEPLOYMENT'] + ' ')"
    reset = ResetSettings(kind="command", command=(sys.executable, "-c", program), timeout_s=60)
    blue = DeploymentSettings("blue", {"shopping": "http://shop.test"}, reset=reset)
    return WebArenaSettings(deployments=(blue,), fresh_at_start=True, lease_silence_s=SILENCE_S)


async def acquired(leases: RemoteLeases, seconds: float) -> SiteLease:
    """Ask again while the desk is out of reach, as episodes that are tried again do."""
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(EpisodeFailed):
                return await leases.acquire(WRITE, seconds)
            await asyncio.sleep(0.1)


def test_the_sites_of_a_killed_worker_are_reset_and_then_given_to_the_next(tmp_path: Path) -> None:
    desk = start_desk(settings(tmp_path / "log"), "desk-1")
    worker = ray.remote(Worker).options(num_cpus=0).remote()
    assert ray.get(worker.take.remote("desk-1"), timeout=240)
    ray.kill(worker)

    async def next_one() -> None:
        leases = named_desk("desk-1", SILENCE_S)
        lease = await leases.acquire(WRITE, 60)
        assert leases.holds(lease)
        assert lease.units == {"shopping": "blue"}
        assert (tmp_path / "log").read_text() == "blue "
        leases.release(lease)
        await leases.close()

    asyncio.run(next_one())
    ray.kill(desk)


def test_a_desk_that_was_restarted_takes_the_sites_for_changed_and_one_that_is_gone_is_a_failure(
    tmp_path: Path,
) -> None:
    desk = start_desk(settings(tmp_path / "log"), "desk-2")

    async def play() -> None:
        leases = named_desk("desk-2", SILENCE_S)
        before = await leases.acquire(WRITE, 60)
        assert not (tmp_path / "log").exists()
        ray.kill(desk, no_restart=False)
        while leases.holds(before):
            await asyncio.sleep(0.05)
        after = await acquired(leases, 60)
        assert (tmp_path / "log").read_text() == "blue ", "whoever held the sites may have changed them"
        assert after.epochs != before.epochs
        leases.release(after)
        ray.kill(desk)
        await leases.close()
        with pytest.raises(EpisodeFailed, match="infra/leases_unreachable"):
            named_desk("desk-2", SILENCE_S)

    async def in_time() -> None:
        async with asyncio.timeout(120):
            await play()

    asyncio.run(in_time())
