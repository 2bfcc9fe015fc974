"""Rows of the recovery matrix: the LLM judge is down, slow, or talks nonsense.

Every answer is right, so an outcome of 0 would be a judge's trouble that was scored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rollout_workers.pool import RolloutPool, RolloutStopped
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import WorkerConfig
from tests.faults import judged_world
from tests.faults.books import Books, outcomes
from tests.faults.judge_process import JudgeProcess
from tests.rollout_workers.fake_world import FakeSettings, config, spec

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("cluster")]

EPISODES = 12
SPECS = [spec(i, delay_s=0.1) for i in range(EPISODES)]
SETTINGS = RolloutSettings(
    workers=1,
    contexts_per_worker=3,
    prefetch_per_worker=1,
    worker_cpus=0.1,
    attempts=6,
    judge_deadline_s=4.0,
    shard_linger_s=0.05,
    retry_delay_s=0.1,
    hang_timeout_s=60.0,
    start_timeout_s=600.0,
    stall_timeout_s=600.0,
    failure_floor=100,
)


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[JudgeProcess]:
    process = JudgeProcess(tmp_path)
    yield process
    process.end()


@pytest.fixture
def worker_config(tmp_path: Path, judge: JudgeProcess) -> WorkerConfig:
    made = config(tmp_path, SETTINGS, f"{judged_world.HERE}:JUDGED")
    assert isinstance(made.options, FakeSettings)
    return replace(made, options=replace(made.options, judge_port=judge.port))


def down(judge: JudgeProcess) -> Callable[[], None]:
    judge.end()
    return judge.start


def slow(judge: JudgeProcess) -> Callable[[], None]:
    judge.say("")
    return lambda: judge.say("yes")


def nonsense(judge: JudgeProcess) -> Callable[[], None]:
    judge.say("that depends on what you mean by yes")
    return lambda: judge.say("yes")


TROUBLES = [(down, "judge_unreachable"), (slow, "judge_timeout"), (nonsense, "judge_nonsense")]


@pytest.mark.parametrize(("trouble", "code"), TROUBLES, ids=["down", "slow", "talks_nonsense"])
def test_judge_in_trouble_for_a_while_costs_time_only(
    worker_config: WorkerConfig,
    judge: JudgeProcess,
    trouble: Callable[[JudgeProcess], Callable[[], None]],
    code: str,
) -> None:
    def happen() -> None:
        threading.Timer(8.0, trouble(judge)).start()

    with RolloutPool(worker_config) as pool:
        books = Books(pool, happen)
        result = books.play(SPECS)
    books.say(f"judge {trouble.__name__} for 8 s, limit 4 s an episode")
    assert books.left_behind() == []
    assert result.counts["completed"] == EPISODES
    assert result.incidents[f"judge/{code}"] >= 1
    assert all(incident.startswith("judge/") for incident in result.incidents)
    assert set(outcomes(worker_config.shard_dir, result)) == {1.0}


@pytest.mark.lengthy
@pytest.mark.parametrize(("trouble", "code"), TROUBLES, ids=["down", "slow", "talks_nonsense"])
def test_judge_that_stays_in_trouble_stops_the_run_and_nothing_is_scored(
    worker_config: WorkerConfig,
    judge: JudgeProcess,
    trouble: Callable[[JudgeProcess], Callable[[], None]],
    code: str,
) -> None:
    few = replace(worker_config, settings=replace(SETTINGS, failure_floor=2, judge_failure_share=0.0))
    said = rf"[3-9] judge failures; at most 2 .*{code} x.*judge line.*What to do"
    with RolloutPool(few) as pool:
        books = Books(pool, lambda: end_quietly(trouble, judge))
        with pytest.raises(RolloutStopped, match=said) as stopped:
            books.play(SPECS)
    result = stopped.value.result
    books.require_balance(result, EPISODES)
    assert result.counts["completed"] >= 3
    assert set(outcomes(few.shard_dir, result)) == {1.0}


def end_quietly(trouble: Callable[[JudgeProcess], Callable[[], None]], judge: JudgeProcess) -> None:
    trouble(judge)
