"""One worker, without Ray: durable before answered, typed failures, and a browser that is replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

from environments.browser.owned_processes import all_marked
from judges.kinds import Judges
from judges.llm.interface import LlmQuestion
from plugs.registry import load
from records.episodes import NO_POLICY, Source, Trajectory
from records.failures import FailureKind
from records.folder_mark import marked_folder
from replay.shards import read_shard
from rollout_workers import shard_writer
from rollout_workers.leases import Lease
from rollout_workers.results import Completed, EpisodeAnswer
from rollout_workers.settings import PlanningSettings, RolloutSettings
from rollout_workers.spec import WorkerConfig
from rollout_workers.worker import RolloutWorker
from tests.e2e.processes import runs
from tests.rollout_workers.fake_world import CLICK, EXIT, browsers, completed, config, failed, spec
from tests.rollout_workers.scripted_model import ScriptedModel

SETTINGS = RolloutSettings(contexts_per_worker=2, shard_linger_s=0.05)


@asynccontextmanager
async def started(worker_config: WorkerConfig) -> AsyncIterator[RolloutWorker]:
    worker = RolloutWorker(worker_config, "worker-0")
    try:
        health = await worker.start()
        assert health.failure is None
        yield worker
    finally:
        await worker.stop()


async def play(worker: RolloutWorker, index: int, fault: str = "", **options: object) -> EpisodeAnswer:
    return await worker.play(Lease(f"e{index}", 1, 0), spec(index, fault, **options))  # type: ignore[arg-type]


async def test_an_answer_names_the_shard_that_already_holds_the_episode(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        answer = await play(worker, 0)
    (trajectory,) = read_shard(completed(answer).shard)
    assert (trajectory.episode_id, trajectory.outcome, trajectory.worker) == ("e0", 1.0, "worker-0")
    summary = completed(answer).summary
    assert (summary.steps, summary.outcome, summary.policy_version) == (2, 1.0, 3)


async def test_a_worker_of_a_node_without_the_run_folder_does_not_start_and_makes_none(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    lost = replace(config(tmp_path, SETTINGS), shard_dir=str(elsewhere / "episodes"), mark=str(elsewhere / ".mark-1"))
    worker = RolloutWorker(lost, "worker-0")
    try:
        failure = (await worker.start()).failure
        assert failure is not None
        assert str(failure.code) == "infra/run_folder_not_shared"
        assert f"{elsewhere} is not there" in failure.detail
    finally:
        await worker.stop()
    assert not elsewhere.exists()


async def test_a_run_folder_that_goes_away_fails_the_episode_with_a_type_and_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with marked_folder(out) as mark:
        async with started(replace(config(tmp_path, SETTINGS), shard_dir=str(out / "episodes"), mark=mark)) as worker:
            completed(await play(worker, 0))
            out.rename(tmp_path / "aside")
            failure = failed(await play(worker, 1))
            assert str(failure.code) == "infra/run_folder_not_shared"
            assert not out.exists()
            (tmp_path / "aside").rename(out)
            completed(await play(worker, 2))


async def test_episodes_that_finish_together_share_a_shard(tmp_path: Path) -> None:
    async with started(config(tmp_path, replace(SETTINGS, contexts_per_worker=4, shard_linger_s=0.3))) as worker:
        answers = await asyncio.gather(*(play(worker, i) for i in range(4)))
    (shard,) = {completed(answer).shard for answer in answers}
    assert {t.episode_id for t in read_shard(shard)} == {"e0", "e1", "e2", "e3"}


async def test_two_attempts_at_one_episode_that_finish_together_are_both_written(tmp_path: Path) -> None:
    async with started(config(tmp_path, replace(SETTINGS, contexts_per_worker=3, shard_linger_s=0.3))) as worker:
        answers = await asyncio.gather(play(worker, 0), play(worker, 0), play(worker, 1))
    first, second, other = (completed(answer).shard for answer in answers)
    shards = {shard: {t.episode_id for t in read_shard(shard)} for shard in (first, second, other)}
    assert len(shards) == 2
    assert first != second
    assert sorted(map(sorted, shards.values())) == [["e0"], ["e0", "e1"]]


async def test_no_more_episodes_run_at_once_than_there_are_contexts(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        playing = [asyncio.create_task(play(worker, i, delay_s=0.1)) for i in range(5)]
        await asyncio.sleep(0.05)
        begun = len(list((tmp_path / "scratch").glob("attempts-*")))
        answers = await asyncio.gather(*playing)
    assert begun == 2
    assert [type(answer.end) for answer in answers] == [Completed] * 5


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("task", FailureKind.TASK, "as_asked"),
        ("judge", FailureKind.JUDGE, "as_asked"),
        ("bug", FailureKind.INFRA, "unexpected"),
    ],
)
async def test_a_failed_episode_is_answered_with_its_type_and_leaves_no_shard(
    tmp_path: Path, fault: str, kind: FailureKind, code: str
) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        answer = await play(worker, 0, fault)
        after = await play(worker, 1)
    assert (failed(answer).kind, failed(answer).code.name) == (kind, code)
    assert fault != "bug" or failed(answer).detail.startswith("ZeroDivisionError: a bug in an environment (")
    assert completed(after)
    assert [t.episode_id for path in (tmp_path / "shards").glob("*") for t in read_shard(path)] == ["e1"]


async def test_a_dead_browser_is_replaced_once_for_all_slots(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        await asyncio.gather(play(worker, 0), play(worker, 1))
        (browser,) = browsers(tmp_path)
        os.kill(browser, signal.SIGKILL)
        async with asyncio.timeout(30):
            while runs(browser):
                await asyncio.sleep(0.01)
        answers = await asyncio.gather(*(play(worker, i) for i in range(2, 6)))
    assert [type(answer.end) for answer in answers] == [Completed] * 4
    assert len(browsers(tmp_path)) == 2


async def test_an_episode_whose_browser_dies_fails_as_infrastructure(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        answer = await play(worker, 0, "kill_browser")
        again = await play(worker, 0, "kill_browser")
    assert (failed(answer).kind, failed(answer).code.name) == (FailureKind.INFRA, "browser_crashed")
    assert completed(again)


async def test_a_browser_whose_episodes_only_fail_is_replaced(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        for index in range(3):
            await play(worker, index, "infra")
        await play(worker, 3)
    assert len(browsers(tmp_path)) == 2


async def test_a_worker_that_cannot_start_says_why_and_may_try_again(tmp_path: Path) -> None:
    worker_config = config(tmp_path, SETTINGS)
    obstacle = tmp_path / "scratch" / "no_browser"
    obstacle.touch()
    worker = RolloutWorker(worker_config, "worker-0")
    health = await worker.start()
    assert health.failure is not None
    assert health.failure.code.name == "browser_start_failed"
    refused = await play(worker, 0)
    assert failed(refused).code.name == "worker_not_started"
    obstacle.unlink()
    assert (await worker.start()).failure is None
    assert completed(await play(worker, 1))
    await worker.stop()


async def test_stopping_leaves_none_of_the_workers_processes(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        await play(worker, 0)
        assert browsers(tmp_path)[0] in {process.pid for process in all_marked()}
    assert browsers(tmp_path)[0] not in {process.pid for process in all_marked()}


async def test_stopping_spares_what_was_started_after_an_earlier_worker_had_stopped(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)):
        pass
    neighbour = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    async with started(config(tmp_path / "second", SETTINGS)):
        pass
    assert neighbour.poll() is None
    neighbour.communicate(b"\n", timeout=120)


async def test_a_shard_that_cannot_be_written_fails_its_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shard_writer, "write_shard", full)
    async with started(config(tmp_path, SETTINGS)) as worker:
        answers = await asyncio.gather(play(worker, 0), play(worker, 1))
    for answer in answers:
        assert (failed(answer).kind, failed(answer).code.name) == (FailureKind.INFRA, "shard_not_written")
        assert "No space left" in failed(answer).detail


async def test_a_worker_without_a_policy_refuses_policy_episodes_only(tmp_path: Path) -> None:
    async with started(replace(config(tmp_path, SETTINGS), policy=None)) as worker:
        asked = await play(worker, 0)
        demonstration = replace(spec(1), source=Source.DEMONSTRATION)
        shown = await worker.play(Lease("e1", 1, 0), demonstration)
    assert (failed(asked).kind, failed(asked).code.name) == (FailureKind.POLICY, "no_policy")
    assert failed(shown).code.name == "no_demonstrator"


async def test_screenshots_lie_where_the_record_says(tmp_path: Path) -> None:
    async with started(config(tmp_path, SETTINGS)) as worker:
        answer = await play(worker, 0, screenshots=True)
    (trajectory,) = read_shard(completed(answer).shard)
    names = [step.screenshot for step in trajectory.steps]
    assert names == ["e0/00.png", "e0/01.png"]
    assert all((tmp_path / "screenshots" / str(name)).read_bytes() == b"png" for name in names)


async def test_apply_runs_methods_by_name_as_the_actor_manager_sends_them(tmp_path: Path) -> None:
    worker = RolloutWorker(config(tmp_path, SETTINGS), "worker-0")
    assert await worker.apply(methodcaller("ping")) == "pong"


def test_a_workers_process_needs_neither_torch_nor_ray() -> None:
    code = (
        "import sys, rollout_workers.worker, environments.embedded.kind, environments.browserless.host;"
        "print(sorted({'torch', 'transformers', 'ray', 'pydantic'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, env=_environment())
    assert run.stdout.strip() == "[]", run.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.parametrize("reference", ["chrome", "no_such_module:host", "rollout_workers.worker:no_such_host"])
def test_an_unknown_environment_is_refused_by_name(reference: str) -> None:
    with pytest.raises(ValueError, match=reference.split(":")[0]):
        load(reference)


async def test_an_episode_during_which_the_process_stood_still_is_not_scored(tmp_path: Path) -> None:
    async with started(config(tmp_path, replace(SETTINGS, loop_lag_limit_s=2.0))) as worker:
        bystander = asyncio.create_task(play(worker, 0, delay_s=2.5))
        await asyncio.sleep(0.2)
        stalled = failed(await play(worker, 1, "stall"))
        assert (stalled.kind, stalled.code.name) == (FailureKind.INFRA, "worker_stalled")
        assert failed(await bystander) == stalled
        assert (await worker.heartbeat()).loop_lag_s > 2.0
        assert completed(await play(worker, 1))


async def evaluated(worker: RolloutWorker, index: int, source: Source = Source.EVALUATION) -> Trajectory:
    answer = await worker.play(Lease(f"e{index}", 1, 0), replace(spec(index), source=source))
    return next(episode for episode in read_shard(completed(answer).shard) if episode.episode_id == f"e{index}")


async def test_evaluations_are_planned_where_the_settings_ask_for_it_and_rollouts_never(tmp_path: Path) -> None:
    planned = replace(SETTINGS, planning=PlanningSettings(mode="replan"))
    for name, settings, kept in (("plain", SETTINGS, []), ("planned", planned, ["e0.json"])):
        plans = tmp_path / name / "plans"
        made = replace(config(tmp_path, settings), plan_dir=str(plans), shard_dir=str(tmp_path / name / "shards"))
        async with started(made) as worker:
            assert (await evaluated(worker, 0)).success
            await evaluated(worker, 1, Source.ROLLOUT)
        assert sorted(path.name for path in plans.glob("*")) == kept


def click_then_exit(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
    if "reflect" in question.prompt:
        return {"reached": [1], "current": "reached", "following": []}
    return {"action": EXIT if "+ on the lamp's page" in str(question.parts[0]) else CLICK}


async def test_a_language_model_plays_evaluations_in_the_policys_place(tmp_path: Path) -> None:
    model = ScriptedModel(click_then_exit)
    settings = replace(SETTINGS, planning=PlanningSettings(mode="replan", model="planner"))
    judges = Judges({"llm": {"models": {"planner": {"model": "scripted"}}}}, lambda name: model)
    made = replace(config(tmp_path, settings), judges=judges)
    async with started(made) as worker:
        trajectory = await evaluated(worker, 0)
        assert model.prompts == ["act", "reflect", "act"]
        await evaluated(worker, 1, Source.ROLLOUT)
    assert len(model.asked) == 3
    assert trajectory.success
    assert [step.action_text for step in trajectory.steps] == [CLICK, EXIT]
    assert {step.policy_version for step in trajectory.steps} == {NO_POLICY}
