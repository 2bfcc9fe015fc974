"""Real processes killed in the middle of a run: it ends, nothing is lost, and no accident becomes a reward of 0.

Flawless demonstrators play (each episode's outcome is 1 unless an accident was scored), except where
the policy server is killed: there an untrained model plays, and each judged episode must have been
played to its own end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from environments.browser.owned_processes import marked_processes, process_mark
from environments.embedded.sessions import SiteEndpoint
from policy.client import PolicySource
from policy.models import save_policy
from policy.presets import build_tiny
from policy.server import start_server
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer
from policy.torch_backend import TorchSettings
from records.episodes import Source, Task, Termination
from rollout_workers.pool import RolloutPool
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from sites.faults import FaultSettings
from sites.server import SiteServer
from sites.settings import SitesSettings
from sites.tasks import task_set
from tests.faults.books import Books, judged
from tests.faults.pool_processes import chromiums, told
from tests.faults.scripted_server import process_id

pytestmark = [pytest.mark.faults, pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

EPISODES = 16
SETTINGS = RolloutSettings(
    workers=2,
    contexts_per_worker=3,
    prefetch_per_worker=3,
    worker_cpus=0.1,
    shard_linger_s=0.2,
    replace_after_s=60.0,
)
SLOW = SitesSettings(faults=FaultSettings(slow_share=1.0, slow_s=0.7))
"""Sites on which an episode outlasts the pause before an accident."""
LIMITS = PolicySettings(
    tiny=TinyShape(width=32, layers=1, heads=2, key_value_heads=2, mlp_width=32, vocab_size=700),
    max_prompt_tokens=1500,
    max_new_tokens=6,
    attempt_timeout_s=10.0,
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests leave to their guards for a moment is not counted here."""
    monkeypatch.setattr("rollout_workers.pool.SWEEP_GRACE_S", 20.0)


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer() as running:
        yield running


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return task_set(0, ("shop", "forum"), "train", EPISODES)


@pytest.fixture
def worker_config(tmp_path: Path, server: SiteServer) -> WorkerConfig:
    corpus = ["# Element: Add to cart", 'do(action="Click", element="12")', "link Desk lamp 3", 'exit(message="")'] * 8
    return WorkerConfig(
        shard_dir=str(tmp_path / "shards"),
        tokenizer=str(train_tokenizer(corpus, LIMITS.tiny.vocab_size, tmp_path / "tokenizer")),
        settings=SETTINGS,
        policy_settings=LIMITS,
        connection=SiteEndpoint(server.port, server.secret),
    )


def demonstrations(tasks: list[Task]) -> list[EpisodeSpec]:
    return [EpisodeSpec(f"d{i}", task, Source.DEMONSTRATION, phase=0, seed=i) for i, task in enumerate(tasks)]


def test_a_killed_browser_worker_costs_time_only(worker_config: WorkerConfig, tasks: list[Task]) -> None:
    killed: list[str] = []

    def kill_worker() -> None:
        pid = books.playing_process()
        mark = process_mark(pid)
        assert mark is not None
        killed.append(mark)
        os.kill(pid, signal.SIGKILL)

    with SiteServer(SLOW) as slow:
        config = replace(worker_config, connection=SiteEndpoint(slow.port, slow.secret))
        with RolloutPool(config) as pool:
            books = Books(pool, kill_worker)
            result = books.play(demonstrations(tasks))
            assert not marked_processes(killed[0]), "the dead worker's Chromium is still there"
    assert books.left_behind() == []
    assert result.counts["completed"] == EPISODES
    assert result.worker_losses == 1
    assert result.attempts > EPISODES
    assert {t.outcome for t in judged(worker_config.shard_dir, result)} == {1.0}
    assert result.orphans == 0


def test_a_killed_chromium_is_replaced_and_its_episodes_are_played_again(
    worker_config: WorkerConfig, tasks: list[Task]
) -> None:
    killed: list[int] = []

    def kill_chromium() -> None:
        for chromium in chromiums(pool):
            killed.append(chromium)
            os.kill(chromium, signal.SIGKILL)

    config = replace(worker_config, settings=replace(SETTINGS, workers=1))
    with RolloutPool(config) as pool:
        books = Books(pool, kill_chromium, until_felt=True)
        result = books.play(demonstrations(tasks))
        running = chromiums(pool)
        assert len(running) == 1, f"{killed} were killed; there are {told(pool)}"
    assert running[0] not in killed
    assert books.left_behind() == []
    assert result.counts["completed"] == EPISODES
    assert result.worker_losses == 0
    assert 1 <= sum(result.incidents.values()) == result.attempts - EPISODES
    assert all(code.startswith("infra/") for code in result.incidents)
    assert {t.outcome for t in judged(config.shard_dir, result)} == {1.0}


@pytest.mark.lengthy
def test_a_killed_policy_server_is_waited_for_and_never_scored(
    worker_config: WorkerConfig, tasks: list[Task], tmp_path: Path
) -> None:
    model = build_tiny(LIMITS.tiny, TextTokenizer.load(worker_config.tokenizer), seed=0)
    model_dir = save_policy(model, worker_config.tokenizer, tmp_path / "model")
    handle = start_server(LIMITS, TorchSettings(), model_dir)
    pids = [ray.get(handle.apply.remote(process_id), timeout=240)]

    def kill_server() -> None:
        os.kill(pids[0], signal.SIGKILL)

    policy = PolicySource("policy.ray_client:actor_client", {"servers": {"policy-0": handle}, "settings": LIMITS})
    short = [replace(task, max_steps=4) for task in tasks]
    specs = [EpisodeSpec(f"r{i}", task, Source.ROLLOUT, phase=0, seed=i) for i, task in enumerate(short)]
    with RolloutPool(replace(worker_config, policy=policy)) as pool:
        books = Books(pool, kill_server)
        result = books.play(specs)
    pids.append(ray.get(handle.apply.remote(process_id), timeout=240))
    assert books.left_behind() == []
    assert pids[0] != pids[1], "the server was not killed, or did not come back"
    assert result.counts["completed"] == EPISODES
    assert all(code.startswith("policy/") for code in result.incidents)
    for trajectory in judged(worker_config.shard_dir, result):
        ran_out = trajectory.termination is Termination.MAX_STEPS and len(trajectory.steps) == 4
        assert trajectory.termination is Termination.EXIT or ran_out
        assert trajectory.evidence
    ray.kill(handle)
