"""Task sets: splits that never leak, balance, and WebArena's JSON."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from judges.subgoals import validate_task
from sites.registry import SITES
from sites.tasks import SPLITS, all_templates, generate, make_task, site_data, task_set, template_named, to_webarena

ALL = tuple(SITES)
WEBARENA_KEYS = {
    "sites", "task_id", "require_login", "storage_state", "start_url", "geolocation", "intent_template",
    "instantiation_dict", "intent", "require_reset", "eval", "intent_template_id",
}  # fmt: skip
EVAL_KEYS = {
    "eval_types", "reference_answers", "reference_url", "program_html", "string_note",
    "reference_answer_raw_annotation",
}  # fmt: skip


def key(task) -> str:
    return json.dumps(task.parameters, sort_keys=True)


def test_splits_share_no_parameters_even_when_drawn_with_different_seeds():
    sets = {split: task_set(seed, ALL, split, 150) for seed, split in enumerate(SPLITS)}
    for split, tasks in sets.items():
        assert {task.split for task in tasks} == {split}
        assert len({task.task_id for task in tasks}) == 150
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not {key(t) for t in sets[one]} & {key(t) for t in sets[other]}


def test_template_splits_share_no_template():
    templates = {split: {t.template for t in task_set(0, ALL, split, 60)} for split in SPLITS}
    assert templates["train"] == templates["validation"] == templates["test"]
    assert not templates["train"] & templates["validation_templates"]
    assert not templates["train"] & templates["test_templates"]
    assert not templates["validation_templates"] & templates["test_templates"]


def test_sets_are_balanced_and_repeatable():
    tasks = task_set(5, ALL, "test", 120)
    counts = Counter(task.template for task in tasks)
    assert set(counts) == {template.name for template in all_templates(ALL) if template.split == "train"}
    # A few templates have fewer different parameters than their share.
    assert sorted(counts.values())[3] >= max(counts.values()) - 1
    assert tasks == task_set(5, ALL, "test", 120)
    assert tasks != task_set(6, ALL, "test", 120)
    assert task_set(5, ALL, "test", 60) == tasks[:60]


def test_other_data_give_other_tasks_that_are_still_well_formed():
    for task in generate(0, ALL, per_template=1, data_seed=3):
        validate_task(task)
    assert generate(0, ALL, 1, data_seed=3) != generate(0, ALL, 1)


def test_impossible_sets_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="unknown split 'tests': expected one of train"):
        task_set(0, ("shop",), "tests", 1)
    monkeypatch.setattr("sites.tasks.all_templates", lambda sites: [template_named("shop.count_kind")])
    with pytest.raises(ValueError, match=r"'train' of \['shop'\] has \d\d different tasks, 1000 were asked for"):
        task_set(0, ("shop",), "train", 1000)


def test_unknown_names_are_told():
    with pytest.raises(KeyError, match="there are: shop"):
        all_templates(("bank",))
    with pytest.raises(KeyError, match=r"shop\.buy_product"):
        template_named("shop.steal_product")


def test_a_task_can_be_made_again_from_template_and_parameters():
    for task in generate(2, ALL, per_template=1):
        template = template_named(task.template)
        assert make_task(template, json.loads(json.dumps(task.parameters)), site_data(template.site, 0)) == task


def test_tasks_are_valid_webarena_json():
    for task in generate(1, ALL, per_template=2):
        written = json.loads(json.dumps(to_webarena(task)))
        assert set(written) == WEBARENA_KEYS
        assert set(written["eval"]) >= EVAL_KEYS
        assert isinstance(written["task_id"], int)
        assert set(written["eval"]["eval_types"]) <= {"string_match", "url_match", "program_html"}
        filled = written["intent_template"]
        for name, value in written["instantiation_dict"].items():
            filled = filled.replace("{{" + name + "}}", str(value))
        assert filled == written["intent"]


def test_task_numbers_are_distinct():
    tasks = generate(1, ALL, per_template=20)
    assert len({to_webarena(task)["task_id"] for task in tasks}) == len(tasks)


def test_at_least_a_third_of_the_templates_of_each_site_are_long():
    for site in ALL:
        first = {task.template: task.horizon for task in generate(0, (site,), per_template=1)}
        assert len(first) >= 12
        assert min(first.values()) == 2
        assert max(first.values()) == 15
        assert 3 * sum(horizon >= 8 for horizon in first.values()) >= len(first)
        assert all(task.horizon < task.max_steps <= 20 for task in generate(0, (site,), per_template=3))


def test_answers_are_not_among_the_parameters():
    for task in generate(1, ALL, per_template=5):
        for wanted in (task.evaluation["reference_answers"] or {}).values():
            answers = wanted if isinstance(wanted, list) else [wanted]
            assert not set(answers) & {str(value) for value in task.parameters.values()}, task.intent
