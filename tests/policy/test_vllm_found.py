"""Servers that others started are kept at what is published; one that fails the proof is not heard until the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from policy.backend import Serving
from policy.publication import Probe, ProbeLimits, publish
from policy.published_weights import PublishedWeights, write_published
from policy.settings import PolicySettings
from policy.vllm import service
from policy.vllm.backend import OLDEST, VllmSettings, preflight, processes, reached
from policy.vllm.server import listening_host
from policy.vllm.service import VllmService, found_servers
from records.checks import Status
from tests.policy.told_server import Answer, told

SEVEN, EIGHT = (
    PublishedWeights(version, letter * 64, f"/weights/{version}") for version, letter in ((7, "a"), (8, "b"))
)
LIMITS = ProbeLimits(1e-3, 1e-3)
PROBE = Probe((1, 2), (5,), (-0.5,))


def label(weights: PublishedWeights) -> str:
    return f"{weights.version}-{weights.checksum}"


@dataclass
class Stub:
    """A server that remembers what it serves, as vLLM does."""

    label: str = "default"
    logprob: float = -0.5
    loads: list[str] = field(default_factory=list)

    def answers(self) -> dict[str, Answer | Callable[[Any], Answer]]:
        def load(body: Any) -> Answer:
            self.loads.append(body["args"][0])
            return 200, {"results": [{"refused": ""}]}

        def name(body: Any) -> Answer:
            self.label = body["new_version"]
            return 200, {}

        scored = {"choices": [], "prompt_logprobs": [None, None, {"5": {"logprob": self.logprob}}]}
        return {
            "pause": (200, {}), "collective_rpc": load, "update_weight_version": name, "resume": (200, {}),
            "reset_prefix_cache": (200, {"success": True}), "generate": (200, scored), "health": (200, {}),
            "weight_info": lambda _: (200, {"weight_version": self.label}),
        }  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_LOOK_PAUSE_S", 0.05)


def serving(url: str, folder: Path, policy_dir: Path) -> tuple[Serving, VllmSettings]:
    options = VllmSettings(urls=(url,))
    settings = PolicySettings(backend="vllm", options=options, publish_timeout_s=10)
    return Serving(settings, str(policy_dir), folder / "current.json", "run", folder), options


@asynccontextmanager
async def found(url: str, folder: Path, policy_dir: Path) -> AsyncIterator[VllmService]:
    """The service; its end waits for a thread that waits for this event loop's server."""
    servers = found_servers(*serving(url, folder, policy_dir))
    running = servers.__enter__()
    try:
        yield running
    finally:
        await asyncio.to_thread(servers.__exit__, None, None, None)


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():
            await asyncio.sleep(0.02)


async def published(running: VllmService, weights: PublishedWeights, file: Path) -> dict[str, str]:
    write_published(weights, file)
    publication = await publish(running.weight_servers(), weights, [PROBE], limits=LIMITS, timeout_s=10)
    return publication.quarantined


async def test_a_server_that_was_started_again_by_others_gets_what_is_published(
    tmp_path: Path, policy_dir: Path
) -> None:
    stub = Stub()
    async with told(**stub.answers()) as server, found(server.url, tmp_path, policy_dir) as running:
        await asyncio.sleep(0.3)
        assert stub.loads == [], "nothing is published yet"
        assert await published(running, SEVEN, tmp_path / "current.json") == {}
        assert stub.label == label(SEVEN)
        stub.label = "default"
        await until(lambda: stub.label == label(SEVEN))


async def test_a_server_that_fails_the_proof_is_not_heard_until_the_next_publication(
    tmp_path: Path, policy_dir: Path
) -> None:
    stub = Stub(logprob=-3.0)
    async with told(**stub.answers()) as server, found(server.url, tmp_path, policy_dir) as running:
        refused = await published(running, SEVEN, tmp_path / "current.json")
        assert "nats" in refused[server.url]
        await asyncio.to_thread(running.replace, server.url)
        assert stub.label == "refused"
        loads = len(stub.loads)
        await asyncio.sleep(0.5)
        assert (stub.label, len(stub.loads)) == ("refused", loads), "the watch leaves it alone"
        server.answers |= {"/inference/v1/generate": Stub().answers()["generate"]}
        assert await published(running, EIGHT, tmp_path / "current.json") == {}
        stub.label = "default"
        await until(lambda: stub.label == label(EIGHT))


@pytest.mark.parametrize(
    "path", ["pause", "collective_rpc", "update_weight_version", "resume", "weight_info", "generate"]
)
async def test_a_server_that_does_not_understand_a_publication_is_quarantined(
    path: str, tmp_path: Path, policy_dir: Path
) -> None:
    answers = {**Stub().answers(), path: (400, b"no such thing")}
    async with told(**answers) as server, found(server.url, tmp_path, policy_dir) as running:
        quarantined = await published(running, SEVEN, tmp_path / "current.json")
    assert "no such thing" in quarantined[server.url]


