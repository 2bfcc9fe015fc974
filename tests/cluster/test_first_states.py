"""The critic's band over the whole pool: pages of unplayed tasks, opened once a run, and what is drawn by them."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cluster import first_pages
from cluster.audit.audit import audit
from cluster.audit.table import show_audit
from cluster.display.run_display import RunDisplay
from cluster.errors import RunStopped
from cluster.first_pages import FirstPrompts, first_states_stage, open_first_states, tasks_to_open
from cluster.learner_actor import LearnerActor
from cluster.run_folder.rollback import read_rollbacks
from cluster.run_folder.stage_results import FirstStatesOpened, RolloutsPlayed, TasksChosen
from cluster.run_folder.stored_run import named_by_content
from environments.browserless.environment import BrowserlessEnvironment
from environments.hosted import Hosted, hosted
from judges.declarative import DeclarativeChecks
from policy.formats import get_format
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer
from records import failure_codes as codes
from records.episodes import Milestone, Source, Task
from records.failures import EpisodeFailed, Failure
from replay.buffer import ReplayBuffer
from replay.first_states import FirstState, first_states_in, read_first_states, write_first_states
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore
from replay.shards import TornShardError
from rollout_workers.budget import FailureBudgetExceeded
from rollout_workers.scripted_agent import record_demonstration
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from sites.app import create_app
from tests.cluster.fake_run import FakeSystem, Killed, Run, before, task_sets
from tests.cluster.made_episodes import spec, store

BAND = {"value_band": True, "replayed_share": 0, "perturbed_share": 0}
OUT, IN = 0.9, 0.5


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def band_run(out: Path, **curriculum: Any) -> Run:
    return Run(out, curriculum={**BAND, **curriculum})


def pool(run: Run) -> list[str]:
    return [task.task_id for task in task_sets(run.recipe.model_dump_json()).training]


def drawn(run: Run, phase: int) -> list[str]:
    rollouts = [spec for spec in run.system.specs if spec.source is Source.ROLLOUT]
    return [spec.task.task_id for spec in rollouts if spec.phase == phase]


def unplayed(run: Run) -> list[str]:
    """The tasks of the pool that the first phase does not play, whatever its critic says."""
    first = {spec.task.task_id for spec in task_sets(run.recipe.model_dump_json()).rollouts(1, None)}
    return [task_id for task_id in pool(run) if task_id not in first]


def asked(run: Run, what: str) -> list[Any]:
    return [request[1:] for request in run.system.asked if request[0] == what]


def test_unplayed_tasks_outside_the_band_are_not_drawn(tmp_path: Path) -> None:
    """Three unplayed tasks of the pool lie within the band: the next phase has them and nothing else."""
    run, plain = band_run(tmp_path / "band"), band_run(tmp_path / "plain", value_band=False)
    within = set(unplayed(run)[:3])
    run.start(value=lambda task_id: IN if task_id in within else OUT)
    plain.start()
    assert len(drawn(run, 2)) == 6
    assert set(drawn(run, 2)) == within
    assert run.manifest.result(1, TasksChosen).outside_band == 27
    assert "3 of 30 training tasks lie within the critic's band" in run.output.getvalue()
    assert drawn(plain, 1) == drawn(run, 1), "the first phase knows no page yet"
    assert set(drawn(plain, 2)) - within, "without the band others are drawn too"
    assert (1, "pages") not in plain.manifest.stages()
    assert "outside_band" not in plain.manifest.result(1, TasksChosen).to_json()
    assert not asked(plain, "ask_first") + asked(plain, "open_first_states")


def test_each_first_page_is_opened_once_a_run_and_the_newest_episode_counts(tmp_path: Path) -> None:
    run = band_run(tmp_path)
    run.start()
    ((opened,),) = asked(run, "open_first_states")
    assert opened == unplayed(run)
    files = run.manifest.result(1, FirstStatesOpened).state_files
    buffer = ReplayBuffer(run.out / "episodes")
    newest: dict[str, str] = {}
    for phase, (critic, episodes, given) in enumerate(asked(run, "ask_first"), 1):
        for episode_id in run.manifest.result(phase, RolloutsPlayed).episodes:
            newest[buffer.entry(episode_id).task_id] = episode_id
        assert (critic, given, episodes) == ("value", files, sorted(newest.values()))
    assert len(newest) > len(set(drawn(run, 1))), "the second phase played others"
    assert run.manifest.stages().index((1, "pages")) + 1 == run.manifest.stages().index((1, "curriculum"))
    assert (2, "pages") not in run.manifest.stages()
    assert audit(run.out).findings == []
    shown = Console(file=io.StringIO(), width=200)
    show_audit(shown, audit(run.out))
    assert "each training task that was to be opened has one first state" in shown.file.getvalue()  # type: ignore[attr-defined]


def test_a_task_that_is_played_twice_is_asked_about_by_its_newest_episode(tmp_path: Path) -> None:
    run = band_run(tmp_path)
    again = next(task_id for task_id in pool(run) if task_id not in unplayed(run))
    run.start(value=lambda task_id: IN if task_id == again else OUT)
    assert set(drawn(run, 2)) == {again}
    second = asked(run, "ask_first")[1][1]
    assert [episode_id[:4] for episode_id in second if episode_id.endswith(again)] == ["p002"]


@pytest.mark.parametrize("moment", ["open_first_states", "ask_first"])
def test_a_run_cut_short_goes_on_to_the_same_tasks(tmp_path: Path, moment: str) -> None:
    def value(task_id: str) -> float:
        return IN if task_id in within else OUT

    whole, run = band_run(tmp_path / "whole"), band_run(tmp_path / "cut")
    within = set(unplayed(run)[3:8])
    whole.start(value=value)
    with pytest.raises(Killed):
        run.start(before((moment,)))
    opened_before = len(asked(run, "open_first_states"))
    run.start(value=value)
    assert opened_before + len(asked(run, "open_first_states")) == 1
    assert run.manifest.stages() == whole.manifest.stages()
    for kind in (FirstStatesOpened, TasksChosen):
        assert run.manifest.result(1, kind) == whole.manifest.result(1, kind)
    assert audit(run.out).findings == []


def test_a_task_whose_page_does_not_open_stays_out(tmp_path: Path) -> None:
    run = band_run(tmp_path)
    lost, other = unplayed(run)[:2]
    run.start(value=lambda task_id: IN if task_id in (lost, other) else OUT, opens=lambda task: task.task_id != lost)
    assert set(drawn(run, 2)) == {other}
    assert run.manifest.result(1, FirstStatesOpened).absent == {lost: "task/unknown_site: no"}
    assert "1 of 24 first pages did not open" in run.output.getvalue()
    assert audit(run.out).findings == []


def test_a_band_without_tasks_stops_the_run_and_says_between_what_the_answers_lie(tmp_path: Path) -> None:
    with pytest.raises(
        RunStopped, match=r"phase 1: .*none among 30; of 30 it is known, from 0.9 to 0.9; widen the ban"
    ):
        band_run(tmp_path).start(value=lambda task_id: OUT)


def test_the_start_policys_rollouts_come_before_the_first_pages(tmp_path: Path) -> None:
    run = Run(tmp_path, curriculum=BAND, warm_start={"rollout_tasks": 5})
    run.start()
    assert [(phase, stage) for phase, stage in run.manifest.stages() if stage == "pages"] == [(0, "pages")]
    assert audit(run.out).findings == []


def test_a_damaged_file_of_first_states_is_found_and_its_stage_is_done_again(tmp_path: Path) -> None:
    run = band_run(tmp_path)
    run.start()
    before_it = run.manifest.result(1, FirstStatesOpened)
    path = run.out / "episodes" / before_it.state_files[0]
    path.write_bytes(path.read_bytes()[:-50])
    assert {finding.subject for finding in audit(run.out).findings} >= {f"episodes/{path.name}", "phase 1 pages"}
    run.start()
    (rolled,) = read_rollbacks(run.out)
    assert rolled.stages[0] == (1, "pages")
    assert run.manifest.result(1, FirstStatesOpened) == before_it
    assert audit(run.out).findings == []


def test_an_audit_holds_the_count_of_first_states_against_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system leaves one first state fewer than it says, and a reason for a task that has one."""
    opens = FakeSystem.open_first_states

    def miscounted(self: FakeSystem, tasks: list[Task], display: RunDisplay) -> FirstStatesOpened:
        found = opens(self, tasks, display)
        return replace(found, opened=found.opened + 1, absent={tasks[0].task_id: "none"})

    monkeypatch.setattr(FakeSystem, "open_first_states", miscounted)
    run = band_run(tmp_path)
    run.start()
    found = [finding.found for finding in audit(run.out).findings if finding.part == "first states"]
    assert found == [
        "25 first states were counted, the files hold 24",
        f"tasks ['{unplayed(run)[0]}'] have a first state and a reason why they have none",
    ]


