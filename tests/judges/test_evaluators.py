"""The three evaluators on pages that a test can see through."""

import pytest

from judges.interface import AnswerQuestion
from judges.rules import WEBARENA_LITE
from records.failures import EpisodeFailed, FailureKind
from tests.evaluation import evaluate


class Page:
    """A page view over a table {url: {locator: text}}; it records what was asked of it."""

    def __init__(self, site: dict[str, dict[str, str]], at: str) -> None:
        self.site, self.at, self.log = site, at, []

    async def url(self) -> str:
        return self.at

    async def open(self, url: str) -> None:
        self.log.append(f"open {url}")
        self.at = url

    async def content_text(self, locator: str) -> str:
        self.log.append(locator)
        return self.site.get(self.at, {}).get(locator, "")


class Judge:
    name = "stub"

    def __init__(self, says: bool) -> None:
        self.says, self.asked = says, []

    async def matches(self, question: AnswerQuestion) -> bool:
        self.asked.append(("matches", question))
        return self.says

    async def same_reason(self, question: AnswerQuestion) -> bool:
        self.asked.append(("same_reason", question))
        return self.says


TITLE = "document.querySelector('h1').outerText"
SITE = {
    "__SHOP__/orders/7": {TITLE: "Order 7 &amp; more", "": "<h1>Order 7</h1> Blue Kettle"},
    "__SHOP__/cart": {TITLE: "Cart"},
}


def strings(**references) -> dict:
    return {"eval_types": ["string_match"], "reference_answers": references, "string_note": "it is sold out"}


def pages(*targets: tuple[str, str, dict]) -> dict:
    program = [{"url": u, "locator": loc, "required_contents": required} for u, loc, required in targets]
    return {"eval_types": ["program_html"], "program_html": program}


async def outcome(evaluation: dict, answer: str | None = "", **options) -> float:
    page = options.pop("page", None) or Page(SITE, "__SHOP__/cart")
    return (await evaluate(evaluation, answer=answer, page=page, **options)).outcome


@pytest.mark.parametrize(
    ("references", "answer", "expected"),
    [
        ({"exact_match": "Yes"}, "'yes' ", 1.0),
        ({"exact_match": "Yes"}, "yes, it is", 0.0),
        ({"must_include": ["Blue Kettle", "12"]}, "the blue kettle for $12", 1.0),
        ({"must_include": ["Blue Kettle", "12"]}, "the blue kettle", 0.0),
        ({"must_include": ["3"]}, "30", 0.0),
        ({"must_include": "yjlou"}, "It is yjlou.", 1.0),
        ({"exact_match": "a", "must_include": ["b"]}, "a", 0.0),
        ({"exact_match": "N/A"}, "N/A", 1.0),
        ({"exact_match": "x"}, "\"'x'\"", 1.0),
    ],
)
async def test_string_match(references, answer, expected):
    assert await outcome(strings(**references), answer) == expected


@pytest.mark.parametrize(
    "references", [{"exact_match": "N/A"}, {"exact_match": ""}, {"must_include": [""]}, {"fuzzy_match": "N/A"}]
)
async def test_an_episode_without_an_exit_has_no_answer(references):
    verdict = await evaluate(strings(**references), answer=None, page=Page(SITE, "__SHOP__/cart"))
    assert verdict.outcome == 0.0
    assert "no exit" in verdict.evidence[0]


async def test_without_an_exit_other_evaluators_still_judge_the_page():
    assert await outcome({"eval_types": ["url_match"], "reference_url": "__SHOP__/cart"}, None) == 1.0


async def test_evidence_names_rule_set_rule_expected_and_found():
    verdict = await evaluate(strings(exact_match="Yes"), answer="no", page=Page(SITE, ""))
    assert verdict.evidence == ("fail webarena/3 string_match exact_match: expected 'Yes', found 'no'",)


async def test_a_page_is_judged_on_a_fresh_page_and_the_last_page_stays():
    last, fresh = Page(SITE, "__SHOP__/cart"), Page(SITE, "")
    made = []

    async def fresh_page() -> Page:
        made.append(fresh)
        return fresh

    evaluation = pages(
        ("__SHOP__/orders/7", "", {"must_include": ["blue kettle", "red |OR| order"]}),
        ("last", TITLE, {"exact_match": "cart"}),
        ("__SHOP__/orders/7", TITLE, {"exact_match": "order 7 & more"}),
    )
    verdict = await evaluate(evaluation, answer="", page=last, fresh_page=fresh_page)
    assert verdict.outcome == 1.0
    assert len(verdict.evidence) == 4
    assert made == [fresh]
    assert last.log == [TITLE]


async def test_a_missing_element_is_an_empty_text_and_fails():
    assert await outcome(pages(("last", "document.querySelector('#x').value", {"exact_match": "a"}))) == 0.0


async def test_the_overlay_does_not_decode_entities():
    evaluation = pages(("__SHOP__/orders/7", TITLE, {"exact_match": "Order 7 & more"}))
    assert await outcome(evaluation) == 1.0
    assert await outcome(evaluation, rules=WEBARENA_LITE) == 0.0


async def test_preparing_scripts_run_in_the_page_before_the_locator():
    page = Page(SITE, "__SHOP__/cart")
    evaluation = pages(("last", TITLE, {"exact_match": "Cart"}))
    evaluation["program_html"][0]["prep_actions"] = ["document.querySelector('b').click()"]
    assert await outcome(evaluation, page=page) == 1.0
    assert page.log == ["document.querySelector('b').click()", TITLE]


