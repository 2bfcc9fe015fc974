"""The comparison with the public packages: what it asks, and how it explains differences (no package needed)."""

import ast
import random
from pathlib import Path

import pytest

from benchmarks import evaluator_oracle
from benchmarks.evaluator_cases import TITLE, answered, page
from benchmarks.evaluator_more_cases import PLANS
from benchmarks.evaluator_pages import agree, explain, ours
from judges.rules import RULE_SETS, WEBARENA, WEBARENA_LITE, WEBARENA_LITE_BROWSERGYM

GENERATORS = {rule: make for plan in PLANS for rule, make in plan.generators.items()}


def cases(rule: str, count: int = 40) -> list:
    rng = random.Random(rule)
    return [GENERATORS[rule](rng) for _ in range(count)]


@pytest.mark.parametrize("rule", GENERATORS)
def test_cases_are_repeatable_and_get_a_verdict_and_some_pass_and_some_fail(rule):
    drawn = cases(rule)
    assert drawn == cases(rule)
    verdicts = {ours(case, rules) for case in drawn for rules in RULE_SETS.values()}
    assert verdicts == {0.0, 1.0}


def test_every_rule_set_is_compared_with_a_package():
    assert {plan.rule_set for plan in PLANS} == set(RULE_SETS)
    for plan in PLANS:
        assert RULE_SETS[plan.dialect]


def test_a_dialect_explains_what_its_field_decides_and_nothing_else():
    padded = answered({"exact_match": "yes"}, " yes ")
    assert ours(padded, WEBARENA_LITE) == 0.0
    assert explain(padded, WEBARENA_LITE, 1.0, WEBARENA_LITE_BROWSERGYM) == "dialect: strip"
    assert explain(padded, WEBARENA_LITE, 1.0, WEBARENA_LITE) is None
    assert explain(answered({"exact_match": "yes"}, "no"), WEBARENA_LITE, 1.0, WEBARENA_LITE_BROWSERGYM) is None


@pytest.mark.parametrize(
    ("case", "theirs", "cause"),
    [
        (answered({"exact_match": ""}, None), 1.0, "no exit is no answer"),
        (answered({"must_include": ["5"]}, "5. then"), 0.0, "a full stop after a word is a token"),
        (answered({"must_include": "a"}, "a"), "AssertionError", "a lone string is a list of one"),
        (page({"exact_match": "none"}, None), 1.0, "null is no text"),
        (page({"required_values": ["< 7"]}, "7"), 1.0, "< and > are strict"),
    ],
)
def test_a_meant_difference_is_found_by_undoing_it(case, theirs, cause):
    assert not agree(case, WEBARENA, theirs)
    assert explain(case, WEBARENA, theirs, WEBARENA) == cause


def test_refusing_is_agreeing_with_an_exception():
    assert agree(page({"unknown": "a"}, "a"), WEBARENA, "ValueError")
    assert agree(page({"exact_match": "a"}, "a", TITLE), WEBARENA, 1.0)


def test_the_script_for_the_other_interpreter_imports_nothing_of_ours():
    tree = ast.parse(Path(evaluator_oracle.__file__).read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours_too = {"judges", "benchmarks", "webarena", "replay", "rollout_workers", "sites", "cluster"}
    assert not {name.split(".")[0] for name in imported} & ours_too
