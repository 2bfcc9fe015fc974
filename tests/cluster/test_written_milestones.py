"""Tasks without milestones in a run: written before they are played, once a task, or refused or told, as set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.audit import audit
from cluster.errors import RecipeError, RunStopped
from cluster.judge_commands import label_run
from cluster.milestones.writing import NOT_ASKED, WritingLimits, nothing_written, write_for
from cluster.preflight.doctor import check_tasks
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.recorded_run import RecordedRun
from cluster.run_folder.stage_results import MilestonesWritten
from cluster.task_sets import TaskSets
from environments.hosted import hosted
from judges.answers import ANSWERED
from judges.settings import MilestoneSettings
from records import failure_codes as codes
from records.checks import Status
from records.deadline import Deadline
from records.episodes import Source
from records.failures import EpisodeFailed, Failure
from records.labels import LabelSubject
from rollout_workers.settings import RolloutSettings
from tests.cluster import label_judges
from tests.cluster.fake_run import Killed, Run, before
from tests.judges.of_milestones.scripted_model import ScriptedModel

GUESTBOOK = "examples.guestbook:GUESTBOOK"
BARE: dict[str, Any] = {
    "environment": GUESTBOOK,
    "training_tasks": 4,
    "evaluation": {"splits": ["test"], "tasks_per_split": 2},
}


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def bare_run(out: Path, **milestones: Any) -> Run:
    return Run(out, run=BARE, milestones=milestones, curriculum={"tasks_per_phase": 3})


def asked(run: Run) -> list[str]:
    return [name for what in run.system.asked if what[0] == "write_milestones" for name in what[1]]


def test_milestones_are_written_once_a_task_before_it_is_played(tmp_path: Path) -> None:
    run = bare_run(tmp_path, model="m")
    moments = run.start().moments()
    assert moments.index(("write_milestones",)) + 1 == moments.index(("play", "rollout", 1))
    played = [spec for spec in run.system.specs if spec.source is Source.ROLLOUT]
    assert {len(spec.task.milestones) for spec in played} == {2}
    assert sorted(asked(run)) == sorted({spec.task.task_id for spec in played}), "each task once"
    assert all(RecordedRun(tmp_path).tasks[spec.episode_id] == spec.task for spec in played)
    assert not audit(tmp_path).findings


def test_a_run_cut_short_after_they_were_written_plays_with_the_same_ones(tmp_path: Path) -> None:
    run = bare_run(tmp_path, model="m")
    with pytest.raises(Killed):
        run.start(before(("play", "rollout", 1)))
    before_the_end = asked(run)
    run.start()
    assert before_the_end
    assert not set(asked(run)) & set(before_the_end)
    assert run.manifest.result(1, MilestonesWritten).written.keys() == set(before_the_end)


def test_tasks_that_bring_milestones_are_not_written_for(tmp_path: Path) -> None:
    run = Run(tmp_path, milestones={"model": "m"})
    run.start()
    assert not asked(run)
    assert (1, "milestones") not in run.manifest.stages()


@pytest.mark.parametrize(("prompt_format", "told"), [("waymark_milestones", True), ("waymark", False)])
def test_evaluated_tasks_get_some_where_the_policy_is_told_of_them(
    tmp_path: Path, prompt_format: str, told: bool
) -> None:
    policy = {"prompt_format": prompt_format}
    run = Run(tmp_path, run=BARE, milestones={"model": "m"}, curriculum={"tasks_per_phase": 3}, policy=policy)
    run.start()
    evaluated = [spec for spec in run.system.specs if spec.source is Source.EVALUATION]
    assert {len(spec.task.milestones) for spec in evaluated} == ({2} if told else {0})
    assert ((0, "milestones") in run.manifest.stages()) is told
    assert len(asked(run)) == len(set(asked(run))), "each task once, whatever it is evaluated"
    assert {spec.task.task_id for spec in evaluated} <= set(asked(run)) or not told
    assert all(RecordedRun(tmp_path).tasks[spec.episode_id] == spec.task for spec in evaluated)
    assert not audit(tmp_path).findings


def test_a_judge_that_is_asked_later_is_told_of_them_too(tmp_path: Path) -> None:
    run = bare_run(tmp_path, model="m")
    run.start()
    judge = f"{label_judges.HERE}:TOLD"
    labelled = label_run(tmp_path, judge, lambda done, total, lost: None)
    recorded = RecordedRun(tmp_path)
    buffer, labels = recorded.buffer, recorded.labels
    said = {
        source: {
            label.outcome
            for episode_id in buffer.ids(sources=[source])
            if (label := labels.find(buffer.entry(episode_id), judge, LabelSubject.OUTCOME))
        }
        for source in (Source.ROLLOUT, Source.EVALUATION)
    }
    assert labelled.labelled == labelled.episodes > 0
    assert said == {Source.ROLLOUT: {1.0}, Source.EVALUATION: {0.0}}


def test_a_task_that_gets_none_stops_the_run_and_is_asked_about_again(tmp_path: Path) -> None:
    run = bare_run(tmp_path, model="m")
    with pytest.raises(
        RunStopped, match=r"phase 1: 1 of 3 tasks have no milestones.*judge_nonsense.*milestones.absent"
    ):
        run.start(writes=lambda task: task.task_id != run.system.asked[-1][1][0])
    run.start()
    assert len(asked(run)) >= 3


def test_a_task_that_gets_none_may_be_told_and_counted_instead(tmp_path: Path) -> None:
    run = bare_run(tmp_path, model="m", absent="warn")
    run.start(writes=lambda task: False)
    written = run.manifest.result(1, MilestonesWritten)
    assert written.numbers() == {"written": 0, "absent": 3, "cost_usd": 0.5}
    assert "3 of 3 tasks have no milestones" in run.output.getvalue().replace("\n", " ")


def test_an_algorithm_that_learns_from_no_milestones_asks_for_none(tmp_path: Path) -> None:
    run = Run(tmp_path, run=BARE, learner={"algorithm": "webrl"}, curriculum={"tasks_per_phase": 3})
    run.start()
    assert not asked(run)
    assert not audit(tmp_path).findings


@pytest.mark.parametrize(
    ("sections", "status"),
    [
        ({}, Status.FAIL),
        ({"milestones": {"absent": "warn"}}, Status.WARN),
        ({"milestones": {"model": "m"}}, None),
        ({"learner": {"algorithm": "webrl"}}, None),
        ({"learner": {"algorithm": "admire_grpo"}, "run": {**BARE, "attempts_per_task": 2}}, Status.FAIL),
        ({"learner": {"algorithm": "outcome_grpo"}, "run": {**BARE, "attempts_per_task": 2}}, None),
    ],
)
def test_the_check_refuses_or_tells_of_tasks_without_milestones(
    sections: dict[str, Any], status: Status | None
) -> None:
    recipe: Recipe = build_recipe({"run": BARE, **sections})
    said = {check.name: check for check in check_tasks(recipe)}
    assert said["tasks"].status is Status.OK
    if status is None:
        assert "milestones" not in said
    else:
        assert said["milestones"].status is status
        assert "4 of 4 training tasks have none" in said["milestones"].found


def test_descriptions_alone_need_a_judge_who_says_when_they_are_reached() -> None:
    def failed(**sections: Any) -> list[str]:
        models = {"llm": {"models": {"m": {"model": "x", "client": "gemini", "key_variable": "K"}}}}
        recipe = build_recipe({"run": BARE, "judges": models, **sections})
        return [check.name for check in check_tasks(recipe) if check.status is Status.FAIL]

    described = {"model": "m", "checks": "none"}
    assert failed(milestones=described) == ["milestones.checks"]
    assert failed(milestones=described, replay={"milestones": "autorater"}) == []
    assert failed(milestones={"model": "m"}) == []
    assert failed(milestones=described, learner={"algorithm": "webrl"}) == []


def test_the_check_says_nothing_of_tasks_that_bring_their_own() -> None:
    assert [check.name for check in check_tasks(build_recipe({}, ["run.evaluation.splits=[test]"]))] == ["tasks"]


def test_who_was_not_asked_is_told_why() -> None:
    assert nothing_written([]).numbers() == {"written": 0, "absent": 0, "cost_usd": 0.0}
    assert "milestones.model" in NOT_ASKED


def answer(word: str) -> str:
    pages = [{"kind": "url", "value": f"__SHOP__/{word}{i}"} for i in range(4)]
    made = [{"description": f"Page {i} is open", "conditions": [page]} for i, page in enumerate(pages)]
    return json.dumps({"milestones": made})


async def test_they_are_written_from_the_first_pages_of_an_environment() -> None:
    async with hosted("browserless", {"names": ["shop"]}) as running:
        tasks = running.tasks.task_set(0, "train", 3)

        def reply(question: Any) -> str:
            said = "\n".join(str(part) for part in question.parts)
            return "no" if tasks[2].intent in said else answer("goal" if "searchbox Search" in said else "blind")

        limits = WritingLimits(MilestoneSettings(model="m", at_once=2), RolloutSettings())
        found = await write_for(tasks, running, ScriptedModel(reply), limits)
    assert set(found.written) == {tasks[0].task_id, tasks[1].task_id}
    assert found.written[tasks[0].task_id].milestones[3].check == {"url": "__SHOP__/goal3"}
    assert found.absent[tasks[2].task_id].startswith("judge/judge_nonsense")
    assert found.cost_usd == pytest.approx(0.002)


async def test_a_task_whose_page_does_not_open_has_none_and_says_why() -> None:
    async with hosted("browserless", {"names": ["shop"]}) as running:
        (task,) = running.tasks.task_set(0, "train", 1)
        lost = replace(task, task_id="lost", start_url="__NOWHERE__/")
        limits = WritingLimits(MilestoneSettings(model="m"), RolloutSettings(attempts=1))
        found = await write_for([lost], running, ScriptedModel(answer("x")), limits)
    assert not found.written
    assert found.absent["lost"].startswith("task/unknown_site")


class Spent:
    """A language model whose budget is spent."""

    name = "spent"

    async def ask(self, question: Any, deadline: Deadline) -> Any:
        raise EpisodeFailed(Failure(codes.JUDGE_BUDGET, "nothing is left"))


async def test_a_spent_budget_is_no_tasks_own_trouble() -> None:
    async with hosted("browserless", {"names": ["shop"]}) as running:
        limits = WritingLimits(MilestoneSettings(model="m"), RolloutSettings(attempts=1))
        with pytest.raises(EpisodeFailed, match="judge/judge_budget: nothing is left"):
            await write_for(running.tasks.task_set(0, "train", 2), running, Spent(), limits)


def test_answers_are_milestones_of_all_that_is_played_where_the_recipe_asks(tmp_path: Path) -> None:
    plain, asked = (build_recipe({"milestones": {"answer": answer}}) for answer in (False, True))
    for name in ("demonstrations", "rollouts", "evaluation"):
        of = {"demonstrations": ("d", 60), "rollouts": (1, None), "evaluation": (0,)}[name]
        without, whole = (getattr(TaskSets(recipe), name)(*of) for recipe in (plain, asked))
        questions = [spec for spec in whole if "string_match" in spec.task.evaluation["eval_types"]]
        assert questions, name
        assert {spec.task.milestones[-1].description for spec in questions} == {ANSWERED}
        assert {len(spec.task.milestones) for spec in whole if spec not in questions} == {4}
        assert [spec.episode_id for spec in whole] == [spec.episode_id for spec in without], "the same tasks otherwise"
        assert all(ANSWERED not in [one.description for one in spec.task.milestones] for spec in without)
    run = Run(tmp_path, milestones={"answer": True})
    run.start()
    recorded = RecordedRun(tmp_path).tasks
    played = [spec for spec in run.system.specs if spec.source is not Source.DEMONSTRATION]
    assert all(recorded[spec.episode_id] == spec.task for spec in played)
    assert not audit(tmp_path).findings


async def test_an_answer_is_added_to_what_a_model_wrote() -> None:
    asked = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "12"}}
    async with hosted("browserless", {"names": ["shop"]}) as running:
        question, other = (
            replace(task, evaluation=evaluation, milestones=())
            for task, evaluation in zip(
                running.tasks.task_set(0, "train", 2), (asked, {"eval_types": ["url_match"]}), strict=True
            )
        )
        for settings, counts in ((MilestoneSettings(answer=True), [5, 4]), (MilestoneSettings(), [4, 4])):
            limits = WritingLimits(settings, RolloutSettings())
            found = await write_for([question, other], running, ScriptedModel(answer("x")), limits)
            written = [found.written[task.task_id].milestones for task in (question, other)]
            assert [len(one) for one in written] == counts
            assert (written[0][-1].check == {"answer": {"exact_match": "12"}}) is settings.answer


def test_an_answer_is_no_milestone_of_a_judge_who_does_not_know_it() -> None:
    with pytest.raises(RecipeError, match="milestones.answer: expected false with replay.milestones"):
        build_recipe({"milestones": {"answer": True}, "replay": {"milestones": "milestone_checker"}})
