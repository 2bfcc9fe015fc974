"""Adapters published to a real vLLM: what is right is accepted, what is silently wrong is refused by the proof."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from policy.adapters import Adapter, AdapterShape, linear_modules
from policy.client import Completion, Sampling, WrongVersion
from policy.engine import GenerationEngine
from policy.models import load_causal_lm, save_policy
from policy.presets import build_tiny
from policy.publication import Probe, ProbeLimits, Publication, publish
from policy.published_weights import PublishedWeights
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from policy.vllm.api import VllmApi
from policy.vllm.backend import VllmSettings
from policy.vllm.process import VllmProcess
from policy.vllm.service import FoundServer
from policy.weights import put_weights, read_weights, write_adapter
from tests.policy.vllm_python import VLLM_PYTHON, needs_vllm

pytestmark = [pytest.mark.slow, pytest.mark.lengthy, needs_vllm]

SHAPE = TinyShape(width=64, layers=2, heads=2, key_value_heads=2, mlp_width=64, context_tokens=512)
TOKEN = "a-token-of-this-test"
LIMIT_S = 300.0
LIMITS = ProbeLimits(largest=1e-3, mean=1e-4)
PROMPT, ACTION = tuple(range(20, 320)), (33, 34, 35)
"""The prompt is longer than two blocks of vLLM's prefix cache on a CPU (128 tokens)."""


@dataclass(frozen=True)
class Served:
    """A running server of a base model, and a folder for adapters."""

    url: str
    model: Path
    folder: Path

    @property
    def server(self) -> FoundServer:
        return FoundServer(self.url, TOKEN, 10.0, adapters=True)

    def adapter(self, version: int, *, rank: int = 3, layers: int | None = None) -> Adapter:
        """An adapter that changes what is said by more than the proof allows; each version's differs."""
        model = load_causal_lm(self.model)
        shape = AdapterShape(rank, 2.0 * rank, linear_modules(model, layers, ()))
        draw = torch.Generator().manual_seed(version)
        return Adapter(shape, {n: torch.randn(s, generator=draw) * 0.2 for n, s in shape.sizes(model).items()})

    def publish_file(self, version: int) -> PublishedWeights:
        return write_adapter(self.adapter(version), self.folder / f"{version}.safetensors", version)

    def scores(self, weights: PublishedWeights, action: tuple[int, ...] = ACTION, base: Path | None = None) -> Probe:
        """The learner's log-probabilities of an action with the adapter on the base model, or on another."""
        model = load_causal_lm(base or self.model)
        put_weights(model, read_weights(weights))
        return Probe(PROMPT, action, tuple(GenerationEngine(model, ()).score(PROMPT, action)))

    async def publish(self, weights: PublishedWeights, server: FoundServer | None = None) -> Publication:
        probes = [self.scores(weights)]
        return await publish([server or self.server], weights, probes, limits=LIMITS, timeout_s=LIMIT_S)

    async def complete(self, version: int | None) -> Completion:
        async with VllmApi(self.url, TOKEN, adapters=True) as api, asyncio.timeout(LIMIT_S):
            sampling = Sampling(temperature=0, max_new_tokens=4, version=version)
            return await api.complete(PROMPT, sampling, stop_ids=(), seeds=False)

    async def send(self, path: str, body: dict[str, object]) -> None:
        async with VllmApi(self.url, TOKEN) as api, asyncio.timeout(LIMIT_S):
            await api._send("POST", path, json=body)


class WrongServer(FoundServer):
    """A server that loads the adapter in ``folder`` (none: it keeps the one before) and claims the published one."""

    def __init__(self, served: Served, folder: Path | None, before: int) -> None:
        super().__init__(served.url, TOKEN, 10.0, adapters=True)
        self._served, self._folder, self._before = served, folder, before

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        folder = self._folder
        if folder is None:
            folder = self._served.folder / "before"
            lay_out(self._served.adapter(self._before), folder)
        named = {"lora_name": f"version-{weights.version}", "lora_path": str(folder)}
        await self._served.send("/v1/load_lora_adapter", dict(named))
        await self._served.send("/update_weight_version", {"new_version": f"{weights.version}-{weights.checksum}"})
        await self._served.send("/reset_prefix_cache", {})
        return replace(weights, path="")