async def test_a_publication_and_the_watch_do_not_load_at_once(tmp_path: Path, policy_dir: Path) -> None:
    stub = Stub()
    async with told(pause_s=0.02, **stub.answers()) as server, found(server.url, tmp_path, policy_dir) as running:
        for weights in (SEVEN, EIGHT, SEVEN, EIGHT):
            assert await published(running, weights, tmp_path / "current.json") == {}
    order = [path.partition("?")[0] for path, _ in server.heard if "pause" in path or "resume" in path]
    assert order == ["/pause", "/resume"] * (len(order) // 2)


async def test_preflight_asks_the_servers_and_the_plan_starts_none(policy_dir: Path) -> None:
    async with told(health=(200, {}), weight_info=(200, {"weight_version": "default"})) as server:
        options = VllmSettings(urls=(server.url,))
        settings = PolicySettings(backend="vllm", model=str(policy_dir), options=options)
        checks = await asyncio.to_thread(preflight, settings, options)
    assert [check.status for check in checks] == [Status.OK, Status.OK]
    assert processes(options).count == 0
    gone = await asyncio.to_thread(preflight, settings, options)
    assert gone[0].status is Status.WARN
    assert "does not answer from here" in gone[0].found


@pytest.mark.parametrize(
    ("answer", "found", "advice"),
    [
        ((401, {}), "refuses this token: status 401", "set WAYMARK_VLLM_TOKEN"),
        ((404, {}), "names no weights: status 404", "docs/guides/vllm.md"),
        ((500, {}), "names no weights: status 500", "0.32 or newer"),
    ],
)
async def test_preflight_refuses_a_server_that_could_not_be_given_weights(
    answer: Answer, found: str, advice: str, policy_dir: Path
) -> None:
    async with told(health=(200, {}), weight_info=answer) as server:
        options = VllmSettings(urls=(server.url,))
        settings = PolicySettings(backend="vllm", model=str(policy_dir), options=options)
        (check, _) = await asyncio.to_thread(preflight, settings, options)
    assert check.status is Status.FAIL
    assert found in check.found
    assert advice in check.advice


@pytest.mark.parametrize(
    ("version", "status", "found"),
    [
        ("0.32", Status.OK, "vLLM 0.32 in"),
        ("0.33.1.post2", Status.OK, "vLLM 0.33.1.post2 in"),
        ("0.31.2", Status.FAIL, "older than 0.32"),
        ("0.9.0", Status.FAIL, "older than 0.32"),
        ("0.1.dev1+gabcdef0", Status.WARN, "older than 0.32"),
        ("main", Status.WARN, "whose age is not known"),
        ("", Status.FAIL, "has no vllm"),
    ],
)
def test_preflight_says_which_vllm_is_there_and_whether_it_is_new_enough(
    version: str, status: Status, found: str, policy_dir: Path, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{version}'\n")
    python.chmod(0o755)
    options = VllmSettings(python=str(python))
    (check, _) = preflight(PolicySettings(backend="vllm", model=str(policy_dir)), options)
    assert check.status is status
    assert found in check.found


def test_the_oldest_vllm_is_the_one_that_the_extra_asks_for() -> None:
    (needed,) = [Requirement(one) for one in metadata.requires("waymark") or () if one.startswith("vllm")]
    assert str(needed.specifier) == f">={OLDEST}"


def test_preflight_names_what_is_missing(policy_dir: Path, tmp_path: Path) -> None:
    options = VllmSettings(python=str(tmp_path / "nowhere"))
    (check, fits) = preflight(PolicySettings(backend="vllm", model=str(policy_dir)), options)
    assert check.status is Status.FAIL
    assert "make vllm" in check.advice
    assert fits.status is Status.OK
    other = tmp_path / "model"
    other.mkdir()
    for file in policy_dir.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    config = (other / "config.json").read_text().replace('"vocab_size": ', '"vocab_size": 5, "was": ')
    (other / "config.json").write_text(config)
    (_, misfit) = preflight(PolicySettings(backend="vllm", model=str(other)), options)
    assert misfit.status is Status.FAIL
    assert "the model's head 5" in misfit.found


@pytest.mark.parametrize(
    ("bind", "joined", "host"),
    [
        ("auto", False, "127.0.0.1"),
        ("auto", True, "10.0.0.7"),
        ("loopback", False, "127.0.0.1"),
        ("node", False, "10.0.0.7"),
        ("node", True, "10.0.0.7"),
    ],
)
def test_servers_listen_where_workers_may_be(
    bind: str, joined: bool, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.util.get_node_ip_address", lambda: "10.0.0.7")
    assert listening_host(bind, joined=joined) == host
    assert VllmSettings().bind == "auto"


def test_what_other_nodes_do_not_reach_is_refused_and_what_they_may_not_reach_is_told() -> None:
    (refused,) = reached(VllmSettings(bind="loopback"))
    assert (refused.name, refused.status) == ("policy.options.bind", Status.FAIL)
    assert refused.advice == "leave it out, or set it to node"
    own = ("http://localhost:8000", "http://127.0.0.2:8000", "http://[::1]:8000")
    told = reached(VllmSettings(bind="loopback", urls=(*own, "http://vllm.svc:8000", "http://10.0.0.7:8000")))
    assert [(check.name, check.status) for check in told] == 3 * [("policy.options.urls", Status.WARN)]
    assert all(url in check.found for url, check in zip(own, told, strict=True))
    assert reached(VllmSettings()) == reached(VllmSettings(bind="node")) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"servers": 0}, "servers"), ({"bind": "everywhere"}, "bind"), ({"urls": ("vllm:8000",)}, "urls")],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        VllmSettings(**wrong)
