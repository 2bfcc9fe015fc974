"""The stage ``distil``: milestones from a phase's successes, by which its episodes are labelled, and later ones."""

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
from cluster.milestones.distilling import examples_of, with_distilled
from cluster.recipe.recipe import build_recipe, identity
from cluster.recorded_run import RecordedRun
from cluster.run_folder.stage_results import MilestonesDistilled, RolloutsPlayed
from judges.of_milestones.distillation import Distilled
from judges.settings import MilestoneSettings
from records.episodes import Source, Task, Trajectory
from records.labels import LabelSubject
from replay.labelled import LabelledBuffer
from tests.cluster.fake_run import ORDER, Killed, Run, before
from tests.cluster.made_episodes import spec, trajectory
from tests.judges.of_milestones.scripted_model import ScriptedModel

JUDGE = "milestone_matching"
SECTIONS: dict[str, Any] = {
    "milestones": {"source": "successes", "model": "m"},
    "replay": {"milestones": JUDGE},
    "rollout": {"retry_delay_s": 0.0},
}


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def adaptive(out: Path, **changes: dict[str, Any]) -> Run:
    return Run(out, **{name: {**SECTIONS.get(name, {}), **changes.get(name, {})} for name in {*SECTIONS, *changes}})


def asked(run: Run) -> list[list[str]]:
    return [what[1] for what in run.system.asked if what[0] == "distil_milestones"]


def rollouts(run: Run, phase: int) -> list[Trajectory]:
    recorded = RecordedRun(run.out)
    return recorded.buffer.trajectories(recorded.manifest.result(phase, RolloutsPlayed).episodes)


def labelled(run: Run, phase: int) -> dict[str, Trajectory]:
    """The phase's rollouts as the learner sees them."""
    recorded = RecordedRun(run.out)
    buffer = LabelledBuffer(recorded.buffer, recorded.labels, run.recipe.replay.judges)
    return {one.episode_id: one for one in buffer.trajectories(one.episode_id for one in rollouts(run, phase))}


def solved(run: Run, phase: int) -> set[str]:
    return {episode.template for episode in rollouts(run, phase) if episode.success}


def test_a_first_success_gives_its_template_milestones_and_others_have_none(tmp_path: Path) -> None:
    run = adaptive(tmp_path)
    run.start()
    more = {"rollouts": ["distil", "label"]}
    assert run.manifest.stages() == [
        (phase, stage) for phase, first in ORDER for stage in [first, *more.get(first, [])]
    ], "and no stage that writes milestones before anybody has played"
    assert solved(run, 1) < {episode.template for episode in rollouts(run, 1)}
    for episode in labelled(run, 1).values():
        if episode.template in solved(run, 1):
            assert episode.final_milestones == (True,), "its one action is what was distilled"
            assert episode.steps[0].similarity == pytest.approx(1.0, abs=1e-3)
        else:
            assert episode.final_milestones == ()
            assert [step.milestones for step in episode.steps] == [()]
    assert {len(task.milestones) for task in RecordedRun(tmp_path).tasks.values()} == {4}, "as they were played"
    assert not audit(tmp_path).findings


def test_what_was_distilled_serves_later_phases_and_is_not_asked_for_again(tmp_path: Path) -> None:
    run = adaptive(tmp_path)
    run.start()
    first, second = asked(run)
    assert set(first) == solved(run, 1)
    assert set(second) == solved(run, 2) - solved(run, 1), "successes of no fewer steps refine nothing"
    again = [one for one in labelled(run, 2).values() if one.template in set(first) - solved(run, 2)]
    assert all(one.final_milestones == (True,) for one in again)
    for phase in (1, 2):
        result = run.manifest.result(phase, MilestonesDistilled)
        met = {one.template for one in rollouts(run, phase)}
        known = solved(run, 1) | (solved(run, 2) if phase == 2 else set())
        assert (result.met, result.covered) == (len(met), len(met & known))
        assert result.cost_usd == pytest.approx(0.001 * len(result.distilled))


def test_a_run_cut_short_labels_by_what_it_had_distilled(tmp_path: Path) -> None:
    run = adaptive(tmp_path)
    with pytest.raises(Killed):
        run.start(before(("update_critics", 1)))
    kept = run.manifest.result(1, MilestonesDistilled)
    run.start(model=ScriptedModel({"milestones": ["Search for a lamp"]}))
    assert run.manifest.result(1, MilestonesDistilled) == kept
    assert not set(asked(run)[0]) & set(kept.distilled)
    assert not audit(tmp_path).findings


