"""What a run plays depends on its recipe alone, has ids of its own, and keeps away from every evaluation set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace

import pytest

from cluster.errors import RecipeError
from cluster.evaluation import with_longer_tasks
from cluster.preflight.doctor import check_tasks
from cluster.recipe.evaluated import longer
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.stage_results import TasksChosen, read_result
from cluster.task_sets import TaskSets
from records.checks import Status
from records.episodes import Source, Task
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from sites.tasks import split_of, template_named

SMALL = {
    "run": {"training_tasks": 60, "evaluation": {"tasks_per_split": 25}},
    "warm_start": {"long_share": 0.25},
    "curriculum": {"tasks_per_phase": 24},
}


def sets(**run: object) -> TaskSets:
    return TaskSets(build_recipe({**SMALL, "run": {**SMALL["run"], **run}}))


def ids(specs: Iterable[EpisodeSpec]) -> list[str]:
    return [spec.episode_id for spec in specs]


@pytest.fixture(scope="module")
def tasks() -> TaskSets:
    return sets()


def everything(tasks: TaskSets) -> list[EpisodeSpec]:
    chosen = tasks.choose(2, [], tasks.rollouts(1, None), {}).tasks
    return [
        *tasks.demonstrations("demo", 40),
        *tasks.demonstrations("flawless", 40, flawless=True),
        *tasks.evaluation(0),
        *tasks.rollouts(1, None),
        *tasks.evaluation(1),
        *tasks.rollouts(2, chosen),
        *tasks.evaluation(2),
    ]


def test_episode_ids_are_unique_in_a_run_and_the_same_in_the_next(tasks: TaskSets) -> None:
    first, again = everything(tasks), everything(sets())
    assert len(set(ids(first))) == len(first)
    assert first == again


def test_attempts_and_passes_have_ids_of_their_own() -> None:
    tasks = sets(attempts_per_task=3, evaluation={"tasks_per_split": 5, "passes": 2, "temperature": 0.7})
    rollouts, evaluation = tasks.rollouts(1, None), tasks.evaluation(1)
    assert len(set(ids(rollouts))) == len(rollouts) == 24 * 3
    assert len(set(ids(evaluation))) == len(evaluation) == 2 * 5 * 2
    assert {spec.temperature for spec in evaluation} == {0.7}


def test_a_split_may_have_a_number_of_tasks_of_its_own() -> None:
    equal = sets(evaluation={"tasks_per_split": 9})
    fewer = sets(evaluation={"tasks_per_split": 9, "tasks": {"test_templates": 4, "validation": 3}})
    assert [len(fewer.split(split)) for split in ("test", "test_templates", "validation")] == [9, 4, 3]
    assert [spec.task.split for spec in fewer.evaluation(1)] == ["test"] * 9 + ["test_templates"] * 4
    assert fewer.split("test") == equal.split("test")
    assert fewer.split("test_templates") == equal.split("test_templates")[:4]


def test_the_first_tasks_of_each_set_are_those_that_a_run_plays() -> None:
    tasks = sets(evaluation={"tasks_per_split": 25, "splits": ["test", "validation"]})
    looked_at = tasks.look(8)
    assert list(looked_at) == ["test", "validation", "train"]
    for split in ("test", "validation"):
        assert looked_at[split] == tasks.split(split)[:8], "a smaller set is the beginning of a larger one"
    assert {task.task_id for task in looked_at["train"]} <= {task.task_id for task in tasks.training}


def test_another_seed_plays_other_tasks_and_is_judged_on_the_same(tasks: TaskSets) -> None:
    other = sets(seed=1)
    assert {t.task_id for t in other.training} != {t.task_id for t in tasks.training}
    assert ids(other.rollouts(1, None)) != ids(tasks.rollouts(1, None))
    assert ids(other.demonstrations("demo", 40)) != ids(tasks.demonstrations("demo", 40))
    assert ids(other.evaluation(0)) == ids(tasks.evaluation(0))


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_demonstrations_show_long_tasks_in_the_share_asked_for(share: float) -> None:
    recipe = build_recipe({**SMALL, "warm_start": {"long_share": share, "long_horizon": 8}})
    specs = TaskSets(recipe).demonstrations("demo", 40)
    assert len(specs) == 40
    assert sum(spec.task.horizon >= 8 for spec in specs) == round(40 * share)
    assert {spec.source for spec in specs} == {Source.DEMONSTRATION}
    assert all(spec.quality is not None for spec in specs)
    assert len({spec.seed for spec in specs}) == 40


def test_flawless_demonstrations_are_asked_for_as_such(tasks: TaskSets) -> None:
    assert [spec.quality for spec in tasks.demonstrations("flawless", 10, flawless=True)] == [None] * 10


@pytest.mark.parametrize("splits", [("test", "test_templates"), ("validation", "validation_templates")])
def test_nothing_trained_on_is_in_an_evaluation_set(splits: tuple[str, ...]) -> None:
    tasks = sets(evaluation={"tasks_per_split": 60, "splits": list(splits)})
    held_out = [task for split in splits for task in tasks.split(split)]
    unseen = {task.template for task in held_out if task.split.endswith("_templates")}
    failed = [task.task_id for task in tasks.training]
    chosen = tasks.rollouts(2, tasks.choose(2, failed, tasks.rollouts(1, None), {}).tasks)
    trained = [
        *tasks.training,
        *(s.task for s in (*tasks.demonstrations("demo", 80), *tasks.rollouts(1, None), *chosen)),
    ]
    assert {task.split for task in held_out} == set(splits)
    assert {task.split for task in trained} == {"train"}
    assert not {task.task_id for task in held_out} & {task.task_id for task in trained}
    assert not {task.intent for task in held_out} & {task.intent for task in trained}
    assert unseen
    assert not unseen & {task.template for task in trained}


def test_tasks_chosen_by_the_curriculum_come_back_from_json_as_they_were(tasks: TaskSets) -> None:
    failed = [task.task_id for task in tasks.training.tasks[:8]]
    chosen = tasks.choose(2, failed, tasks.rollouts(1, None), {})
    assert sum(chosen.origins.values()) == 24
    stored = read_result(1, TasksChosen.stage, json.loads(json.dumps(chosen.to_json())))
    assert isinstance(stored, TasksChosen)
    again = tasks.rollouts(2, stored.tasks)
    assert len(again) == 24
    training = {task.task_id: task for task in tasks.training}
    from_training = [spec.task for spec in again if spec.task.task_id in training]
    assert len(from_training) >= 20
    assert from_training == [training[task.task_id] for task in from_training]
    assert again == sets().rollouts(2, stored.tasks)
    assert {spec.phase for spec in again} == {2}


def test_the_curriculum_is_drawn_to_what_failed(tasks: TaskSets) -> None:
    failed = [task.task_id for task in tasks.training if task.site == "forum"][:4]
    origins = tasks.choose(2, failed, tasks.rollouts(1, None), {}).origins
    assert origins["similar"] > 0
    assert origins["replayed"] > 0
    calm = tasks.choose(2, [], tasks.rollouts(1, None), {}).origins
    assert calm["similar"] == calm["replayed"] == 0


def test_the_critics_band_leaves_out_what_is_too_easy_or_too_hard() -> None:
    recipe = build_recipe({**SMALL, "curriculum": {"tasks_per_phase": 24, "value_band": True}})
    tasks = TaskSets(recipe)
    values = {task.task_id: 0.99 if number < 30 else 0.5 for number, task in enumerate(tasks.training)}
    choice = tasks.choose(2, [], tasks.rollouts(1, None), values)
    chosen = tasks.rollouts(2, choice.tasks)
    assert len(chosen) == 24
    assert {values[spec.task.task_id] for spec in chosen} == {0.5}
    assert choice.outside_band == 30


def perturbed(tasks: TaskSets, failed: list[Task]) -> list[Task]:
    chosen = tasks.choose(2, [task.task_id for task in failed], tasks.rollouts(1, None), {})
    training = {task.task_id for task in tasks.training}
    made = [spec.task for spec in tasks.rollouts(2, chosen.tasks) if spec.task.task_id not in training]
    assert len(made) == chosen.origins["perturbed"]
    return made


def test_perturbed_tasks_are_new_training_tasks_of_a_failed_template(tasks: TaskSets) -> None:
    failed = list(tasks.training.tasks[:20])
    made = perturbed(tasks, failed)
    assert made
    for task in made:
        assert task.template in {other.template for other in failed}
        assert split_of(template_named(task.template), task.parameters) == "train" == task.split
        assert tasks.training.held_out.conflict(task) is None


def test_a_perturbed_task_that_fails_in_its_turn_can_be_chosen_again(tasks: TaskSets) -> None:
    chosen = tasks.choose(2, [task.task_id for task in tasks.training.tasks[:20]], tasks.rollouts(1, None), {})
    played = tasks.rollouts(2, chosen.tasks)
    training = {task.task_id for task in tasks.training}
    failed = [spec.task.task_id for spec in played if spec.task.task_id not in training]
    assert failed
    after = tasks.rollouts(3, tasks.choose(3, failed, played, {}).tasks)
    assert set(failed) & {spec.task.task_id for spec in after}


def test_pictures_are_taken_of_the_first_episodes_only(tasks: TaskSets) -> None:
    specs = tasks.evaluation(2, screenshots=3)
    assert [spec.screenshots for spec in specs] == [True] * 3 + [False] * (len(specs) - 3)
    assert ids(specs) == ids(tasks.evaluation(2))


def chain_sets(**chains: object) -> TaskSets:
    """The sets of a recipe whose tasks are chains."""
    embedded = {"family": "chains", "names": ["wiki", "code"], "chains": {"data_seeds": 2, **chains}}
    splits = ["test", "test_wordings", "test_long", "test_atoms"]
    run = {"training_tasks": 40, "evaluation": {"tasks_per_split": 12, "splits": splits}}
    curriculum = {"tasks_per_phase": 12}
    return TaskSets(build_recipe({"run": run, "environments": {"embedded": embedded}, "curriculum": curriculum}))


def test_chains_are_a_family_of_tasks_with_splits_of_their_own() -> None:
    tasks = chain_sets(lengths=[2, 3], long=[4])
    evaluation = tasks.evaluation(0)
    assert {spec.task.split for spec in evaluation} == {"test", "test_wordings", "test_long", "test_atoms"}
    assert len(set(ids(evaluation))) == len(evaluation) == 48
    chosen = tasks.choose(2, [task.task_id for task in tasks.training], tasks.rollouts(1, None), {})
    played = [spec.task for spec in (*tasks.rollouts(1, None), *tasks.rollouts(2, chosen.tasks))]
    assert {task.split for task in played} == {"train"}
    assert {task.template for task in played} == {"chains.2", "chains.3"}
    assert not {task.intent for task in played} & {spec.task.intent for spec in evaluation}


def test_demonstrated_chains_have_lengths_of_their_own() -> None:
    tasks = chain_sets(lengths=[3], trained=[2, 3], long=[4], demonstrated=[1, 1, 2])
    shown = [spec.task.template for spec in tasks.demonstrations("demo", 30, flawless=True)]
    assert (shown.count("chains.1"), shown.count("chains.2")) == (20, 10)


def test_the_potential_critic_sees_flaws_where_all_episodes_teach_it() -> None:
    def flawless(labels: str) -> set[bool]:
        learner = {"potential_data": {"labels": labels}}
        tasks = TaskSets(build_recipe({**SMALL, "learner": learner}))
        return {spec.quality is None for spec in tasks.critic_demonstrations("potential")}

    assert flawless("successes") == {True}
    assert flawless("all") == {False}


def test_an_evaluation_may_give_tasks_a_multiple_of_their_steps_and_the_time_for_them() -> None:
    specs = sets(evaluation={"tasks_per_split": 3}).evaluation(0)
    specs[0] = replace(specs[0], task=replace(specs[0].task, max_steps=7))
    specs[1] = replace(specs[1], task=replace(specs[1].task, max_steps=0))
    doubled = with_longer_tasks(specs, 2)
    assert [spec.task.max_steps for spec in doubled[:2]] == [14, 0]
    assert with_longer_tasks(specs, 1) == specs
    assert ids(doubled) == ids(specs), "sampling seeds follow from the ids"
    rollout = RolloutSettings(max_steps=20, episode_deadline_s=300, stall_timeout_s=600)
    scaled = longer(rollout, 3)
    assert (scaled.max_steps, scaled.episode_deadline_s, scaled.stall_timeout_s) == (60, 900, 1800)
    assert longer(rollout, 1) == rollout


def test_instructions_are_compared_by_what_the_recipe_names(tasks: TaskSets) -> None:
    named = TaskSets(build_recipe({**SMALL, "curriculum": {**SMALL["curriculum"], "encoder": "all-MiniLM-L6-v2"}}))
    failed = [task.task_id for task in tasks.training.tasks[:3]]
    by_wording, by_meaning = (one.choose(2, failed, one.rollouts(1, None), {}) for one in (tasks, named))
    assert by_wording.origins == by_meaning.origins
    assert by_wording.tasks != by_meaning.tasks
    assert by_meaning.tasks == named.choose(2, failed, named.rollouts(1, None), {}).tasks


def test_an_encoder_that_is_not_there_is_named_before_a_run_and_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = build_recipe({**SMALL, "curriculum": {**SMALL["curriculum"], "encoder": "some/model"}})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (found,) = [check for check in check_tasks(recipe) if check.status is Status.FAIL]
    assert (found.name, found.advice) == ("curriculum.encoder", "from the checkout, pip install -e '.[milestones]'")
    tasks = TaskSets(recipe)
    with pytest.raises(RecipeError, match=r"curriculum\.encoder: sentence encoder 'some/model'"):
        tasks.choose(2, [tasks.training.tasks[0].task_id], tasks.rollouts(1, None), {})
