"""Every MiniWoB++ page in Chromium: the same from the same seed, fresh after every reset, solved by who solves it."""

import random
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from importlib.util import find_spec

import pytest
import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab
from environments.contract import check_environment
from environments.kinds import make_host
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.pages import PAGES
from environments.miniwob.tasks import make_task
from environments.miniwob.world import MiniwobWorld
from judges.verdicts import Evaluators
from records.environment import Action, Observation, Verdict
from records.episodes import Source, Task
from records.failures import EpisodeFailed
from rollout_workers.agent import Decision, Turn
from rollout_workers.episode import play
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from tests.environments.miniwob_form_solutions import FORM_SOLUTIONS
from tests.environments.miniwob_solutions import SOLUTIONS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(find_spec("miniwob") is None, reason="the package miniwob is not installed: see `make setup`"),
]

FEW_TASKS = (
    "click-button-sequence", "click-test", "click-test-2", "click-test-transfer", "focus-text", "guess-number"
)  # fmt: skip
"""Pages that look alike for many seeds: they differ in the places of their elements, or in what is hidden."""

SOLVERS = SOLUTIONS | FORM_SOLUTIONS

QUICK = BrowserSettings(wait_action_s=0.01)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = PageServer(page_folder())
    server.start()
    yield server.port
    server.close()


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return QUICK


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def env(browser: BrowserProcess, port: int) -> AsyncIterator[BrowserEnvironment]:
    made = BrowserEnvironment(browser, MiniwobWorld(port))
    yield made
    await made.close()


async def solve(env: BrowserEnvironment, page: str, seed: int) -> Verdict:
    seen = await env.reset(make_task(page, seed))
    assert seen.intent
    solution = SOLVERS[page](seen.intent, seen)
    action = next(solution, None)
    while action is not None:
        seen = await env.step(action)
        if seen.feedback and "has ended" in seen.feedback:
            break
        try:
            action = solution.send(seen)
        except StopIteration:
            break
    return await env.evaluate(None)


def some_action(rng: random.Random, seen: Observation) -> Action:
    element = rng.choice(seen.elements)
    if element.options:
        return Action("select", rng.choice(element.options), element.element_id)
    if element.role == "textbox" and rng.random() < 0.7:
        return Action("type", rng.choice(["abc", "7"]), element.element_id)
    return Action("click", None, element.element_id)


def said(text: str) -> str:
    """Only letters and digits, in which an instruction and the page's text agree."""
    return re.sub(r"\W+", "", text).lower()


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_is_determined_by_its_seed_and_by_nothing_before(env: BrowserEnvironment, page: str) -> None:
    one = await env.reset(make_task(page, 5))
    assert one.intent
    assert one.elements
    named_in_text = page != "click-color"  # the page shows a box there, and its instruction says the box's colour
    assert said(one.intent) in said(one.text) or not named_in_text
    rng, seen = random.Random(page), one
    for _ in range(2):
        seen = await env.step(some_action(rng, seen))
        if not seen.elements:
            break
    other = await env.reset(make_task(page, 6))
    assert (await env.evaluate(None)).outcome == 0.0
    assert await env.reset(make_task(page, 5)) == one
    assert (await env.evaluate("an answer")).outcome == 0.0
    assert (other.intent, other.text) != (one.intent, one.text) or page in FEW_TASKS


@pytest.mark.parametrize("page", SOLVERS)
async def test_who_solves_a_page_passes(env: BrowserEnvironment, page: str) -> None:
    for seed in (3, 4):
        verdict = await solve(env, page, seed)
        assert verdict.evidence[:2] == ("the page ended the episode", "raw reward 1, 1 passes")
        assert verdict.outcome == 1.0


async def test_who_does_something_else_fails(env: BrowserEnvironment) -> None:
    seen = await env.reset(make_task("enter-text", 3))
    seen = await env.step(Action("type", "something else", 0))
    await env.step(Action("click", None, seen.find("Submit").element_id))
    verdict = await env.evaluate(None)
    assert verdict == Verdict(0.0, ("the page ended the episode", "raw reward -1, 1 passes"))


async def test_a_part_of_the_reward_does_not_pass(env: BrowserEnvironment) -> None:
    seen = await env.reset(make_task("use-colorwheel", 3))
    await env.step(Action("click", None, seen.find("Submit").element_id))
    verdict = await env.evaluate(None)
    reward = float(re.findall(r"raw reward ([\d.]+),", verdict.evidence[1])[0])
    assert 0.0 < reward < 1.0
    assert verdict.outcome == 0.0


