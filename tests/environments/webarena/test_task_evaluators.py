"""The evaluator of every public task runs to a verdict on synthetic pages."""

from pathlib import Path

import pytest

from environments.webarena.tasks.files import load_tasks, rules_of
from judges.functions import FUNCTIONS
from judges.interface import AnswerQuestion
from judges.rules import RULE_SETS
from judges.shop_functions import shop_functions
from records.episodes import Task
from records.failures import EpisodeFailed, FailureKind
from tests.evaluation import evaluate

FILES = Path(__file__).parents[4] / "shared" / "webarena_lite"
"""The public task files; they lie beside the repository, not in it."""
pytestmark = pytest.mark.skipif(not FILES.is_dir(), reason=f"WebArena's task files are not at {FILES}")
UNSOLVABLE = {"webarena.386"}
"""Its references use " |OR| " in an answer, which WebArena's own rules do not know; only WebArena-Lite's do."""
NAMES = {"webarena_test": 812, "test_webarena_lite": 165, "webagentr1_train_webarena_lite": 647}


class Page:
    """A page that shows ``content`` under every address and for every locator, and notes what it was asked."""

    def __init__(self, at: str, content: str) -> None:
        self.at, self.content, self.opened, self.scripts = at, content, [], []

    async def url(self) -> str:
        return self.at

    async def open(self, url: str) -> None:
        assert url.startswith("__"), f"expected a canonical address, found {url!r}"
        self.at = url
        self.opened.append(url)

    async def content_text(self, locator: str) -> str:
        self.scripts.append(locator)
        return self.content


class Shop:
    async def json(self, method, url, *, query=None, token="", body=None):
        assert url.startswith("__SHOPPING__/rest/")
        if method == "POST":
            return "token"
        if url.endswith("/orders"):
            return {"items": [{"increment_id": "000000189"}]}
        return [{"nickname": "Emma", "ratings": [{"rating_name": "Rating", "percent": 80}]}]


class Judge:
    name = "stub"

    async def matches(self, question: AnswerQuestion) -> bool:
        return question.reference == question.answer

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return question.reference.lower() == question.answer.lower()


ALL_FUNCTIONS = {**FUNCTIONS, **shop_functions(Shop(), dict)}


async def judged(task: Task, answer: str | None, page: Page, rules, judge=None, fresh_page=None):
    return await evaluate(
        task.evaluation,
        answer=answer,
        page=page,
        fresh_page=fresh_page,
        intent=task.intent,
        rules=rules,
        judge=judge,
        functions=ALL_FUNCTIONS,
    )


@pytest.mark.parametrize("rules", RULE_SETS.values(), ids=lambda rules: rules.name)
@pytest.mark.parametrize("name", NAMES)
async def test_every_task_gets_a_verdict_with_evidence_under_every_rule_set(name, rules):
    tasks = load_tasks(FILES / f"{name}.raw.json")
    for task in tasks:
        last, other = Page(task.start_url.split(" |AND| ")[0], "Some text, 12 of it"), Page("about:blank", "Some text")

        async def fresh_page(other: Page = other) -> Page:
            return other

        verdict = await judged(task, "Some answer", last, rules, Judge(), fresh_page)
        assert verdict.outcome in (0.0, 1.0)
        assert verdict.evidence, task.task_id
        assert last.opened == [], f"{task.task_id}: the last page is not navigated"
    assert len(tasks) == NAMES[name]


def right_answer(references: dict) -> str:
    """An answer that holds every reference of a task's reference_answers."""
    parts = []
    for wanted in references.values():
        alternatives = [wanted] if isinstance(wanted, str) else wanted
        parts += [text.split(" |OR| ")[0] for text in alternatives]
    return parts[0] if len(parts) == 1 else " and ".join(parts)


@pytest.mark.parametrize("name", NAMES)
async def test_answers_made_of_the_references_pass_and_silence_fails(name):
    judged_tasks = 0
    for task in load_tasks(FILES / f"{name}.raw.json"):
        references = task.evaluation["reference_answers"] or {}
        if task.evaluation["eval_types"] != ["string_match"] or "fuzzy_match" in references:
            continue
        page, rules = Page("__SHOPPING__/", ""), rules_of(task)
        solved = (await judged(task, right_answer(references), page, rules)).outcome
        assert solved == float(task.task_id not in UNSOLVABLE), task.task_id
        assert (await judged(task, None, page, rules)).outcome == 0.0, task.task_id
        judged_tasks += 1
    assert judged_tasks >= 40


@pytest.mark.parametrize("name", NAMES)
async def test_the_reference_address_itself_passes_and_another_fails(name):
    judged_tasks = 0
    for task in load_tasks(FILES / f"{name}.raw.json"):
        if task.evaluation["eval_types"] != ["url_match"]:
            continue
        for rules in RULE_SETS.values():
            for url in task.evaluation["reference_url"].split(" |OR| "):
                if (
                    rules.split_urls
                    and "?" in task.evaluation["reference_url"]
                    and " |OR| " in task.evaluation["reference_url"]
                ):
                    continue  # WebArena wants the query of one alternative with the address of any
                assert (await judged(task, None, Page(url, ""), rules)).outcome == 1.0, (task.task_id, rules.name)
            assert (await judged(task, None, Page("__HOMEPAGE__/", ""), rules)).outcome == 0.0
        judged_tasks += 1
    assert judged_tasks >= 18


async def test_what_needs_a_judge_has_no_verdict_without_one():
    open_questions = 0
    for task in load_tasks(FILES / "webarena_test.raw.json"):
        references = task.evaluation["reference_answers"] or {}
        if references.keys() == {"fuzzy_match"} and task.evaluation["eval_types"] == ["string_match"]:
            with pytest.raises(EpisodeFailed) as raised:
                await judged(task, "Some answer", Page("__MAP__/", ""), rules_of(task))
            assert (raised.value.failure.kind, raised.value.failure.code.name) == (FailureKind.JUDGE, "no_judge")
            open_questions += 1
    assert open_questions == 109


async def test_preparing_scripts_of_the_public_tasks_run_before_their_locators():
    prepared = 0
    for task in load_tasks(FILES / "webarena_test.raw.json"):
        for target in task.evaluation["program_html"]:
            if "prep_actions" in target:
                page = Page("__SHOPPING_ADMIN__/", "x")
                await evaluate({"eval_types": ["program_html"], "program_html": [target]}, answer=None, page=page)
                assert page.scripts == [*target["prep_actions"], target["locator"]]
                prepared += 1
    assert prepared == 10
