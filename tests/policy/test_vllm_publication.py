"""Publication to a real vLLM: what is right is accepted, and each known way of being silently wrong is refused."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from learner.models import WholeModels
from learner.settings import LearnerSettings
from policy.client import Completion, Sampling, WrongVersion
from policy.engine import GenerationEngine
from policy.models import load_causal_lm, save_policy
from policy.presets import build_tiny
from policy.publication import Probe, ProbeLimits, Publication, publish
from policy.published_weights import PublishedWeights, put_in_store
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from policy.vllm.api import VllmApi
from policy.vllm.backend import VllmSettings
from policy.vllm.process import VllmProcess
from policy.vllm.service import FoundServer
from policy.weights import own_tensors, put_weights, read_weights, write_weights
from tests.model_families import EXPERTS, save
from tests.policy.vllm_python import VLLM_PYTHON, needs_vllm
from tests.records.stores.s3_server import s3_server

pytestmark = [pytest.mark.slow, needs_vllm]

SHAPE = TinyShape(width=64, layers=2, heads=2, key_value_heads=2, mlp_width=64, context_tokens=512)
TOKEN = "a-token-of-this-test"
LIMIT_S = 300.0
TOLERANCE = 1e-3
LIMITS = ProbeLimits(largest=TOLERANCE, mean=1e-4)
PROMPT, ACTION = tuple(range(20, 320)), (33, 34, 35)
"""The prompt is longer than two blocks of vLLM's prefix cache on a CPU (128 tokens)."""


@dataclass(frozen=True)
class Served:
    """A running server, the tokenizer of its model, and a folder for weights."""

    url: str
    tokenizer: TextTokenizer
    model: Path
    folder: Path

    def weights(self, version: int, *, shape: TinyShape = SHAPE) -> PublishedWeights:
        """Weights as a learner would publish them; each version's differ."""
        state = build_tiny(shape, self.tokenizer, seed=version).state_dict()
        return write_weights(state, self.folder / f"{version}.safetensors", version)

    def probe(self, weights: PublishedWeights) -> Probe:
        """The learner's log-probabilities under ``weights``."""
        model = load_causal_lm(self.model)
        put_weights(model, read_weights(weights))
        scores = GenerationEngine(model, self.tokenizer.stop_ids).score(PROMPT, ACTION)
        return Probe(PROMPT, ACTION, tuple(scores))

    async def publish(self, weights: PublishedWeights, server: FoundServer | None = None) -> Publication:
        server = server or FoundServer(self.url, TOKEN, 10.0)
        return await publish([server], weights, [self.probe(weights)], limits=LIMITS, timeout_s=LIMIT_S)

    async def publish_reason(self, weights: PublishedWeights) -> str:
        """Why ``weights`` are refused; whoever refuses them does it before the probe."""
        probe, server = Probe(PROMPT, ACTION, (0.0, 0.0, 0.0)), FoundServer(self.url, TOKEN, 10.0)
        publication = await publish([server], weights, [probe], limits=LIMITS, timeout_s=LIMIT_S)
        return publication.quarantined[self.url]

    async def complete(self, version: int | None, prompt: Sequence[int] = PROMPT, tokens: int = 4) -> Completion:
        async with VllmApi(self.url, TOKEN) as api, asyncio.timeout(LIMIT_S):
            sampling = Sampling(temperature=0, max_new_tokens=tokens, version=version)
            return await api.complete(prompt, sampling, stop_ids=self.tokenizer.stop_ids, seeds=False)

    async def ask(self, path: str, body: dict[str, object]) -> None:
        async with VllmApi(self.url, TOKEN) as api, asyncio.timeout(LIMIT_S):
            await api._send("POST", path, json=body)


class WrongServer(FoundServer):
    """A server that takes weights wrongly (``how``), or not at all (None), and then claims to serve them."""

    def __init__(self, served: Served, how: str | None) -> None:
        super().__init__(served.url, TOKEN, 10.0)
        self._served, self._how = served, how

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        if self._how is not None:
            call: dict[str, object] = {"method": "control_take_weights", "args": [weights.path, self._how]}
            await self._served.ask("/collective_rpc", call)
        await self._served.ask("/update_weight_version", {"new_version": f"{weights.version}-{weights.checksum}"})
        await self._served.ask("/reset_prefix_cache", {})
        return replace(weights, path="")


@pytest.fixture(scope="module")
def served(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("vllm")
    model = save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, folder / "policy")
    with running(model, tokenizer, folder) as found:
        yield found