async def test_what_a_page_gave_stays_whatever_is_done_afterwards(env: BrowserEnvironment) -> None:
    first = await env.reset(make_task("click-test-2", 3))
    ended = await env.step(Action("click", None, first.find("ONE").element_id))
    assert ended.feedback == "The page has ended the task; nothing more can be done on it."
    for action in (Action("click", None, first.find("TWO").element_id), Action("wait"), Action("go_backward")):
        later = await env.step(action)
        told = "The page has ended the task already; nothing was done."
        assert later == replace(ended, feedback=told, refused=True)
    assert (await env.evaluate(None)).outcome == 1.0


async def test_a_slot_plays_a_page_again_without_loading_it(
    browser: BrowserProcess, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = BrowserEnvironment(browser, MiniwobWorld(port))  # of its own: a context is replaced after so many episodes
    opened: list[str] = []
    goto = BrowserTab.goto

    async def counted(tab: BrowserTab, url: str, timeout_s: float) -> int:
        if url != "about:blank":
            opened.append(url.rpartition("/")[2])
        return await goto(tab, url, timeout_s)

    monkeypatch.setattr(BrowserTab, "goto", counted)
    for page in ("click-link", "click-tab", "focus-text-2"):
        for seed in range(4):
            seen = await env.reset(make_task(page, seed))
            await env.step(Action("click", None, seen.elements[-1].element_id))
            await env.evaluate(None)
    # focus-text-2 is one of those that keep what was typed into them.
    await env.close()
    assert opened == ["click-link.html", "click-tab.html", *["focus-text-2.html"] * 4]


async def test_a_page_stays_within_its_document(env: BrowserEnvironment) -> None:
    seen = await env.reset(make_task("guess-number", 3))
    seen = await env.step(Action("search", "99", seen.elements[0].element_id))
    assert "lower than 99" in seen.text  # its form, when sent, would load the page anew


async def test_a_task_of_no_page_is_the_tasks_failure(env: BrowserEnvironment) -> None:
    task = replace(make_task("click-test", 1), parameters={"page": "drag-box", "seed": 1})
    with pytest.raises(EpisodeFailed, match="task/unknown_page"):
        await env.reset(task)


async def test_it_keeps_the_contract(browser: BrowserProcess, port: int) -> None:
    await check_environment(lambda: BrowserEnvironment(browser, MiniwobWorld(port)), make_task("click-tab-2", 3))


async def test_an_episode_leaves_no_listening_mouse_behind(env: BrowserEnvironment) -> None:
    task = make_task("social-media", 5)
    first = await env.reset(task)
    more = next(e.element_id for e in first.elements if e.name == "more")
    assert (await env.step(Action("click", None, more))).text != first.text
    assert await env.reset(task) == first  # what the mouse is over looks different on this page


async def test_what_is_chosen_in_a_list_is_said_by_the_step_that_chooses_it(env: BrowserEnvironment) -> None:
    seen = await env.reset(make_task("click-scroll-list", 8))
    chooser = next(e for e in seen.elements if e.options)
    for option in chooser.options[:3]:
        seen = await env.step(Action("select", option, chooser.element_id))
        names = {e.name for e in seen.elements}
        assert f"leave out {option}" in names
        assert f"add {option}" not in names


async def test_what_is_typed_into_a_text_area_is_said_by_the_step_that_types_it(env: BrowserEnvironment) -> None:
    seen = await env.reset(make_task("scroll-text", 24))
    for typed in ("lamp", "two words"):
        seen = await env.step(Action("type", typed, 0))
        assert typed in seen.text.split("\n")


class Clicker:
    """Clicks the element that its last number names, and remembers what it was asked to do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def decide(self, turn: Turn) -> Decision:
        import numpy as np

        self.asked.append(turn.intent)
        none = np.zeros(1, dtype=np.int32)
        text = 'do(action="Click", element="0")' if turn.index == 0 else "exit()"
        return Decision(none, none, np.zeros(1, dtype=np.float32), text, 0, 0.0, 0)


async def test_the_agent_and_the_record_get_the_pages_own_instruction(env: BrowserEnvironment) -> None:
    task: Task = make_task("click-test-2", 3)
    spec = EpisodeSpec("e-1", task, Source.EVALUATION, 0, 0)
    clicker = Clicker()
    played = await play(env, clicker, spec, RolloutSettings())
    assert clicker.asked == ["Click button ONE."] * 2
    assert played.trajectory.intent == "Click button ONE."
    assert played.trajectory.outcome == 1.0
    assert played.trajectory.steps[1].feedback == "The page has ended the task; nothing more can be done on it."


async def test_a_worker_gets_it_by_name() -> None:
    host = make_host("miniwob", {}, None, QUICK, Evaluators())
    await host.start()
    try:
        made = await host.environment()
        seen = await made.reset(make_task("click-test", 1))
        assert seen.intent == "Click the button."
        assert seen.url == "__MINIWOB__/miniwob/click-test.html"
        assert host.alive()
    finally:
        await host.close()
    assert not host.alive()
