"""The vLLM backend keeps the contract of policy backends, on a real vLLM and a real Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import ray

from policy.models import save_policy
from policy.presets import build_tiny
from policy.published_weights import PublishedWeights
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from tests.policy.backend_contract import WAIT_S, BackendContract, Served, two_published
from tests.policy.vllm_python import VLLM_PYTHON, needs_vllm
from tests.rollout_workers.ray_cluster import small_ray

pytestmark = [pytest.mark.slow, needs_vllm]

SHAPE = TinyShape(width=64, layers=2, heads=2, key_value_heads=2, mlp_width=64, context_tokens=256)
"""vLLM's attention on a CPU has heads of 32 at least."""


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    with small_ray():
        yield


@pytest.fixture(scope="module")
def policy_dir(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(build_tiny(SHAPE, tokenizer, seed=0), tokenizer_dir, tmp_path_factory.mktemp("model") / "policy")


@pytest.fixture(scope="module")
def two_weights(
    tokenizer: TextTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PublishedWeights, PublishedWeights]:
    return two_published(SHAPE, tokenizer, tmp_path_factory.mktemp("weights"))


@pytest.mark.lengthy  # two vLLMs; that one takes weights, and no wrong ones, test_vllm_publication.py says
class TestVllmBackend(BackendContract):
    @staticmethod
    def settings() -> PolicySettings:
        options = {"servers": 2, "cpus": 0, "python": VLLM_PYTHON, "args": ["--enforce-eager"]}
        return PolicySettings(
            backend="vllm",
            options=options,
            max_prompt_tokens=128,
            max_new_tokens=32,
            attempt_timeout_s=30,
            deadline_s=WAIT_S,
            hang_timeout_s=20,
            publish_timeout_s=WAIT_S,
        )

    @staticmethod
    def freeze(served: Served, name: str) -> Callable[[], bool]:
        handle = ray.get_actor(dict(served.service.source.options["servers"])[name])
        before = ray.get(handle.process_id.remote(), timeout=WAIT_S)
        os.killpg(before, signal.SIGSTOP)

        def replaced() -> bool:
            try:
                return bool(ray.get(handle.process_id.remote(), timeout=5.0) != before)
            except ray.exceptions.RayError:
                return False

        return replaced
