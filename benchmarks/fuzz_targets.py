"""What reads untrusted input, one ``Target`` each: how an input is drawn, how it is read, which errors are documented.

Owns the table ``TARGETS`` and what must hold for an input that is taken. A reader may refuse an input by its
documented error; any other exception, and any broken promise about what was taken, is a finding.
"""

from __future__ import annotations

import asyncio
import json
import random
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from analysis.report import EpisodeView, Report, StepView
from analysis.report import render as render_report
from analysis.results import EpisodeCounts
from benchmarks import fuzz_inputs as draw
from benchmarks.fuzz_files import file_targets
from benchmarks.fuzzing import Target, require
from cluster.errors import RecipeError
from cluster.recipe.recipe import config_hash, load_recipe
from environments.browser.page_reply import read_inputs, read_result
from environments.browser.settings import BrowserSettings
from environments.interface.grammar import FORMS, GrammarError, format_action, parse
from environments.interface.observation import render
from environments.interface.snapshot import Snapshot
from environments.webarena.tasks.files import TaskFileError, load_tasks
from judges.interface import AnswerQuestion
from judges.patient import PatientJudge
from judges.settings import EvaluatorSettings
from judges.tokens import tokens
from records.deadline import Deadline
from records.failures import EpisodeFailed

# -- actions -----------------------------------------------------------------------------------

_ACTIONS = (
    '# Element: Add to cart\ndo(action="Click", element="3")', 'do(action="Type", argument="5 \\" lamp", element="12")',
    'exit(message="it\'s $5")', "go_backward()", '<think>so</think>\n<answer>\ndo(action="Wait")\n</answer>',
    'do("Select Dropdown Option", "Red", 4)', '```python\ndo(action="Press Enter")\n```',
)  # fmt: skip


def _make_action(rng: random.Random) -> str:
    if rng.random() < 0.3:
        form = rng.choice(list(FORMS.values()))
        argument, element = json.dumps(draw.text(rng)), rng.choice((3, '"12"', '" 7 "', "-1", "None", '"x"'))
        return f"# Element: {draw.text(rng)}\ndo(action={form.name!r}, argument={argument}, element={element})"
    return draw.text(rng, 120) if rng.random() < 0.3 else draw.mutated(rng, rng.choice(_ACTIONS))


def _read_action(source: str, _: Path) -> None:
    try:
        action = parse(source)
    except GrammarError as error:
        require("\n" not in str(error) and len(str(error)) < 400, "an error is one line, and a short one")
        raise
    for style in ("waymark", "answer"):
        again = parse(format_action(action, style))
        require(again == action, f"an action written as {style} is read back as it was")


# -- pages -------------------------------------------------------------------------------------

_PAGE: dict[str, Any] = {
    "code": "",
    "detail": "",
    "invalid": -1,
    "new_tab": False,
    "posted": False,
    "feedback": [{"code": "dialog", "detail": "Hi"}],
    "navigating": False,
    "still": True,
    "url": "http://lab.e1.localhost:8000/",
    "title": "Lab",
    "status": 200,
    "redirects": 0,
    "entry": "k1",
    "cut": False,
    "window": [1280, 720],
    "root": [
        "body",
        {},
        ["h1", {}, "Lamps"],
        ["a", {"href": "", "n": 0, "mark": "0"}, "Home ", ["img", {"alt": "house"}]],
        ["table", {}, ["tr", {}, ["td", {}, "Mug"], ["td", {}, ["button", {"n": 1, "disabled": True}, "Buy"]]]],
        ["label", {"for": "q"}, "Search"],
        ["input", {"id": "q", "type": "search", "n": 2, "value": "lamp"}],
        ["select", {"n": 3, "options": ["Red", "Blue"], "selected": ["Red"]}],
        ["div", {"clickable": True, "n": 4}, "x"],
    ],
    "tree": [
        "html",
        {},
        [
            "body",
            {"data-bbox": "0,0,1280,900"},
            "Text",
            ["a", {"mark": "0", "data-bbox": "1,2,3,4", "title": "Home", "data-text": "Home"}, "Home"],
        ],
    ],
}
_BUDGET = 4_000


