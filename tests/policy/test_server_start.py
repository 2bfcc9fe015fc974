"""A server whose start fails is started again, on a real Ray: torch on a tiny model, and a stand-in that plays vLLM."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayTaskError
from transformers import PreTrainedModel

from plugs.registry import load
from policy.backend import Serving
from policy.client import Completion, PolicyClient, Sampling
from policy.publication import Probe, ProbeLimits, publish
from policy.published_weights import write_published
from policy.server_watch import ServerWatch
from policy.settings import PolicySettings
from policy.torch_backend import TorchSettings
from policy.torch_service import running_servers as torch_servers
from policy.vllm.backend import VllmSettings
from policy.vllm.service import running_servers as vllm_servers
from policy.weights import write_weights
from tests.rollout_workers.ray_cluster import small_ray

SETTINGS = PolicySettings(attempt_timeout_s=30, deadline_s=240)
GREEDY = Sampling(temperature=0, max_new_tokens=4)
PROMPT = [30, 31, 32]
LIMIT_S = 240.0
STAND_IN = f"""#!{sys.executable}
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder = Path(__file__).parent
with (folder / "starts").open("a") as starts:
    starts.write(".")
statuses = (folder / "ENDS").read_text().split() if (folder / "ENDS").exists() else []
if statuses:
    (folder / "ENDS").write_text(" ".join(statuses[1:]))
    print("why it ends: ", statuses[0], flush=True)
    sys.exit(int(statuses[0]))
choice = {{"token_ids": [1], "finish_reason": "stop", "weight_versions": [{{"version": "none"}}]}}
choice["logprobs"] = {{"content": [{{"token_id": 1, "logprob": -1.0}}]}}
ANSWER = {{"choices": [choice], "prompt_logprobs": None, "weight_version": "none"}}

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_POST = do_GET
    def log_message(self, *args):
        pass

host, port = (sys.argv[sys.argv.index(name) + 1] for name in ("--host", "--port"))
threading.Thread(target=ThreadingHTTPServer((host, int(port)), Handler).serve_forever, daemon=True).start()
sys.stdin.read()
"""
"""It ends at once with the next status of the file ``ENDS`` beside it, if there is one, and serves until its end."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def ray_cluster() -> Iterator[None]:
    with small_ray():
        yield


def serving(policy_dir: Path, folder: Path) -> Serving:
    return Serving(SETTINGS, str(policy_dir), folder / "current.json", f"start-{time.monotonic_ns()}", folder)


async def complete(service: Any, episode: str = "a") -> Completion:
    make: Any = load(service.source.factory)
    client: PolicyClient = make(**service.source.options)
    return await client.complete(PROMPT, GREEDY, episode=episode)


async def what_it_says(server: Any) -> str:
    """What a server answers whose start failed, once Ray has started it."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                await server.ping.remote()
            except (RayTaskError, ActorDiedError) as error:
                return str(error)
            except ActorUnavailableError:
                pass
            await asyncio.sleep(0.1)


async def test_a_torch_server_whose_restart_fails_comes_back_once_what_was_in_its_way_is_gone(
    policy_dir: Path, other_tiny: PreTrainedModel, tmp_path: Path
) -> None:
    weights = write_weights(other_tiny.state_dict(), tmp_path / "w", 1)
    write_published(weights, tmp_path / "current.json")
    with torch_servers(serving(policy_dir, tmp_path), TorchSettings(cpus=0)) as service:
        assert (await complete(service)).version == 1
        server = ray.get_actor(dict(service.source.options["servers"])["server-0"])
        before = await server.apply.remote(process_id)
        (tmp_path / "current.json").write_text("the disk is slow")
        os.kill(before, signal.SIGKILL)
        assert "names no published weights" in await what_it_says(server)
        write_published(weights, tmp_path / "current.json")
        assert (await complete(service)).version == 1
        assert await server.apply.remote(process_id) != before


async def test_a_vllm_server_whose_restarts_fail_is_started_until_one_succeeds(
    policy_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches: list[ServerWatch] = []
    monkeypatch.setattr(
        "policy.vllm.service.ServerWatch", lambda *given: watches.append(ServerWatch(*given)) or watches[0]
    )
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    with vllm_servers(serving(policy_dir, tmp_path), VllmSettings(cpus=0, python=str(python))) as service:
        assert (await complete(service)).action_ids == (1,)
        async with asyncio.timeout(LIMIT_S):
            while not watches[0]._proven:  # or the second of these ends would be refused for good
                await asyncio.sleep(0.1)
        (tmp_path / "ENDS").write_text("1 2")
        service.replace("server-0")
        async with asyncio.timeout(LIMIT_S):
            while len((tmp_path / "starts").read_text()) < 4:
                await asyncio.sleep(0.1)
        assert (await complete(service)).action_ids == (1,)
        assert len((tmp_path / "starts").read_text()) == 4


async def test_a_first_start_with_a_model_that_cannot_be_read_is_told_to_the_publication(
    policy_dir: Path, other_tiny: PreTrainedModel, tmp_path: Path
) -> None:
    broken = shutil.copytree(policy_dir, tmp_path / "broken")
    (broken / "model.safetensors").unlink()
    weights = write_weights(other_tiny.state_dict(), tmp_path / "w", 1)
    with torch_servers(serving(broken, tmp_path), TorchSettings(cpus=0)) as service:
        servers, probe = service.weight_servers(), Probe((30,), (31,), (-1.0,))
        publication = await publish(servers, weights, [probe], limits=ProbeLimits(1, 1), timeout_s=LIMIT_S)
    assert (publication.accepted, publication.refused) == ((), ("server-0",))
    said = "policy server server-0 could not start: StartRefused: .*broken cannot be read: .*model.safetensors"
    assert re.search(said, publication.quarantined["server-0"])


def process_id(server: object) -> int:
    return os.getpid()
