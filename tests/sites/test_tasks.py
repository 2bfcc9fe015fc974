"""Task sets: splits that never leak, balance, and WebArena's JSON."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict

import pytest

from judges.milestones import validate_task
from sites.collections import COLLECTIONS
from sites.registry import SITES
from sites.tasks import (
    LONGEST_HORIZON,
    SPLITS,
    all_templates,
    generate,
    make_task,
    needs_browser,
    site_data,
    task_set,
    template_data,
    template_named,
    to_webarena,
)

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
    training = {template.name for template in all_templates(ALL) if template.split == "train"}
    assert templates["train"] | templates["validation"] | templates["test"] <= training
    assert not templates["train"] & templates["validation_templates"]
    assert not templates["train"] & templates["test_templates"]
    assert not templates["validation_templates"] & templates["test_templates"]


def test_sets_are_balanced_and_repeatable():
    training = {template.name for template in all_templates(ALL) if template.split == "train"}
    count = 3 * len(training)
    tasks = task_set(5, ALL, "test", count)
    counts = Counter(task.template for task in tasks)
    assert set(counts) <= training
    # A few templates have fewer different parameters than their share.
    assert sum(number >= max(counts.values()) - 1 for number in counts.values()) >= 0.8 * len(training)
    assert tasks == task_set(5, ALL, "test", count)
    assert tasks != task_set(6, ALL, "test", count)
    assert task_set(5, ALL, "test", 60) == tasks[:60]


def test_other_data_give_other_tasks_that_are_still_well_formed():
    for task in generate(0, ALL, per_template=1, data_seed=3):
        validate_task(task)
    assert generate(0, ALL, 1, data_seed=3) != generate(0, ALL, 1)


def test_impossible_sets_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="unknown split 'tests': expected one of train"):
        task_set(0, ("shop",), "tests", 1)
    monkeypatch.setattr("sites.tasks.all_templates", lambda names: [template_named("shop.count_kind")])
    with pytest.raises(ValueError, match=r"'train' of \['shop'\] has \d\d different tasks, 1000 were asked for"):
        task_set(0, ("shop",), "train", 1000)
    assert 10 <= len(task_set(0, ("shop",), "train", 1000, at_least=1)) < 100


def test_unknown_names_are_told():
    with pytest.raises(KeyError, match="there are: shop"):
        all_templates(("bank",))
    with pytest.raises(KeyError, match=r"shop\.buy_product"):
        template_named("shop.steal_product")


def test_a_task_can_be_made_again_from_template_and_parameters():
    for task in generate(2, (*ALL, *COLLECTIONS), per_template=1):
        template = template_named(task.template)
        assert make_task(template.filled(json.loads(json.dumps(task.parameters))), template_data(template, 0)) == task


def test_tasks_are_valid_webarena_json():
    for task in generate(1, (*ALL, *COLLECTIONS), per_template=2):
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
    for site in set(ALL) - {"wiki"}:  # the encyclopedia is there for tasks that span two sites
        first = {task.template: task.horizon for task in generate(0, (site,), per_template=1)}
        assert len(first) >= 20
        assert min(first.values()) == 2
        assert 15 <= max(first.values()) <= LONGEST_HORIZON
        assert 3 * sum(horizon >= 8 for horizon in first.values()) >= len(first)


def test_episodes_may_take_a_fifth_more_steps_than_the_expert_and_at_least_four_more():
    for task in generate(0, ALL, per_template=3):
        assert task.max_steps - task.horizon == max(4, task.horizon // 5)


def test_an_expert_of_more_than_thirty_steps_is_refused():
    template = type("Longer", (template_named("shop.open_product"),), {}, name="shop.open_product", horizon=31)
    with pytest.raises(ValueError, match=r"shop\.open_product: expected a horizon of 2 to 30 actions, found 31"):
        make_task(template(product="Tall Oak Lamp"), site_data("shop", 0))


PINNED = {
    "train": ("shop.product_fact.7229ae7592", "map.count_within.b8bc92e8d2", "2e3eabc692f9102c"),
    "validation": ("shop.product_fact.97eec27a2b", "map.count_within.a0ef090712", "4ef16b1044cf8054"),
    "test": ("shop.product_fact.a528c61a78", "shop.add_to_cart.b182444946", "97de374583d58e89"),
    "validation_templates": ("shop.filter_category.0d7eb354e2", "admin.invoice_total.a4b5ad1b31", "27cc4de22cbca743"),
    "test_templates": ("shop.add_ranked_kind.0017214352", "forum.reply_first.8cef8e4aae", "d42cc05261d09b50"),
}
"""Tasks 0 and 30 of each set of the demo's sites, and a digest of all 60."""


@pytest.mark.parametrize("split", SPLITS)
def test_the_tasks_that_the_shipped_policy_was_measured_on_stay_what_they_were(split):
    tasks = task_set(5, ("shop", "forum", "admin", "code", "map", "wiki", "across"), split, 60)
    facts = [[t.task_id, t.intent, t.start_url, t.evaluation, t.max_steps, [asdict(s) for s in t.milestones]]
             for t in tasks]  # fmt: skip
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    assert (tasks[0].task_id, tasks[30].task_id, digest) == PINNED[split]


def test_collections_are_drawn_only_where_they_are_named():
    assert {task.site for task in task_set(0, ("shop", "forum"), "train", 300)} == {"shop", "forum"}
    named = all_templates(("shop", "forum", "across", "scripted"))
    assert named[: len(all_templates())] == all_templates()
    assert {t.name for t in named} - {t.name for t in all_templates()} == {
        t.name for name in ("across", "scripted") for t in COLLECTIONS[name] if set(t.sites) <= {"shop", "forum"}
    }


def test_a_collection_gives_what_its_named_sites_can_play_and_says_when_that_is_nothing():
    assert {t.sites for t in all_templates(("shop", "scripted"))} == {("shop",)}
    with pytest.raises(ValueError, match="'across' has tasks on .*shop and forum.*: name such sites beside it"):
        all_templates(("shop", "across"))
    with pytest.raises(KeyError, match="no site 'acros'; there are: shop, .* collections: across, scripted"):
        all_templates(("shop", "acros"))


def test_tasks_that_need_a_browser_can_be_left_out():
    names = ("shop", "scripted")
    assert any(needs_browser(task) for task in task_set(0, names, "train", 60))
    assert not any(needs_browser(task) for task in task_set(0, names, "train", 60, scripted=False))


def test_thousands_of_different_tasks_come_from_one_seed():
    tasks = task_set(0, (*ALL, *COLLECTIONS), "train", 3000)
    assert len({task.task_id for task in tasks}) == 3000
    assert len({(task.intent, task.start_url) for task in tasks}) == 3000


def test_answers_are_not_among_the_parameters():
    for task in generate(1, ALL, per_template=5):
        for wanted in (task.evaluation["reference_answers"] or {}).values():
            answers = wanted if isinstance(wanted, list) else [wanted]
            assert not set(answers) & {str(value) for value in task.parameters.values()}, task.intent
