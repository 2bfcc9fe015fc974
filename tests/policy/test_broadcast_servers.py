"""Servers of torch and real vLLMs take broadcast weights under the same proof as files, also those that were away."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import ray

from policy.backend import Serving, backend_of
from policy.client import Sampling, ServerUnreachable
from policy.data_planes import Broadcast
from policy.engine import GenerationEngine
from policy.models import load_causal_lm, save_policy
from policy.presets import build_tiny
from policy.publication import Probe, ProbeLimits, Publication, WeightServer, publish
from policy.published_weights import PublishedWeights, write_published
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from policy.vllm import process
from policy.vllm.api import VllmApi
from policy.vllm.backend import VllmSettings
from policy.vllm.process import VllmProcess
from policy.vllm.service import found_servers
from policy.weights import put_weights, read_weights, write_weights
from tests.policy.conftest import TINY
from tests.policy.sending import broadcast_plane
from tests.policy.vllm_python import VLLM_PYTHON, needs_vllm
from tests.rollout_workers.ray_cluster import small_ray

pytestmark = pytest.mark.slow

SHAPE = TinyShape(width=64, layers=2, heads=2, key_value_heads=2, mlp_width=64, context_tokens=512)
"""vLLM's attention on a CPU has heads of 32 at least."""
PROMPT, ACTION = tuple(range(20, 220)), (33, 34, 35)
LIMITS = ProbeLimits(largest=1e-3, mean=1e-4)
WAIT_S = 240.0
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    with small_ray():
        yield


class Publisher:
    """Publishes weights of ``model`` by broadcast, each version's drawn anew, with the learner's own probe."""

    def __init__(self, plane: Broadcast, shape: TinyShape, tokenizer: TextTokenizer, model: Path, folder: Path) -> None:
        self.plane, self._shape, self._tokenizer, self._model, self._folder = plane, shape, tokenizer, model, folder
        self.published = folder / "current.json"

    def weights(self, version: int, shape: TinyShape | None = None) -> PublishedWeights:
        state = build_tiny(shape or self._shape, self._tokenizer, seed=version).state_dict()
        return write_weights(state, self._folder / f"{version}.safetensors", version)

    def probe(self, weights: PublishedWeights) -> Probe:
        model = load_causal_lm(self._model)
        put_weights(model, read_weights(weights))
        scores = GenerationEngine(model, self._tokenizer.stop_ids).score(PROMPT, ACTION)
        return Probe(PROMPT, ACTION, tuple(scores))

    async def publish(
        self, servers: Sequence[WeightServer], weights: PublishedWeights, proven: PublishedWeights | None = None
    ) -> Publication:
        write_published(weights, self.published)
        probe = self.probe(proven or weights)
        return await publish(servers, weights, [probe], limits=LIMITS, timeout_s=WAIT_S, plane=self.plane)


class Deaf:
    """A server that claims weights which it did not load; it comes to the broadcast all the same."""

    def __init__(self, server: WeightServer) -> None:
        self.name, self._server = server.name, server

    async def devices(self) -> Sequence[str]:
        return await self._server.devices()

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        try:
            await self._server.load_weights(replace(weights, checksum="0" * 64))
        except ValueError:
            return replace(weights, path="")
        raise AssertionError("it took weights of another checksum")

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        return await self._server.score(prompt_ids, action_ids)


async def test_two_servers_of_torch_take_a_broadcast_and_the_one_that_was_killed_takes_the_next(
    tokenizer: TextTokenizer, policy_dir: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"servers": 2, "cpus": 0, "max_batch": 4}
    settings = PolicySettings(options=options, publication="broadcast", attempt_timeout_s=30, deadline_s=WAIT_S)
    backend, read = backend_of(settings)
    publisher = Publisher(broadcast_plane(), TINY, tokenizer, policy_dir, tmp_path)
    run = f"broadcast-{time.monotonic_ns()}"
    serving = Serving(settings, str(policy_dir), publisher.published, run, tmp_path, plane=publisher.plane)
    with backend.serve(serving, read) as service:
        one, two = service.weight_servers()
        first = await publisher.publish([one, two], publisher.weights(1))
        assert (first.quarantined, first.accepted) == ({}, (one.name, two.name))
        deaf = await publisher.publish([one, Deaf(two)], publisher.weights(2))
        assert deaf.accepted == (one.name,)
        assert "nats" in deaf.quarantined[two.name], "the probe finds old weights under a new name"
        wrong = await publisher.publish([one, two], publisher.weights(3), proven=publisher.weights(1))
        assert ["nats" in why for why in wrong.quarantined.values()] == [True, True]
        other = await publisher.publish(
            [one], publisher.weights(4, replace(TINY, layers=TINY.layers + 1)), wrong.weights
        )
        assert "do not fit the model" in other.quarantined[one.name]
        handle = ray.get_actor(dict(service.source.options["servers"])[one.name])
        write_published(publisher.weights(1), publisher.published)
        os.kill(ray.get(handle.apply.remote(_process_id), timeout=WAIT_S), signal.SIGKILL)
        without = await publisher.publish([one, two], publisher.weights(5))
        assert two.name in without.accepted, "the one that lives is not kept waiting"
        await _answers(one)
        after = await publisher.publish([one, two], publisher.weights(6))
        assert after.quarantined == {}
        assert max(after.probe_gaps.values()) < 1e-4