def lay_out(adapter: Adapter, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(adapter.shape.to_json())
    save_file(dict(adapter.tensors), folder / "adapter_model.safetensors")


@pytest.fixture(scope="module")
def served(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("vllm")
    model = save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, folder / "policy")
    options = VllmSettings(args=("--enforce-eager",))
    settings = PolicySettings(backend="vllm", options=options, max_prompt_tokens=400, max_new_tokens=32)
    process = VllmProcess(
        settings, options, str(model), python=VLLM_PYTHON, host="127.0.0.1", token=TOKEN, log_file=folder / "log",
        adapter_rank=3,
    )  # fmt: skip

    async def is_up() -> bool:
        async with VllmApi(process.url, TOKEN) as api:
            return await api.is_up()

    try:
        process.wait(lambda: asyncio.run(is_up()), LIMIT_S)
        yield Served(process.url, model, folder)
    finally:
        process.kill()


async def test_an_adapter_is_accepted_and_answers_under_its_version(served: Served) -> None:
    assert (await served.complete(None)).version == -1, "before a publication the base model answers"
    for version in (1, 2):
        weights = served.publish_file(version)
        publication = await served.publish(weights)
        assert publication.quarantined == {}
        assert publication.probe_gaps[served.url] < 1e-4
        reply = await served.complete(version)
        assert reply.version == version
        assert reply.logprobs == pytest.approx(served.scores(weights, reply.action_ids).logprobs, abs=1e-4)
    assert (await served.publish(served.publish_file(2))).quarantined == {}, "a repetition is harmless"
    with pytest.raises(WrongVersion, match="expected the adapter version-1"):
        await served.complete(1)


@pytest.mark.parametrize("how", ["old", "half"])
async def test_an_adapter_taken_wrongly_is_refused_though_the_server_claims_it(served: Served, how: str) -> None:
    before, weights = served.publish_file(10), served.publish_file(11)
    assert (await served.publish(before)).accepted
    folder = None
    if how == "half":
        whole = served.adapter(11)
        half = dict(sorted(whole.tensors.items())[: len(whole.tensors) // 2])
        lay_out(Adapter(whole.shape, half), folder := served.folder / "half")
    publication = await served.publish(weights, WrongServer(served, folder, before=10))
    assert publication.accepted == ()
    assert "nats" in publication.quarantined[served.url]
    assert (await served.publish(weights)).accepted, "the same adapter, taken rightly"


async def test_a_server_that_claims_an_adapter_and_has_none_is_refused(served: Served) -> None:
    weights = served.publish_file(15)

    class Claiming(FoundServer):
        async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
            label = f"{weights.version}-{weights.checksum}"
            await served.send("/update_weight_version", {"new_version": label})
            return replace(weights, path="")

    publication = await served.publish(weights, Claiming(served.url, TOKEN, 10.0, adapters=True))
    assert "expected the adapter version-15" in publication.quarantined[served.url]
    assert (await served.publish(weights)).accepted


async def test_the_adapter_on_another_base_model_is_refused(
    served: Served, tokenizer: TextTokenizer, tokenizer_dir: Path
) -> None:
    other = save_policy(build_tiny(SHAPE, tokenizer, seed=1), tokenizer_dir, served.folder / "other")
    weights = served.publish_file(20)
    probes = [served.scores(weights, base=other)]
    publication = await publish([served.server], weights, probes, limits=LIMITS, timeout_s=LIMIT_S)
    assert "nats" in publication.quarantined[served.url]


async def test_a_file_that_is_no_adapter_of_this_model_leaves_the_old_one_serving(
    served: Served, tokenizer: TextTokenizer
) -> None:
    assert (await served.publish(served.publish_file(30))).accepted
    deeper = build_tiny(replace(SHAPE, layers=3), tokenizer, seed=0)
    shape = AdapterShape(3, 6.0, linear_modules(deeper, None, ()))
    of_another = Adapter(shape, {name: torch.zeros(size) for name, size in shape.sizes(deeper).items()})
    whole = served.adapter(31)
    half = Adapter(whole.shape, dict(sorted(whole.tensors.items())[:-1]))
    right = served.publish_file(31)
    wrong = {
        "the model has no model.layers.2": write_adapter(of_another, served.folder / "deeper.safetensors", 31),
        "is missing or of another shape": write_adapter(half, served.folder / "partial.safetensors", 31),
        "expected checksum": replace(right, checksum="0" * 64),
        "cannot read": replace(right, path=str(served.folder / "nowhere")),
    }
    probe = Probe(PROMPT, ACTION, (0.0, 0.0, 0.0))
    for reason, weights in wrong.items():
        publication = await publish([served.server], weights, [probe], limits=LIMITS, timeout_s=LIMIT_S)
        assert reason in publication.quarantined[served.url]
        assert (await served.complete(30)).version == 30
