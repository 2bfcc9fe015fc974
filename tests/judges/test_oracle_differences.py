"""Where our verdicts differ on purpose from those of the public packages (see decision 20 and the benchmark
``evaluator_agreement``, which found these and shows that there are no others). Each case says what the package
answers and what we do.
"""

import pytest

from judges.interface import AnswerQuestion
from judges.rules import WEBARENA, WEBARENA_LITE, WEBARENA_LITE_BROWSERGYM, RuleSet
from tests.evaluation import evaluate

TITLE = "document.querySelector('h1').outerText"


class Page:
    """A page view over ``{address: {locator: value}}``; null is "" as the real page views have it."""

    def __init__(self, site: dict[str, dict[str, str | None]], at: str = "__SHOP__/last") -> None:
        self.site, self.at = site, at

    async def url(self) -> str:
        return self.at

    async def open(self, url: str) -> None:
        self.at = url

    async def content_text(self, locator: str) -> str:
        return self.site.get(self.at, {}).get(locator) or ""


class Judge:
    name = "agreeable"

    async def matches(self, question: AnswerQuestion) -> bool:
        return True

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return True


async def outcome(evaluation: dict, answer: str | None, rules: RuleSet, site: dict | None = None) -> float:
    pages = site or {}

    async def fresh_page() -> Page:
        return Page(pages, "about:blank")

    verdict = await evaluate(
        evaluation, answer=answer, page=Page(pages), fresh_page=fresh_page, rules=rules, judge=Judge()
    )
    return verdict.outcome


def answers(**references: object) -> dict:
    return {"eval_types": ["string_match"], "reference_answers": references, "string_note": "sold out"}


def contents(url: str, required: dict) -> dict:
    return {"url": url, "locator": TITLE, "required_contents": required}


@pytest.mark.parametrize(
    ("references", "answer", "rules", "theirs", "mine"),
    [
        pytest.param({"exact_match": ""}, None, WEBARENA, 1.0, 0.0, id="no exit is no answer"),
        pytest.param(
            {"must_include": ["5"]}, "it took 5. then it ended", WEBARENA, 0.0, 1.0, id="a number before a full stop"
        ),
        pytest.param(
            {"must_include": ["-7"]}, "it is '-7'.", WEBARENA_LITE, 0.0, 1.0, id="an apostrophe before a sign"
        ),
        pytest.param({"must_include": "yjlou"}, "yjlou", WEBARENA, "AssertionError", 1.0, id="a lone string is a list"),
        pytest.param(
            {"exact_match": "a", "fuzzy_match": "N/A"}, "b", WEBARENA, 1.0, 0.0, id="a failed rule stays failed"
        ),
        pytest.param({"required_values": ["< 700"]}, "700", WEBARENA_LITE, 1.0, 0.0, id="less is not equal"),
        pytest.param({"required_values": ["> 700"]}, "700", WEBARENA_LITE, 1.0, 0.0, id="nor is greater"),
        pytest.param({"must_exclude": ["red"]}, "red", WEBARENA, 1.0, 0.0, id="no rule is silently skipped"),
    ],
)
async def test_answers(references, answer, rules, theirs, mine):
    assert await outcome(answers(**references), answer, rules) == mine
    assert mine != theirs


@pytest.mark.parametrize("rules", [WEBARENA, WEBARENA_LITE, WEBARENA_LITE_BROWSERGYM])
async def test_null_is_no_text(rules):
    """The packages turn it into "None"."""
    evaluation = {"eval_types": ["program_html"], "program_html": [contents("last", {"exact_match": "None"})]}
    assert await outcome(evaluation, "", rules, {"__SHOP__/last": {TITLE: None}}) == 0.0


async def test_the_last_page_stays_the_last_page():
    """The overlay navigates it, so that a later "last" means another page, and url_match after it too."""
    evaluation = {
        "eval_types": ["program_html", "url_match"],
        "reference_url": "__SHOP__/last",
        "program_html": [
            contents("__SHOP__/orders", {"exact_match": "Orders"}),
            contents("last", {"exact_match": "Cart"}),
        ],
    }
    site = {"__SHOP__/orders": {TITLE: "Orders"}, "__SHOP__/last": {TITLE: "Cart"}}
    for rules in (WEBARENA, WEBARENA_LITE, WEBARENA_LITE_BROWSERGYM):
        assert await outcome(evaluation, "", rules, site) == 1.0


async def test_a_function_that_finds_nothing_excludes_nothing():
    """Here we agree: an absent element is not evidence that it lacks a text."""
    target = {"url": "last", "locator": "lambda:() => document.x", "required_contents": {"must_exclude": ["red"]}}
    evaluation = {"eval_types": ["program_html"], "program_html": [target]}
    found = {"__SHOP__/last": {"(() => document.x)() || ''": "blue"}}
    assert await outcome(evaluation, "", WEBARENA_LITE, found) == 1.0
    assert await outcome(evaluation, "", WEBARENA_LITE, {}) == 0.0