async def test_evaluators_multiply():
    both = {
        "eval_types": ["string_match", "url_match"],
        "reference_answers": {"exact_match": "a"},
        "reference_url": "__SHOP__/cart",
    }
    assert await outcome(both, "a") == 1.0
    assert await outcome(both, "b") == 0.0
    assert await outcome({**both, "reference_url": "__SHOP__/orders"}, "a") == 0.0


async def test_a_named_function_gives_the_address_and_gets_the_last_url_as_a_string():
    site = {"__REDDIT__/f/books/12/": {"": "Harry Potter"}}
    page = Page(site, "__REDDIT__/f/books/12/a-title/-/comment/9')")
    target = ("func:reddit_get_post_url('__last_url__')", "", {"must_include": ["harry potter"]})
    assert await outcome(pages(target), page=page) == 1.0
    assert page.log[0] == "open __REDDIT__/f/books/12/"


async def test_a_function_of_the_environment_can_be_passed_in():
    async def latest_order(page, arguments):
        return "__SHOP__/orders/7"

    target = ("func:shopping_get_latest_order_url()", "", {"must_include": ["kettle"]})
    assert await outcome(pages(target), functions={"shopping_get_latest_order_url": latest_order}) == 1.0
    with pytest.raises(EpisodeFailed) as raised:
        await outcome(pages(target))
    assert raised.value.failure.kind is FailureKind.TASK
    assert raised.value.failure.code.name == "unknown_function"


async def test_a_role_on_gitlab_is_read_in_the_page_with_the_name_quoted():
    class Members(Page):
        async def content_text(self, locator: str) -> str:
            self.log.append(locator)
            return "Guest"

    page = Members({}, "__GITLAB__/x")
    target = ("last", "func:gitlab_get_project_memeber_role(__page__, 'o\\'x')", {"must_include": ["Guest"]})
    assert await outcome(pages(target), page=page) == 1.0
    assert '"@o\'x"' in page.log[0]


@pytest.mark.parametrize(
    "call",
    ["func:__import__('os').system('x')", "func:f(1)", "func:f(*a)", "func:f(x='a')", "func:f('a'", "func:f(other)"],
)
async def test_anything_but_a_plain_call_is_refused(call):
    with pytest.raises(EpisodeFailed, match="evaluation_invalid"):
        await outcome(pages((call, "", {"must_include": ["a"]})))


async def test_a_question_of_meaning_without_a_judge_has_no_verdict():
    with pytest.raises(EpisodeFailed) as raised:
        await outcome(strings(fuzzy_match=["about ten days"]), "10 days")
    assert raised.value.failure.kind is FailureKind.JUDGE
    assert raised.value.failure.code.name == "no_judge"


async def test_no_judge_is_asked_once_the_verdict_is_settled():
    judge = Judge(True)
    assert await outcome(strings(fuzzy_match=["ten days"], exact_match="a"), "b", judge=judge) == 0.0
    assert await outcome(strings(fuzzy_match="N/A"), "N/A", judge=judge) == 1.0
    assert await outcome(strings(fuzzy_match=["ten days"]), "", judge=judge) == 0.0
    assert judge.asked == []


@pytest.mark.parametrize("says", [True, False])
async def test_the_judge_decides_on_meaning(says):
    judge = Judge(says)
    assert await outcome(strings(fuzzy_match=["a", "b"]), "X", judge=judge, intent="Ask") == float(says)
    assert judge.asked[0] == ("matches", AnswerQuestion("Ask", "a", "x"))
    assert len(judge.asked) == (2 if says else 1)


async def test_the_overlay_asks_about_all_references_at_once():
    judge = Judge(True)
    await outcome(strings(fuzzy_match=["a", "b"]), "X", judge=judge, rules=WEBARENA_LITE)
    assert [question.reference for _, question in judge.asked] == ["a, b"]


async def test_an_unachievable_task_is_judged_by_its_reason():
    judge = Judge(True)
    assert await outcome(strings(fuzzy_match="N/A"), "No stock", judge=judge, intent="Buy") == 1.0
    assert judge.asked == [("same_reason", AnswerQuestion("Buy", "it is sold out", "no stock"))]


async def test_meaning_of_page_contents_is_judged_too():
    judge = Judge(True)
    assert await outcome(pages(("last", TITLE, {"fuzzy_match": ["basket"]})), judge=judge) == 1.0
    assert judge.asked[0][1].answer == "Cart"


@pytest.mark.parametrize(
    "evaluation",
    [
        {},
        {"eval_types": []},
        {"eval_types": ["string_soft"]},
        {"eval_types": ["string_match"], "reference_answers": None},
        {"eval_types": ["string_match"], "reference_answers": {"close_match": "a"}},
        {"eval_types": ["string_match"], "reference_answers": {"exact_match": 3}},
        {"eval_types": ["string_match"], "reference_answers": {"must_include": []}},
        {"eval_types": ["url_match"], "reference_url": ""},
        {"eval_types": ["url_match"], "reference_url": "x", "url_note": "SOME"},
        {"eval_types": ["program_html"], "program_html": []},
        {"eval_types": ["program_html"], "program_html": [{"url": "last"}]},
        pages(("last", "print(1)", {"exact_match": "a"})),
        pages(("last", "", {"contains": "a"})),
    ],
)
async def test_a_malformed_task_is_a_failure_of_the_task_and_no_verdict(evaluation):
    with pytest.raises(EpisodeFailed) as raised:
        await outcome(evaluation, "a")
    assert raised.value.failure.kind is FailureKind.TASK
    assert raised.value.failure.code.name == "evaluation_invalid"
    assert "found" in raised.value.failure.detail