def test_a_judge_that_is_asked_later_is_told_of_them_too(tmp_path: Path) -> None:
    run = adaptive(tmp_path)
    run.start()
    before_it = labelled(run, 1)
    for file in (tmp_path / "labels").iterdir():
        file.unlink()
    label_run(tmp_path, JUDGE, lambda done, total, lost: None)
    assert {name: one.final_milestones for name, one in labelled(run, 1).items()} == {
        name: one.final_milestones for name, one in before_it.items()
    }
    recorded = RecordedRun(tmp_path)
    evaluated = recorded.buffer.ids(sources=[Source.EVALUATION])
    label = recorded.labels.find(recorded.buffer.entry(evaluated[0]), JUDGE, LabelSubject.MILESTONES)
    assert label is not None
    assert len(label.descriptions) == 4, "evaluated tasks keep their own"


@pytest.mark.parametrize("absent", ["refuse", "warn"])
def test_a_model_without_a_usable_answer_stops_the_run_or_is_told_of(tmp_path: Path, absent: str) -> None:
    run, model = adaptive(tmp_path, milestones={"absent": absent}), ScriptedModel("prose")
    if absent == "refuse":
        with pytest.raises(RunStopped, match=r"0 of \d templates of phase 1 .*judge_nonsense.*milestones.absent"):
            run.start(model=model)
        run.start()
        assert run.manifest.result(1, MilestonesDistilled).absent == {}
    else:
        run.start(model=model)
        result = run.manifest.result(1, MilestonesDistilled)
        assert (set(result.absent), result.covered) == (solved(run, 1), 0)
        assert "no usable answer" in run.output.getvalue()
        assert {one.final_milestones for one in labelled(run, 1).values()} == {()}


def played(name: str, template: str, steps: int, outcome: float = 1.0) -> Trajectory:
    one = trajectory(spec(0), outcome)
    return replace(one, episode_id=name, task_id=f"{template}.{name}", template=template, steps=one.steps * steps)


EPISODES = [
    played("a", "shop.buy", 5), played("b", "shop.buy", 3), played("c", "shop.buy", 3), played("d", "shop.buy", 1, 0.0),
    played("e", "wiki.find", 2, 0.0), played("f", "map.route", 4),
]  # fmt: skip
TASKS = {
    one.episode_id: Task(one.task_id, ("shop",), "Do it", "__SHOP__/", {}, one.template) for one in EPISODES
}  # fmt: skip


def shown(known: dict[str, Distilled], **settings: Any) -> dict[str, str]:
    found = examples_of(EPISODES, TASKS, known, MilestoneSettings(**settings))
    return {one.of: one.success.episode_id for one in found}


def test_the_shortest_success_of_each_template_is_shown_where_it_says_something_new() -> None:
    assert shown({}) == {"map.route": "f", "shop.buy": "b"}
    of = {steps: Distilled(("Buy",), steps, "m", "p", 0.0) for steps in (3, 4)}
    assert shown({"shop.buy": of[3], "map.route": of[4]}) == {}, "as many steps are no better"
    assert shown({"shop.buy": of[4], "map.route": of[4]}) == {"shop.buy": "b"}
    assert shown({"shop.buy": of[4]}, refined=False) == {"map.route": "f"}
    assert shown({}, per="task") == {"map.route.f": "f", **{f"shop.buy.{name}": name for name in "abc"}}


def test_a_judge_is_told_with_the_parameters_of_the_task_at_hand() -> None:
    task = replace(TASKS["a"], parameters={"product": "Blue Kettle", "count": 2})
    distilled = Distilled(("Search for <product>", "Choose <count> as the <field>"), 2, "m", "p", 0.0)
    said = [one.description for one in with_distilled(task, {"shop.buy": distilled}).milestones]
    assert said == ["Search for Blue Kettle", "Choose 2 as the <field>"]
    assert (
        with_distilled(task, {"shop.buy.a": replace(distilled, milestones=("Own",)), "shop.buy": distilled})
        .milestones[0]
        .description
        == "Own"
    )
    assert with_distilled(task, {}).milestones == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"milestones": {"model": ""}}, "milestones.model: expected one of judges.llm.models"),
        ({"replay": {"milestones": ""}}, "replay.milestones: expected a judge that says which"),
        ({"replay": {"outcomes": "orm"}}, "replay.outcomes: expected none with milestones.source 'successes'"),
        ({"milestones": {"source": "thin air"}}, "source"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        build_recipe({name: {**section, **changes.get(name, {})} for name, section in SECTIONS.items()})


def test_a_run_from_before_there_was_a_choice_goes_on() -> None:
    recipe = build_recipe({})
    config = json.loads(recipe.model_dump_json())
    for name in ("source", "per", "refined"):
        del config["milestones"][name]
    assert identity(recipe, config) == identity(recipe)
    other = build_recipe(SECTIONS)
    assert identity(other, config) != identity(other)