def test_first_states_are_read_as_they_were_written(tmp_path: Path) -> None:
    states = [FirstState("a", np.array([1, 2, 3], np.int32)), FirstState("b", np.array([], np.int32))]
    path = write_first_states(tmp_path, states)
    found = read_first_states(path)
    assert [(state.task_id, state.prompt_ids.tolist()) for state in found] == [("a", [1, 2, 3]), ("b", [])]
    assert found[0].prompt_ids.dtype == np.int32
    (place,) = named_by_content([path.name])
    assert place == f"episodes/{path.name}", "where a learner of another node brings it to"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TornShardError):
        read_first_states(path)
    assert first_states_in(tmp_path) == {}


class Lengths:
    """A critic for which a longer prompt is a better state."""

    def ask_states(self, critic: str, prompts: list[Any], task_ids: list[str]) -> Any:
        assert task_ids == sorted(task_ids)
        return np.array([len(prompt) / 4 for prompt in prompts], np.float32)


def test_the_learner_takes_an_episodes_first_state_before_one_in_a_file(tmp_path: Path) -> None:
    played = spec(1)
    store(tmp_path, [played], [1.0])  # its prompt has three tokens
    files = [
        write_first_states(tmp_path, [FirstState(name, np.ones(length, np.int32)) for name, length in states]).name
        for states in ([("z", 1), (played.task.task_id, 4)], [("a", 2)])
    ]
    actor = LearnerActor.__new__(LearnerActor)
    actor._learner = Lengths()  # type: ignore[assignment]
    actor._episodes = LabelledBuffer(ReplayBuffer(tmp_path), LabelStore(tmp_path), {})
    found = actor.ask_first("value", [played.episode_id], files)
    assert found == {"a": 0.5, "z": 0.25, played.task.task_id: 0.75}
    assert actor.ask_first("value", [], files)[played.task.task_id] == 1.0