@contextmanager
def running(model: Path, tokenizer: TextTokenizer, folder: Path, workers: int = 1) -> Iterator[Served]:
    """A vLLM of so many workers that serves the policy folder ``model`` and can also take weights wrongly."""
    controls = Path(__file__).parent / "vllm_controls"
    python = folder / "python"  # vLLM finds the worker of these tests by this script's path
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH":{shlex.quote(str(controls))} exec {shlex.quote(VLLM_PYTHON)} "$@"\n'
    )
    python.chmod(0o755)
    args = ("--enforce-eager", "--worker-extension-cls", "control_worker.ControlExtension")
    options = VllmSettings(args=args, gpus=workers)  # what is installed here is for CPUs, and has workers all the same
    settings = PolicySettings(backend="vllm", options=options, max_prompt_tokens=400, max_new_tokens=32)
    process = VllmProcess(
        settings, options, str(model), python=str(python), host="127.0.0.1", token=TOKEN, log_file=folder / "log"
    )

    async def is_up() -> bool:
        async with VllmApi(process.url, TOKEN) as api:
            return await api.is_up()

    try:
        process.wait(lambda: asyncio.run(is_up()), LIMIT_S)
        yield Served(process.url, tokenizer, model, folder)
    finally:
        process.kill()


async def test_the_right_weights_are_accepted_and_answer(served: Served) -> None:
    weights = served.weights(1)
    publication = await served.publish(weights)
    assert publication.quarantined == {}
    assert publication.probe_gaps[served.url] < 1e-4
    reply = await served.complete(1)
    model = load_causal_lm(served.model)
    put_weights(model, read_weights(weights))
    expected = GenerationEngine(model, served.tokenizer.stop_ids).score(PROMPT, reply.action_ids)
    assert reply.logprobs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("how", [None, "stale_head", "half"])
async def test_weights_taken_wrongly_are_refused_though_the_server_claims_them(served: Served, how: str | None) -> None:
    before, weights = served.weights(2), served.weights(3)
    assert (await served.publish(before)).accepted
    publication = await served.publish(weights, WrongServer(served, how))
    assert publication.accepted == ()
    assert "nats" in publication.quarantined[served.url]
    assert (await served.publish(weights)).accepted, "the same weights, taken rightly"


@pytest.mark.lengthy
def test_a_model_whose_folder_repeats_its_tied_head_takes_weights_as_any_other(
    tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path
) -> None:
    model = save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, tmp_path / "policy")
    file = model / "model.safetensors"
    tensors = load_file(file)
    assert "lm_head.weight" not in tensors
    save_file({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, file, {"format": "pt"})
    with running(model, tokenizer, tmp_path) as served:
        assert asyncio.run(served.publish(served.weights(1))).accepted
        wrongly = asyncio.run(served.publish(served.weights(2), WrongServer(served, "stale_head")))
        assert "nats" in wrongly.quarantined[served.url]
        assert asyncio.run(served.publish(served.weights(2))).accepted


@pytest.mark.lengthy
def test_a_mixture_of_experts_is_served_as_it_was_trained(tmp_path: Path) -> None:
    folder = save(EXPERTS, tmp_path / "policy")
    models = WholeModels(LearnerSettings(), folder)
    with running(folder, TextTokenizer.load(folder), tmp_path) as served:
        for version in (1, 2):
            with torch.no_grad():
                for tensor in models.actor.model.parameters():
                    tensor.mul_(1.2)
            weights = models.publish(tmp_path / f"{version}.safetensors", version)
            assert asyncio.run(served.publish(weights)).accepted
        unnamed = write_weights(own_tensors(models.actor.model), tmp_path / "unnamed.safetensors", 3)
        assert "unknown ['model.layers.0.mlp.experts.down_proj" in asyncio.run(served.publish_reason(unnamed))


@pytest.mark.lengthy
def test_each_of_two_workers_takes_its_part_of_what_is_published(
    tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path
) -> None:
    model = save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, tmp_path / "policy")
    with running(model, tokenizer, tmp_path, workers=2) as served:
        assert asyncio.run(FoundServer(served.url, TOKEN, 10.0).devices()) == ("cpu", "cpu")
        assert asyncio.run(served.publish(served.weights(1))).accepted
        wrongly = asyncio.run(served.publish(served.weights(2), WrongServer(served, "half")))
        assert "nats" in wrongly.quarantined[served.url]
        assert "expected checksum" in asyncio.run(served.publish_reason(replace(served.weights(3), checksum="0" * 64)))
        assert asyncio.run(served.publish(served.weights(2))).accepted
        assert asyncio.run(served.complete(2)).version == 2


async def test_a_file_that_is_not_what_was_published_leaves_the_old_weights_serving(served: Served) -> None:
    before, weights = served.weights(4), served.weights(5)
    assert (await served.publish(before)).accepted
    torn = replace(weights, checksum="0" * 64)
    assert "expected checksum" in (await served.publish_reason(torn))
    gone = replace(weights, path=str(served.folder / "nowhere"))
    assert "cannot read" in (await served.publish_reason(gone))
    assert (await served.complete(4)).version == 4
    with pytest.raises(WrongVersion, match="expected version 5, version 4 answered"):
        await served.complete(5)


