"""The server and its clients on a real Ray."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import ActorDiedError
from transformers import PreTrainedModel

from policy.client import Sampling
from policy.engine import GenerationEngine
from policy.engine_loop import EngineLoop
from policy.models import load_causal_lm
from policy.publication import Probe, ProbeLimits, publish
from policy.published_weights import write_published
from policy.ray_client import RayWeightServer, actor_client
from policy.server import start_server
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from policy.torch_backend import TorchSettings
from policy.weights import write_weights
from records.failures import EpisodeFailed, FailureKind
from tests.rollout_workers.ray_cluster import small_ray

SETTINGS = PolicySettings(attempt_timeout_s=30, deadline_s=240)
OPTIONS = TorchSettings(max_batch=4, restarts=3, cpus=0)
GREEDY = Sampling(temperature=0, max_new_tokens=8)
PROMPT = [30, 31, 32]
IMPORTS = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    """A local Ray with no more than the tests need."""
    with small_ray():
        yield


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names the published weights; absent until a test writes it."""
    return tmp_path_factory.mktemp("published") / "manifest.json"


@pytest.fixture(scope="module")
def server(policy_dir: Path, published: Path) -> Iterator[Any]:
    """One server for all tests; the last test takes it down."""
    handle = start_server(SETTINGS, OPTIONS, policy_dir, published_file=published, environment=IMPORTS)
    ray.get(handle.ping.remote(), timeout=240)
    yield handle
    ray.kill(handle)


def probe(model: PreTrainedModel, stop_ids: tuple[int, ...]) -> Probe:
    loop = EngineLoop(GenerationEngine(model, stop_ids))
    try:
        action = loop.complete(PROMPT, GREEDY).result(20).action_ids
        return Probe(tuple(PROMPT), action, tuple(loop.score(PROMPT, action).result(20)))
    finally:
        loop.close()


def _break_the_model(server: Any) -> None:
    server._loop._engine.model.lm_head = None


async def test_weights_are_published_proven_and_survive_a_kill(
    server: Any, policy_dir: Path, other_tiny: PreTrainedModel, tokenizer: TextTokenizer, published: Path
) -> None:
    client = actor_client({"a": server}, SETTINGS)
    old = probe(load_causal_lm(policy_dir), tokenizer.stop_ids)
    first = await client.complete(PROMPT, GREEDY, episode="s")
    assert (first.version, first.action_ids) == (0, old.action_ids)

    new = probe(other_tiny, tokenizer.stop_ids)
    weights = write_weights(other_tiny.state_dict(), published.with_name("w"), 1)
    endpoint = RayWeightServer("a", server, timeout_s=120)
    publication = await publish([endpoint], weights, [new], limits=ProbeLimits(1e-4, 1e-4), timeout_s=120)
    assert publication.accepted == ("a",)
    assert publication.probe_gaps["a"] < 1e-5
    write_published(weights, published)

    torn = await publish(
        [endpoint], replace(weights, version=2, checksum="0" * 64), [new], limits=ProbeLimits(1, 1), timeout_s=120
    )
    assert "expected checksum" in torn.quarantined["a"]
    stale = await publish([endpoint], weights, [old], limits=ProbeLimits(1e-4, 1e-4), timeout_s=120)
    assert "nats" in stale.quarantined["a"]

    pid = await server.apply.remote(lambda _: os.getpid())
    in_flight = [asyncio.create_task(client.complete(PROMPT, GREEDY, episode=str(i))) for i in range(8)]
    os.kill(pid, signal.SIGKILL)
    for reply in await asyncio.gather(*in_flight):
        assert (reply.version, reply.action_ids) == (1, new.action_ids)
    assert await server.apply.remote(lambda _: os.getpid()) != pid
    stats = await server.stats.remote()
    assert (stats["version"], stats["checksum"]) == (1, weights.checksum)


async def test_a_server_asked_for_published_weights_takes_them_and_refuses_to_answer_with_others(
    server: Any, other_tiny: PreTrainedModel, published: Path
) -> None:
    client = actor_client({"a": server}, SETTINGS)
    served = int((await server.stats.remote())["version"])
    write_published(write_weights(other_tiny.state_dict(), published.with_name("w"), served + 1), published)
    wanted = replace(GREEDY, version=served + 1)
    replies = await asyncio.gather(*(client.complete(PROMPT, wanted, episode=str(i)) for i in range(6)))
    assert {reply.version for reply in replies} == {served + 1}
    with pytest.raises(EpisodeFailed, match=rf"expected version {served + 7}, found {served + 1} served") as caught:
        await client.complete(PROMPT, replace(GREEDY, version=served + 7), episode="s")
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.POLICY, "wrong_version")


async def test_a_server_whose_engine_failed_is_started_afresh(server: Any) -> None:
    client = actor_client({"a": server}, SETTINGS)
    pid = await server.apply.remote(lambda _: os.getpid())
    await server.apply.remote(_break_the_model)
    assert (await client.complete(PROMPT, GREEDY, episode="s")).finish_reason in ("stop", "length")
    assert await server.apply.remote(lambda _: os.getpid()) != pid


async def test_a_refused_request_is_the_policys_failure(server: Any) -> None:
    client = actor_client({"a": server}, SETTINGS)
    with pytest.raises(EpisodeFailed) as caught:
        await client.complete([30] * 500, GREEDY, episode="s")
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.POLICY, "request_refused")


async def test_a_server_that_does_not_answer_in_time_fails_the_episode_within_the_deadline(server: Any) -> None:
    impatient = replace(SETTINGS, attempt_timeout_s=0.0001, deadline_s=1.0)
    client = actor_client({"a": server}, impatient)
    async with asyncio.timeout(60):
        with pytest.raises(EpisodeFailed, match="did not answer") as caught:
            await client.complete(PROMPT, GREEDY, episode="s")
    assert caught.value.failure.code.name == "deadline"
    assert (await actor_client({"a": server}, SETTINGS).complete(PROMPT, GREEDY, episode="s")).action_ids


async def lost(server: Any) -> None:
    """Kill a server, and wait until it is dead: on a busy machine it may answer some time longer."""
    ray.kill(server)
    with suppress(ActorDiedError):
        async with asyncio.timeout(60):
            while True:
                await server.stats.remote()


async def test_the_episodes_of_a_lost_server_move_and_the_others_stay(server: Any, policy_dir: Path) -> None:
    second = start_server(SETTINGS, OPTIONS, policy_dir, environment=IMPORTS)
    client = actor_client({"a": server, "b": second}, SETTINGS)
    episodes = [f"episode {i}" for i in range(20)]
    await asyncio.gather(*(client.complete(PROMPT, GREEDY, episode=s) for s in episodes))
    before = await server.stats.remote(), await second.stats.remote()
    assert all(int(stats["completed"]) >= 3 for stats in before)
    await lost(second)
    replies = await asyncio.gather(*(client.complete(PROMPT, GREEDY, episode=s) for s in episodes))
    assert len(replies) == 20
    assert (await server.stats.remote())["completed"] == before[0]["completed"] + 20
    await lost(server)
    with pytest.raises(EpisodeFailed) as caught:
        await client.complete(PROMPT, GREEDY, episode="s")
    assert caught.value.failure.code.name == "servers_lost"