_TAGS = ("body", "div", "p", "b", "a", "button", "input", "select", "textarea", "label", "table", "tr", "td", "dl",
         "dt", "dd", "h1", "img", "details", "iframe", "x-y")  # fmt: skip
_ATTRIBUTES = ("id", "for", "type", "role", "name", "title", "alt", "placeholder", "aria-label", "labelledby", "href",
               "value", "contenteditable", "data-text", "data-value", "aria-hidden")  # fmt: skip


def _tree(rng: random.Random, depth: int, *, rich: bool = False) -> list[Any]:
    """Return an element of hostile texts as the page script would send it (``rich``: for ``webrl``)."""
    facts: dict[str, Any] = {rng.choice(_ATTRIBUTES): draw.text(rng, 30) for _ in range(rng.randrange(4))}
    if rng.random() < 0.5:
        facts |= {"mark": str(rng.randrange(9))} | ({} if rich else {"n": rng.randrange(9)})
    if rng.random() < 0.2 and not rich:
        facts |= rng.choice(({"clickable": True}, {"disabled": True}, {"checked": True}, {"type": "password"}))
    if rng.random() < 0.2 and not rich:
        facts |= {"options": [draw.text(rng) for _ in range(3)], "selected": [draw.text(rng)]}
    if rng.random() < 0.5:
        facts["data-bbox"] = f"{rng.randrange(-99, 999)},0,{rng.randrange(99)},7"
    count = rng.randrange(4) if depth else 0
    children = [_tree(rng, depth - 1, rich=rich) if rng.random() < 0.6 else draw.text(rng) for _ in range(count)]
    return [rng.choice(_TAGS), facts, *children]


def _make_page(rng: random.Random) -> str:
    if rng.random() < 0.5:
        deep = rng.choice((3, 4, 5)) if rng.random() < 0.98 else 200
        root = _tree(rng, min(deep, 5))
        for _ in range(deep - 5):
            root = ["b", {"role": "button", "n": 1}, root]
        rich = _tree(rng, 3, rich=True)
        return json.dumps({**_PAGE, "root": root, "tree": rich, "title": draw.text(rng), "url": draw.text(rng)})
    page: Any = _PAGE
    for _ in range(rng.choice((1, 2, 4, 12))):
        page = {**page, "root": draw.changed(rng, page["root"])} if rng.random() < 0.7 and "root" in page else page
        page = draw.changed(rng, page) if rng.random() < 0.3 else page
        if not isinstance(page, dict):
            break
    written = json.dumps(page, ensure_ascii=rng.random() < 0.5)
    return draw.mutated(rng, written) if rng.random() < 0.1 else written


def _read_page(raw: str, _: Path) -> None:
    seen = read_result(raw, "http://lab/").seen
    read_inputs(json.dumps({"input": []}), "http://lab/")
    if seen is None:
        return
    snapshot = Snapshot(seen.url, seen.title, seen.root, seen.status, rich=seen.rich)
    for form in ("waymark", "webrl") if seen.rich else ("waymark",):
        shown = render(snapshot, BrowserSettings(observation_format=form, max_observation_chars=_BUDGET))
        require(len(shown.text) <= _BUDGET + len(snapshot.title) + 40, "an observation keeps its budget")
        require("\n".join(shown.text.splitlines()) == shown.text, "lines end by a line feed only")
        require(len(shown.elements) == len(shown.targets), "each element has its target")
        if form == "waymark":
            require([e.element_id for e in shown.elements] == list(range(len(shown.elements))), "ids count from 0")
        (shown.text + shown.page_text + snapshot.url).encode()


# -- files -------------------------------------------------------------------------------------

_RECIPE = """run:
  name: laptop
  phases: 3
  seed: 7
rollout:
  workers: 2
  temperature: 1.0
learner:
  algorithm: mira
environments:
  embedded:
    names: [shop, forum]
"""
_TASK: dict[str, Any] = {
    "sites": ["shopping"],
    "task_id": 7,
    "intent_template_id": 1,
    "require_login": True,
    "storage_state": "./.auth/s.json",
    "start_url": "__SHOPPING__",
    "geolocation": None,
    "intent_template": "Find {{x}}",
    "instantiation_dict": {"x": "lamp"},
    "intent": "Find lamp",
    "require_reset": False,
    "eval": {
        "eval_types": ["string_match"],
        "reference_answers": {"must_include": ["lamp"]},
        "reference_url": "",
        "program_html": [],
        "string_note": "",
        "reference_answer_raw_annotation": "lamp",
    },
}