def prompts_for(tmp_path: Path, tasks: list[Task], prompt_format: str = "waymark", **rollout: Any) -> FirstPrompts:
    texts = ["exit()", *(task.intent for task in tasks)] * 8
    tokenizer = TextTokenizer.load(train_tokenizer(texts, 600, tmp_path / "tokenizer"))
    limits = PolicySettings(prompt_format=prompt_format, max_prompt_tokens=3000)
    settings = RolloutSettings(**rollout)
    return FirstPrompts(get_format(prompt_format), tokenizer, limits, DeclarativeChecks(), settings, seed=5)


@pytest.mark.parametrize("prompt_format", ["waymark", "waymark_milestones"])
async def test_a_first_state_is_the_prompt_that_an_episode_begins_with(tmp_path: Path, prompt_format: str) -> None:
    async with hosted("browserless", {"names": ["shop"]}) as running:
        (task,) = running.tasks.task_set(0, "train", 1)
        reached = Milestone("The shop is open", {"url": "__SHOP__/*"})
        task = replace(task, milestones=(reached, *task.milestones[1:]))
        prompts = prompts_for(tmp_path, [task], prompt_format)
        state = await prompts.of(task, running)
    demonstrated = EpisodeSpec("d0", task, Source.DEMONSTRATION, phase=0, seed=5)
    env, settings = BrowserlessEnvironment(create_app(0)), prompts.rollout
    played = await record_demonstration(
        env, prompts.prompt_format, prompts.tokenizer, demonstrated, settings, prompts.limits
    )
    assert state.prompt_ids.tolist() == played.steps[0].prompt_ids.tolist()
    told = "+ The shop is open" in prompts.tokenizer.decode(state.prompt_ids.tolist())
    assert told is (prompt_format == "waymark_milestones")


async def test_pages_that_were_opened_before_a_kill_are_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_pages, "_A_FILE", 2)
    async with hosted("browserless", {"names": ["shop"]}) as running:
        tasks = running.tasks.task_set(0, "train", 5)
        tasks[1] = replace(tasks[1], start_url="__NOWHERE__/")
        prompts = prompts_for(tmp_path, tasks, attempts=1)
        folder = tmp_path / "episodes"
        with pytest.raises(Killed):
            await open_first_states(tasks, running, prompts, folder, killed_at(2))
        left = tasks_to_open(tasks, folder)
        assert left == [tasks[1], *tasks[4:]], "two files of two were written, but one page did not open"
        absent = await open_first_states(left, running, prompts, folder)
        assert tasks_to_open(tasks, folder) == [tasks[1]]
    assert absent.keys() == {tasks[1].task_id}
    assert absent[tasks[1].task_id].startswith("task/unknown_site")
    recorded = first_states_stage(absent, folder)
    assert (len(recorded.state_files), recorded.opened) == (3, 4)
    assert recorded.numbers() == {"opened": 4, "absent": 1}


def killed_at(call: int) -> Callable[[int, int], None]:
    calls = iter(range(call - 1, -1, -1))

    def told(opened: int, absent: int) -> None:
        if next(calls) == 0:
            raise Killed

    return told


class NoPages:
    """A host whose pages never open, and of which no more are asked for at a time than may be."""

    def __init__(self) -> None:
        self.open = self.most = 0

    async def environment(self) -> NoPages:
        self.open += 1
        self.most = max(self.most, self.open)
        return self

    async def reset(self, task: Task, **named: Any) -> None:
        await asyncio.sleep(0)  # the others have their turn
        raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, "nobody answers"))

    async def close(self) -> None:
        self.open -= 1


async def test_an_outage_stops_the_run_instead_of_emptying_the_pool(tmp_path: Path) -> None:
    tasks = [spec(number).task for number in range(40)]
    host = NoPages()
    running = Hosted(None, host, None)  # type: ignore[arg-type]
    prompts = prompts_for(tmp_path, tasks[:1], contexts_per_worker=3, attempts=2)
    with pytest.raises(FailureBudgetExceeded, match="stopped after 40 infra failures; at most 16"):
        await open_first_states(tasks, running, prompts, tmp_path)
    assert host.most == 3
    few = await open_first_states(tasks[:16], running, prompts, tmp_path)
    assert set(few.values()) == {"infra/site_unreachable: nobody answers"}