async def _answers(server: WeightServer) -> None:
    """Wait until a server that was killed is there again."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                await server.devices()
                return
            except ServerUnreachable:
                await asyncio.sleep(0.5)


def _process_id(server: Any) -> int:
    return os.getpid()


class Machine:
    """A machine with a real vLLM on it, which is started by others."""

    def __init__(self, model: Path, folder: Path) -> None:
        options = VllmSettings(args=("--enforce-eager",))
        self._settings = PolicySettings(backend="vllm", options=options, max_prompt_tokens=400, max_new_tokens=32)
        self._options, self._model, self._folder = options, model, folder
        self.process = self._start()

    def _start(self) -> VllmProcess:
        return VllmProcess(
            self._settings, self._options, str(self._model), python=VLLM_PYTHON, host="127.0.0.1", token=TOKEN,
            log_file=self._folder / "log",
        )  # fmt: skip

    def wait(self) -> None:
        self.process.wait(lambda: asyncio.run(self._is_up()), WAIT_S)

    async def _is_up(self) -> bool:
        async with VllmApi(self.process.url, TOKEN) as api:
            return await api.is_up()

    def kill(self) -> None:
        self.process.kill()

    def start_again(self) -> None:
        """Start it at the same address, as whoever runs the servers would."""
        port = int(self.process.url.rpartition(":")[2])
        with patch.object(process, "_free_port", lambda host: port):
            self.process = self._start()
        self.wait()


@pytest.fixture(scope="module")
def model(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, tmp_path_factory.mktemp("model") / "policy")


@needs_vllm
@pytest.mark.lengthy
async def test_found_vllms_take_broadcasts_without_reading_a_path_and_one_started_again_is_brought_up_to_date(
    tokenizer: TextTokenizer, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_VLLM_TOKEN", TOKEN)
    publisher = Publisher(broadcast_plane(), SHAPE, tokenizer, model, tmp_path)
    machines = [Machine(model, tmp_path / name) for name in ("one", "two")]
    with ExitStack() as ending:
        for machine in machines:
            ending.callback(machine.kill)
        for machine in machines:
            await asyncio.to_thread(machine.wait)
        options = VllmSettings(urls=tuple(machine.process.url for machine in machines))
        settings = PolicySettings(
            backend="vllm", options=options, publication="broadcast", publish_timeout_s=WAIT_S, max_prompt_tokens=400
        )
        serving = Serving(settings, str(model), publisher.published, "run", tmp_path, plane=publisher.plane)
        servers = found_servers(serving, options)
        service = servers.__enter__()
        try:
            one, two = service.weight_servers()
            first = await publisher.publish([one, two], publisher.weights(1))
            assert first.quarantined == {}
            assert max(first.probe_gaps.values()) < 1e-4
            deaf = await publisher.publish([one, Deaf(two)], publisher.weights(2))
            assert deaf.accepted == (one.name,)
            assert "it serves" in deaf.quarantined[two.name] or "nats" in deaf.quarantined[two.name]
            await asyncio.to_thread(machines[0].kill)
            without = await publisher.publish([one, two], publisher.weights(3))
            assert without.accepted == (two.name,)
            assert "does not answer" in without.quarantined[one.name]
            await asyncio.to_thread(machines[0].start_again)
            await _served(one.name, 3)
            again = await publisher.publish([one, two], publisher.weights(4))
            assert again.quarantined == {}
            async with VllmApi(one.name, TOKEN) as api:
                reply = await api.complete(
                    PROMPT, Sampling(temperature=0, max_new_tokens=2, version=4), stop_ids=(), seeds=False
                )
            assert reply.version == 4
        finally:
            await asyncio.to_thread(servers.__exit__, None, None, None)


async def _served(url: str, version: int) -> None:
    """Wait until the server was given what is published, by nobody's publication."""
    async with asyncio.timeout(WAIT_S), VllmApi(url, TOKEN) as api:
        while True:
            try:
                if (await api.served()).version == version:
                    return
            except ServerUnreachable:
                pass
            await asyncio.sleep(0.5)
