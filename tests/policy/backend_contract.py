"""What every policy backend keeps: an executable contract; a subclass of ``BackendContract`` runs it for one."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from plugs.registry import load
from policy.backend import PolicyBackend, PolicyService, Serving, backend_of
from policy.client import Completion, PolicyClient, Sampling
from policy.engine import GenerationEngine
from policy.models import load_causal_lm
from policy.presets import build_tiny
from policy.publication import Probe, ProbeLimits, Publication, publish
from policy.published_weights import PublishedWeights, write_published
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from policy.weights import put_weights, read_weights, write_weights
from records.checks import Status
from records.failures import EpisodeFailed, FailureKind

PROMPT, ACTION = (30, 31, 32), (33, 34)
LIMITS = ProbeLimits(largest=1e-3, mean=1e-3)
WAIT_S = 240.0


@dataclass
class Served:
    """A running service, the file that names its published weights, and two sets of weights that differ."""

    service: PolicyService
    published: Path
    first: PublishedWeights
    second: PublishedWeights
    settings: PolicySettings

    def client(self) -> PolicyClient:
        """A client as a rollout worker makes it."""
        make: Any = load(self.service.source.factory)
        client: PolicyClient = make(**self.service.source.options)
        return client

    async def complete(self, version: int | None = None, episode: str = "a") -> Completion:
        sampling = Sampling(temperature=0, max_new_tokens=4, version=version)
        return await self.client().complete(PROMPT, sampling, episode=episode)

    async def logprobs(self) -> tuple[float, ...]:
        """What the first server says of the probe with the weights that it has."""
        return tuple(await self.service.weight_servers()[0].score(PROMPT, ACTION))

    async def publish(self, weights: PublishedWeights, probe: tuple[float, ...]) -> Publication:
        write_published(weights, self.published)
        servers = self.service.weight_servers()
        return await publish(servers, weights, [Probe(PROMPT, ACTION, probe)], limits=LIMITS, timeout_s=WAIT_S)


def two_published(
    shape: TinyShape, tokenizer: TextTokenizer, folder: Path
) -> tuple[PublishedWeights, PublishedWeights]:
    """Two sets of weights that differ, as versions 1 and 2."""
    first, second = (
        write_weights(build_tiny(shape, tokenizer, seed).state_dict(), folder / f"{seed}.safetensors", seed)
        for seed in (1, 2)
    )
    return first, second


class BackendContract(ABC):
    """The points of the contract; all of them use one service with two servers, and each can be asked alone."""

    @staticmethod
    @abstractmethod
    def settings() -> PolicySettings:
        """The backend's name, with options for two servers; patient enough for this machine."""

    @staticmethod
    @abstractmethod
    def freeze(served: Served, name: str) -> Callable[[], bool]:
        """Let a server stand still; return what says whether another process has taken its place."""

    @staticmethod
    def logprobs_of(weights: PublishedWeights, model: Path) -> tuple[float, ...]:
        """The log-probabilities of the probe under published weights, computed without the backend."""
        loaded = load_causal_lm(model)
        put_weights(loaded, read_weights(weights))
        return tuple(GenerationEngine(loaded, TextTokenizer.load(model).stop_ids).score(PROMPT, ACTION))

    async def serve(self, served: Served, weights: PublishedWeights, model: Path) -> None:
        """Publish weights to both servers."""
        publication = await served.publish(weights, self.logprobs_of(weights, model))
        assert publication.quarantined == {}
        assert len(publication.accepted) == 2

    @pytest.fixture(scope="class")
    @classmethod
    def served(
        cls, policy_dir: Path, two_weights: tuple[PublishedWeights, PublishedWeights], tmp_path_factory: Any
    ) -> Iterator[Served]:
        settings, published = cls.settings(), tmp_path_factory.mktemp("published") / "current.json"
        backend, options = backend_of(settings)
        serving = Serving(settings, str(policy_dir), published, f"contract-{time.monotonic_ns()}", published.parent)
        with backend.serve(serving, options) as service:
            yield Served(service, published, *two_weights, settings)

    def test_it_is_found_by_its_name_and_refuses_options_that_it_has_not(self) -> None:
        backend, options = backend_of(self.settings())
        assert isinstance(backend, PolicyBackend)
        assert backend.processes(options).count == 2
        assert not [check for check in backend.preflight(self.settings(), options) if check.status is Status.FAIL]
        with pytest.raises(ValueError, match=r"policy.options.nonsense"):
            backend_of(replace(self.settings(), options={"nonsense": 1}))

    async def test_published_weights_are_taken_by_every_server_and_proven(
        self, served: Served, policy_dir: Path
    ) -> None:
        await self.serve(served, served.first, policy_dir)
        completion = await served.complete(version=served.first.version)
        assert completion.version == served.first.version
        assert 1 <= len(completion.action_ids) == len(completion.logprobs) <= 4
        again = await served.complete(version=served.first.version)
        assert again.action_ids == completion.action_ids

    async def test_weights_of_another_checksum_and_another_probe_are_refused(
        self, served: Served, policy_dir: Path
    ) -> None:
        await self.serve(served, served.first, policy_dir)
        before = await served.logprobs()
        wrong = replace(served.second, checksum="0" * 64)
        publication = await served.publish(wrong, before)
        assert publication.accepted == ()
        assert all("checksum" in reason for reason in publication.quarantined.values())
        assert (await served.complete()).version == served.first.version, "the old weights serve on"
        publication = await served.publish(served.second, before)
        assert publication.accepted == ()
        assert all("log-probabilities" in reason for reason in publication.quarantined.values())
        await self.serve(served, served.second, policy_dir)

    async def test_a_server_that_hangs_is_started_afresh_with_what_is_published(
        self, served: Served, policy_dir: Path
    ) -> None:
        await self.serve(served, served.second, policy_dir)
        name = served.service.weight_servers()[0].name
        replaced = self.freeze(served, name)
        deadline = time.monotonic() + WAIT_S
        while not replaced() and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        assert replaced(), f"{name} stands still and nobody started it afresh"
        for episode in "abcdefgh":  # spread over both servers
            assert (await served.complete(served.second.version, episode)).version == served.second.version

    async def test_a_server_that_is_replaced_comes_back_with_what_is_published(
        self, served: Served, policy_dir: Path
    ) -> None:
        await self.serve(served, served.second, policy_dir)
        served.service.replace(served.service.weight_servers()[1].name)
        for episode in "abcdefgh":
            assert (await served.complete(served.second.version, episode)).version == served.second.version

    async def test_after_its_end_nothing_answers(self, policy_dir: Path, tmp_path: Path) -> None:
        settings = replace(self.settings(), deadline_s=5.0, attempt_timeout_s=2.0)
        backend, options = backend_of(settings)
        serving = Serving(
            settings, str(policy_dir), tmp_path / "current.json", f"ended-{time.monotonic_ns()}", tmp_path
        )
        with backend.serve(serving, options) as service:
            make: Any = load(service.source.factory)
            client: PolicyClient = make(**service.source.options)
        with pytest.raises(EpisodeFailed) as failed:
            await client.complete(PROMPT, Sampling(temperature=0, max_new_tokens=4), episode="a")
        assert failed.value.failure.kind is FailureKind.POLICY
