"""The torch backend keeps the contract of policy backends, on a real Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

from policy.published_weights import PublishedWeights
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from tests.policy.backend_contract import WAIT_S, BackendContract, Served, two_published
from tests.policy.conftest import TINY
from tests.rollout_workers.ray_cluster import small_ray

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    with small_ray():
        yield


@pytest.fixture(scope="module")
def two_weights(
    tokenizer: TextTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PublishedWeights, PublishedWeights]:
    return two_published(TINY, tokenizer, tmp_path_factory.mktemp("weights"))


def process_id(server: Any) -> int:
    return os.getpid()


def frozen(actor: str) -> Callable[[], bool]:
    """Stop the process of an actor; return what says whether another has taken its place."""
    handle = ray.get_actor(actor)
    before = ray.get(handle.apply.remote(process_id), timeout=WAIT_S)
    os.kill(before, signal.SIGSTOP)

    def replaced() -> bool:
        try:
            return bool(ray.get(handle.apply.remote(process_id), timeout=5.0) != before)
        except ray.exceptions.RayError:
            return False

    return replaced


class TestTorchBackend(BackendContract):
    @staticmethod
    def settings() -> PolicySettings:
        options = {"servers": 2, "cpus": 0, "max_batch": 4}
        return PolicySettings(options=options, attempt_timeout_s=30, deadline_s=WAIT_S, hang_timeout_s=8)

    @staticmethod
    def freeze(served: Served, name: str) -> Callable[[], bool]:
        return frozen(dict(served.service.source.options["servers"])[name])


class TestSlowReplies(BackendContract):
    """The example of the guide, which builds on torch."""

    @staticmethod
    def settings() -> PolicySettings:
        torch = TestTorchBackend.settings()
        return replace(torch, backend="examples.slow_replies:SLOW", options={"torch": torch.options, "slow_s": 1})

    @staticmethod
    def freeze(served: Served, name: str) -> Callable[[], bool]:
        return frozen(dict(served.service.source.options["inner"].options["servers"])[name])

    @pytest.mark.lengthy  # the server that is started afresh is torch's, above
    async def test_a_server_that_hangs_is_started_afresh_with_what_is_published(
        self, served: Served, policy_dir: Path
    ) -> None:
        await super().test_a_server_that_hangs_is_started_afresh_with_what_is_published(served, policy_dir)
