"""Rows of the recovery matrix that need real pages: a tab, or the site server behind the pages, breaks.

Flawless demonstrators play, so whatever is not 1.0 at the end was an accident that was scored.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from environments.embedded.sessions import SiteEndpoint
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer_training import train_tokenizer
from records.episodes import Source
from rollout_workers.pool import RolloutPool, RolloutStopped
from rollout_workers.results import RolloutResult
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from sites.faults import FaultSettings
from sites.server import SiteServer
from sites.settings import SitesSettings
from sites.tasks import task_set
from sites.watch import SiteWatch
from tests.faults.books import Books, outcomes
from tests.faults.pool_processes import renderers

pytestmark = [pytest.mark.faults, pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

EPISODES = 20
SETTINGS = RolloutSettings(
    workers=1,
    contexts_per_worker=3,
    prefetch_per_worker=1,
    worker_cpus=0.1,
    attempts=8,
    shard_linger_s=0.05,
    retry_delay_s=0.2,
    hang_timeout_s=60.0,
    start_timeout_s=600.0,
    stall_timeout_s=600.0,
    failure_floor=100,
)
SITES = SitesSettings(start_timeout_s=120.0)


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer(SITES) as running:
        yield running


@pytest.fixture(scope="module")
def specs() -> list[EpisodeSpec]:
    tasks = [task for task in task_set(0, ("shop", "forum"), "train", 4 * EPISODES) if task.horizon <= 5]
    return [EpisodeSpec(f"d{i}", task, Source.DEMONSTRATION, 0, i) for i, task in enumerate(tasks[:EPISODES])]


@pytest.fixture
def worker_config(tmp_path: Path, server: SiteServer) -> WorkerConfig:
    return made_for(server, tmp_path)


def made_for(server: SiteServer, folder: Path) -> WorkerConfig:
    corpus = ["# Element: Add to cart", 'do(action="Click", element="12")', "link Desk lamp 3", 'exit(message="")'] * 8
    limits = PolicySettings(tiny=TinyShape(vocab_size=700), max_prompt_tokens=1500)
    return WorkerConfig(
        shard_dir=str(folder / "shards"),
        tokenizer=str(train_tokenizer(corpus, limits.tiny.vocab_size, folder / "tokenizer")),
        settings=SETTINGS,
        policy_settings=limits,
        connection=SiteEndpoint(server.port, server.secret),
    )


def kill(pids: list[int]) -> None:
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def play(
    row: str, config: WorkerConfig, specs: list[EpisodeSpec], accident: Callable[[RolloutPool], None]
) -> RolloutResult:
    """Play all episodes with an accident on the way; each must be judged, and rightly."""
    with RolloutPool(config) as pool:
        books = Books(pool, lambda: accident(pool), after=2, pause_s=0.1, until_felt=True)
        result = books.play(specs)
    books.say(row)
    assert books.left_behind() == []
    assert result.counts["completed"] == len(specs), result.failures
    assert set(outcomes(config.shard_dir, result)) == {1.0}
    assert all(code.startswith("infra/") for code in result.incidents), result.incidents
    assert result.worker_losses == 0
    return result


def test_browser_tab_crash_costs_the_episodes_in_it(worker_config: WorkerConfig, specs: list[EpisodeSpec]) -> None:
    result = play("browser tabs killed", worker_config, specs, lambda pool: kill(renderers(pool)))
    assert "infra/browser_crashed" in result.incidents, result.incidents


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "hanging"])
def test_site_process_is_started_afresh_and_waited_for(
    worker_config: WorkerConfig, server: SiteServer, specs: list[EpisodeSpec], sent: signal.Signals
) -> None:
    with SiteWatch(server, SITES) as watch:
        result = play(f"site process {sent.name}", worker_config, specs, lambda _: os.kill(server.pid, sent))
        assert watch.restarts >= 1
    assert sum(result.incidents.values()) >= 1


def test_site_that_answers_some_requests_with_errors_costs_attempts_only(
    tmp_path: Path, specs: list[EpisodeSpec]
) -> None:
    with SiteServer(replace(SITES, faults=FaultSettings(error_share=0.3))) as failing:
        config = made_for(failing, tmp_path)
        patient = replace(config, settings=replace(SETTINGS, attempts=60, retry_delay_s=0.0, failure_floor=600))
        result = play("site answering errors (30 % of requests)", patient, specs, lambda _: None)
    assert result.incidents["infra/site_error"] >= 1


def test_site_that_answers_errors_only_stops_the_run_with_the_reason(tmp_path: Path, specs: list[EpisodeSpec]) -> None:
    with SiteServer(replace(SITES, faults=FaultSettings(error_share=1.0))) as failing:
        config = made_for(failing, tmp_path)
        few = replace(config, settings=replace(SETTINGS, failure_floor=6, infra_failure_share=0.0))
        said = r"([7-9]|10) infra failures; at most 6 .*site_error.*log of the sites"
        with RolloutPool(few) as pool:
            books = Books(pool, lambda: None)
            with pytest.raises(RolloutStopped, match=said) as stopped:
                pool.run(specs, books._watch, books)
        books.require_balance(stopped.value.result, len(specs))
    assert stopped.value.result.counts["completed"] == 0