def _make_recipe(rng: random.Random) -> str:
    lines = _RECIPE.split("\n")
    if rng.random() < 0.5:
        at = rng.randrange(len(lines))
        lines[at] = f"{lines[at].partition(':')[0]}: {draw.text(rng, 30)}"
        return "\n".join(lines)
    return draw.mutated(rng, _RECIPE) if rng.random() < 0.8 else draw.text(rng, 200)


def _read_recipe(content: str, folder: Path) -> None:
    path = folder / "recipe.yaml"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    config_hash(load_recipe(path))


def _make_tasks(rng: random.Random) -> str:
    written = json.dumps(draw.changed(rng, [draw.changed(rng, _TASK), _TASK]), ensure_ascii=rng.random() < 0.5)
    return draw.mutated(rng, written) if rng.random() < 0.3 else written


def _read_tasks(content: str, folder: Path) -> None:
    path = folder / "tasks.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    for task in load_tasks(path):
        require(task.task_id.startswith("webarena"), "tasks have ids of their family")


# -- judges and answers ------------------------------------------------------------------------


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


class _Nonsense:
    """A judge that answers, or raises, whatever it was given."""

    name = "nonsense"

    def __init__(self, said: Any) -> None:
        self._said = said

    async def matches(self, question: AnswerQuestion) -> bool:
        if isinstance(self._said, str) and self._said[:1] in ("<", "!", "{"):
            raise RuntimeError(self._said)
        said: bool = self._said
        return said

    same_reason = matches


def _read_judge(said: Any, _: Path) -> None:
    judge = PatientJudge(_Nonsense(said), EvaluatorSettings(), Deadline(0.01))
    answer = _runner().run(judge.matches(AnswerQuestion("intent", "reference", str(said))))
    require(answer is said and isinstance(said, bool), "only yes and no are answers")


def _read_words(found: str, _: Path) -> None:
    words = tokens(found)
    require(sum(map(len, words)) <= len(found), "words come from the text")


# -- the report --------------------------------------------------------------------------------

_VIEWS, _FIELDS = 25, 12


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.shape: list[object] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, *(name for name, _ in attrs)))


def _make_report(rng: random.Random) -> list[str]:
    return [draw.text(rng, 40) for _ in range(_VIEWS * _FIELDS)]


def _page_of(texts: list[str]) -> str:
    def said(one: str) -> str:
        return one.encode("utf-8", "replace").decode() or "-"

    views = []
    for start in range(0, len(texts), _FIELDS):
        a = [said(one) for one in texts[start : start + _FIELDS]]
        steps = (StepView(a[0], a[1], a[2], a[3], a[4], a[5], (True,), {a[0]: 0.1, "value": 0.2}),)
        views.append(
            EpisodeView("e", a[6], a[7], a[8], a[9], 1, "solved", "exit", a[10], a[11], (a[0],), (True,), steps)
        )
    return render_report(Report(said(texts[0]), ((said(texts[1]), said(texts[2])),), (), EpisodeCounts(), tuple(views)))


@cache
def _plain_shape() -> list[object]:
    return _Tags(_page_of(["plain"] * (_VIEWS * _FIELDS))).shape


def _read_report(texts: list[str], _: Path) -> None:
    page = _page_of(texts)
    page.encode()
    require(_Tags(page).shape == _plain_shape(), "no text changes the page's elements")


def targets() -> dict[str, Target]:
    """Return every target by name."""
    listed = [
        Target("actions", _make_action, _read_action, (GrammarError,)),
        Target("pages", _make_page, _read_page, (EpisodeFailed,)),
        Target("recipes", _make_recipe, _read_recipe, (RecipeError,)),
        Target("tasks", _make_tasks, _read_tasks, (TaskFileError,)),
        Target("judges", draw.value, _read_judge, (EpisodeFailed,)),
        Target("answers", lambda rng: draw.text(rng, 300), _read_words),
        Target("report", _make_report, _read_report, texts=_VIEWS * _FIELDS),
        *file_targets(),
    ]
    return {target.name: target for target in listed}