async def test_another_base_model_is_refused(served: Served) -> None:
    before = served.weights(6)
    assert (await served.publish(before)).accepted
    other = served.weights(7, shape=replace(SHAPE, layers=3))
    assert "does not fit the served model: unknown ['model.layers.2" in (await served.publish_reason(other))
    partial = {k: v for k, v in read_weights(served.weights(8)).items() if "layers.1" not in k}
    missing = write_weights(partial, served.folder / "partial.safetensors", 8)
    assert "missing ['model.layers.1" in (await served.publish_reason(missing))
    assert (await served.complete(6)).version == 6


async def test_keys_and_values_of_old_weights_are_not_used(served: Served) -> None:
    before, weights = served.weights(9), served.weights(10)
    assert (await served.publish(before)).accepted
    await served.complete(None)
    await served.complete(9)
    call: dict[str, object] = {"method": "waymark_take_weights", "args": [weights.path, weights.checksum]}
    await served.ask("/collective_rpc", call)  # and nothing is forgotten
    await served.ask("/update_weight_version", {"new_version": f"10-{weights.checksum}"})
    stale, fresh = await served.complete(None), await served.complete(10)
    model = load_causal_lm(served.model)
    put_weights(model, read_weights(weights))
    engine = GenerationEngine(model, served.tokenizer.stop_ids)
    assert fresh.logprobs == pytest.approx(engine.score(PROMPT, fresh.action_ids), abs=1e-4)
    gap = max(abs(a - b) for a, b in zip(stale.logprobs, engine.score(PROMPT, stale.action_ids), strict=True))
    assert gap > TOLERANCE, "without a version the old keys and values answer: the control bites"


async def test_a_reply_in_flight_is_finished_or_broken_off_and_never_of_two_versions(served: Served) -> None:
    """Each reply is scored under the weights that it names: what two versions decided would fit neither."""
    weights = {version: served.weights(version) for version in (11, 12)}
    assert (await served.publish(weights[11])).accepted
    probe, server = served.probe(weights[12]), FoundServer(served.url, TOKEN, 10.0)
    prompts = [[*PROMPT[:40], *range(20, 20 + i)] for i in range(8)]
    asked = [asyncio.create_task(served.complete(None, prompt, 64)) for prompt in prompts]
    await served.complete(None, prompts[0], 1)  # asked last and answered: the others are being answered
    in_flight = [task for task in asked if not task.done()]
    publication = await publish([server], weights[12], [probe], limits=LIMITS, timeout_s=LIMIT_S)
    assert publication.accepted
    replies = await asyncio.gather(*asked)
    assert {reply.version for reply in replies} <= {11, 12}
    assert any(task.result().version == 11 for task in in_flight), "the weights came when nothing was being answered"
    model = load_causal_lm(served.model)
    for version, published in weights.items():
        put_weights(model, read_weights(published))
        engine = GenerationEngine(model, served.tokenizer.stop_ids)
        for prompt, reply in zip(prompts, replies, strict=True):
            if reply.version == version:
                expected = engine.score(prompt, reply.action_ids)
                assert reply.logprobs == pytest.approx(expected, abs=TOLERANCE)


async def test_weights_in_a_store_are_fetched_by_a_server_that_knows_neither_the_path_nor_the_store(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)  # here, not in the server's process
        weights = served.weights(13)
        hidden = Path(weights.path).rename(served.folder / "hidden")
        assert "cannot read" in (await served.publish_reason(weights))
        hidden.rename(weights.path)
        stored = put_in_store(weights, "s3://waymark-tests/vllm")
        probe, server = served.probe(weights), FoundServer(served.url, TOKEN, 10.0)
        Path(weights.path).rename(hidden)
        publication = await publish([server], stored, [probe], limits=LIMITS, timeout_s=LIMIT_S)
        assert publication.quarantined == {}
        assert (await served.complete(13)).version == 13
        wrong = replace(stored, checksum="1" * 64, version=14)
        publication = await publish([server], wrong, [probe], limits=LIMITS, timeout_s=LIMIT_S)
        assert "cannot fetch" in publication.quarantined[served.url], "there is no object of this name and content"
        assert (await served.complete(13)).version == 13


async def test_nobody_without_the_token_is_heard(served: Served) -> None:
    async with VllmApi(served.url, "another") as api:
        assert await api.is_up()
        for path in ("/pause", "/collective_rpc", "/inference/v1/generate", "/weight_info"):
            with pytest.raises(Exception, match="status 401"):
                await api._send("POST", path, json={})
