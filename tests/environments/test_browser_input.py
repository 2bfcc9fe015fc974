"""Real Chromium: input that pages cannot tell from a person's, and what the agent is told when it comes to nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from environments.browser.input import Command
from environments.browser.process import BrowserProcess
from environments.browser.wire import Wire
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action, Observation
from tests.environments.conftest import QUICK
from tests.environments.lab_site import SECRET, lab_app, lab_task, serving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(lab_app()) as port:
        yield SiteEndpoint(port, SECRET)


@pytest_asyncio.fixture(loop_scope="module")
async def by_events(browser: BrowserProcess, sites: SiteEndpoint) -> AsyncIterator[BrowserEnvironment]:
    made = BrowserEnvironment(browser, EmbeddedWorld(sites), replace(QUICK, trusted_input=False))
    yield made
    await made.close()


async def do(
    env: BrowserEnvironment, seen: Observation, kind: str, name: str, argument: str | None = None
) -> Observation:
    return await env.step(Action(kind, argument, seen.find(name).element_id))


async def log(env: BrowserEnvironment) -> list[str]:
    """What the page's listeners noted since the last call."""
    noted = await env.slot.tab.read(
        "[...document.querySelectorAll('#log li')].map(li => { li.remove(); return li.textContent })"
    )
    return list(noted)


@pytest.mark.parametrize("name", ["Press", "Low"])
async def test_a_click_is_the_mouses_own_wherever_on_the_page(env: BrowserEnvironment, name: str) -> None:
    await do(env, await env.reset(lab_task("/input")), "click", name)
    assert await log(env) == [f"mousedown true {name.lower()}", f"click true {name.lower()}"]


async def test_a_right_click_opens_no_way_back_to_the_left_one(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "right_click", "Press")
    assert await log(env) == ["mousedown true press", "contextmenu true press"]
    await do(env, seen, "click", "Press")
    assert await log(env) == ["mousedown true press", "click true press"]


async def test_events_of_the_page_are_used_where_the_settings_say_so(by_events: BrowserEnvironment) -> None:
    await do(by_events, await by_events.reset(lab_task("/input")), "click", "Press")
    assert await log(by_events) == ["mousedown false press", "click false press"]


async def test_typing_replaces_the_text_and_ends_with_a_key(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "type", "Field", "new")
    assert seen.find("Field").value == "new"
    assert await log(env) == [
        "beforeinput true ne", "input true ne", "keydown true w", "beforeinput true w", "input true w", "keyup true w",
    ]  # fmt: skip
    seen = await do(env, seen, "click", "Press")
    assert (await log(env))[:2] == ["mousedown true press", "change true "]
    seen = await do(env, seen, "type", "Field", "")
    assert seen.find("Field").value == ""
    assert "keydown true Delete" in await log(env)


@pytest.mark.parametrize("text", ["naïve", "日本", "a.b", "2 & <b>", "end ", "it's 100%", "🙂"])
async def test_any_text_arrives_as_it_was_written(env: BrowserEnvironment, text: str) -> None:
    await do(env, await env.reset(lab_task("/input")), "type", "Field", text)
    assert await env.slot.tab.read("field.value") == text


@pytest.mark.parametrize("where", ["field.onkeydown", "field.form.onkeypress", "document.onkeyup", "window.onkeydown"])
async def test_whoever_hears_keys_hears_the_last_of_what_is_typed(env: BrowserEnvironment, where: str) -> None:
    seen = await env.reset(lab_task("/"))
    told = "noted = []; field = document.querySelector('[name=q]'); field.oninput = e => noted.push(e.data);"
    await env.slot.tab.read(f"(() => {{ {told} }})()")
    seen = await do(env, seen, "type", "Search", "mug")  # where nobody does, the text comes as a whole
    assert await env.slot.tab.read("noted") == ["mug"]
    await env.slot.tab.read(f"(() => {{ {where} = e => noted.push(e.type + e.key) }})()")
    seen = await do(env, seen, "type", "Search", "lamp")
    key = where.rpartition(".on")[2] + "p"
    assert await env.slot.tab.read("noted") == ["mug", "lam", *(["p", key] if key.startswith("keyup") else [key, "p"])]


@pytest.mark.parametrize("kind", ["type", "search"])
async def test_input_that_a_busy_worker_gives_late_is_waited_for(
    env: BrowserEnvironment, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    seen = await env.reset(lab_task("/input"))
    give = Wire.give

    async def late(wire: Wire, wanted: list[Command]) -> None:
        await asyncio.sleep(QUICK.settle_timeout_s + 0.5)
        await give(wire, wanted)

    monkeypatch.setattr(Wire, "give", late)
    monkeypatch.setattr("environments.browser.tab._INPUT_WAIT_S", 2 * QUICK.settle_timeout_s + 1)
    seen = await do(env, seen, kind, "Field", "Simon Baker")
    assert seen.find("Field").value == "Simon Baker"
    assert "does not accept" not in (seen.feedback or "")


async def test_a_field_knows_that_it_was_changed_however_it_was_typed_into(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/form"))
    await env.slot.tab.read("(() => { changes = []; onchange = e => changes.push(e.target.name) })()")
    seen = await do(env, seen, "type", "Who", "Ann")
    await do(env, seen, "type", "Secret", "word")
    assert await env.slot.tab.read("changes") == ["who"]


async def test_a_number_that_is_none_is_refused(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "type", "Digits", "12")
    assert (seen.find("Digits").value, seen.feedback) == ("12", None)
    seen = await do(env, seen, "type", "Digits", "2 & <b>")
    assert seen.find("Digits").value == ""
    assert seen.feedback is not None
    assert "does not accept" in seen.feedback


async def test_enter_is_the_keyboards_own(env: BrowserEnvironment) -> None:
    await do(env, await env.reset(lab_task("/input")), "press_enter", "Keyed")
    assert await log(env) == ["Enter true"]


async def test_the_mouse_rests_on_what_it_hovers_over(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/input"))
    assert "Menu" not in seen.page_text
    seen = await do(env, seen, "hover", "Over")
    assert "Menu Deep" in seen.page_text
    assert (await do(env, seen, "hover", "Press")).page_text.count("Menu") == 0


async def test_what_lies_over_an_element_is_named(env: BrowserEnvironment, by_events: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "click", "Below")
    number = seen.find("Below").element_id
    assert seen.feedback == f"Element {number} (button Below) is covered by dialog Cookies."
    seen = await do(by_events, await by_events.reset(lab_task("/input")), "click", "Below")
    assert seen.feedback == "Nothing on the page changed."


async def test_what_no_mouse_reaches_is_used_by_keyboard(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "click", "Tick me")
    assert seen.find("Tick me").value == "checked"
    assert (await do(env, seen, "click", "Skip")).url.startswith("__LAB__/new")


async def test_what_lies_outside_the_page_is_not_offered(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/input"))
    assert "beyond" not in " ".join(element.name for element in seen.elements).lower()
    assert "Box beyond" in seen.page_text


async def test_a_click_that_did_nothing_is_told(env: BrowserEnvironment, by_events: BrowserEnvironment) -> None:
    for driver in (env, by_events):
        seen = await do(driver, await driver.reset(lab_task("/input")), "click", "Dead")
        assert seen.feedback == "Nothing on the page changed."
        assert (await do(driver, seen, "press_enter", "Dead")).feedback == seen.feedback
        for name in ("Field", "Press", "Tick me"):
            assert (await do(driver, seen, "click", name)).feedback is None, name


@pytest.mark.parametrize("name", ["Attach", "Attach anew"])
async def test_a_file_chooser_is_declined_and_told(env: BrowserEnvironment, name: str) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "click", name)
    assert seen.feedback == "The page asked for a file, which cannot be given here."


@pytest.mark.parametrize("name", ["Save", "Report"])
async def test_a_file_that_is_offered_is_told(env: BrowserEnvironment, name: str) -> None:
    seen = await do(env, await env.reset(lab_task("/files")), "click", name)
    assert (seen.url, seen.feedback) == ("__LAB__/files", "The file that the page offered was not downloaded.")


async def test_messages_are_accepted_and_told(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/files")), "click", "Ask twice")
    told = "The page showed a message and it was accepted: "
    assert seen.feedback == f"{told}Your name? {told}Sure?"
    seen = await do(env, seen, "click", "Hold")
    seen = await do(env, seen, "click", "Leave")
    assert seen.url == "__LAB__/new"
    assert seen.feedback is not None
    assert seen.feedback.startswith("The page showed a message")


async def test_a_new_tab_is_followed_and_the_old_one_can_be_gone_back_to(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/files")), "click", "Beside")
    assert seen.url == "__LAB__/new"
    assert seen.text.split("\n")[1] == "tabs 0 Files | 1 New (current)"
    seen = await env.step(Action("switch_tab", "0"))
    assert seen.url == "__LAB__/files"
    assert (await do(env, seen, "click", "Leave")).url == "__LAB__/new", "input reaches the tab that is shown"


ELSEWHERE = "http://evil.example/page"
ASTRAY = {
    "a form": f'<form target=_blank action="{ELSEWHERE}"><button>Go</button></form>',
    "a button of a form": f'<form action="/new"><button formtarget=_blank formaction="{ELSEWHERE}">Go</button></form>',
    "a form without a target": f'<base target=_blank><form action="{ELSEWHERE}"><button>Go</button></form>',
    "a link": f'<a target=_blank href="{ELSEWHERE}">Go</a>',
    "a link without a target": f'<base target=_blank><a href="{ELSEWHERE}">Go</a>',
    "a redirect": '<a target=_blank href="/away">Go</a>',
    "a script": f"<button onclick=\"window.open('{ELSEWHERE}')\">Go</button>",
    "a blank tab": f"<button onclick=\"window.open('').location = '{ELSEWHERE}'\">Go</button>",
}


@pytest.mark.parametrize("how", ASTRAY)
async def test_a_new_tab_that_leads_elsewhere_is_refused_and_ends_no_episode(env: BrowserEnvironment, how: str) -> None:
    await env.reset(lab_task("/files"))
    await env.slot.tab.read(f"void (document.body.innerHTML = {ASTRAY[how]!r})")
    seen = await do(env, await env.pages.look(), "click", "Go")
    if not (seen.url == "__LAB__/files" and seen.feedback):
        seen = await env.step(Action("wait"))
    assert seen.url == "__LAB__/files"
    assert seen.find("Go")
    assert len(env.slot.tabs) == 1


async def test_a_tab_that_closes_itself_leaves_the_one_before(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/input")), "click", "Open")
    assert seen.url == "__LAB__/closing"
    seen = await do(env, seen, "click", "Close")
    assert seen.url == "__LAB__/input"


async def test_every_click_arrives_on_fresh_pages(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/"))
    for _ in range(10):
        seen = await do(env, seen, "click", "Table")
        assert seen.url == "__LAB__/table"
        seen = await do(env, seen, "click", "Buy Mug")
        assert seen.url == "__LAB__/"


async def test_icons_are_called_by_what_a_person_would_be_told(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/icons"))
    assert [(e.role, e.name) for e in seen.elements] == [
        ("button", "Close"), ("button", "Bold"), ("link", "Logo"), ("link", "Feed"), ("button", "Delete"),
        ("button", "Share"), ("button", "Find"),
    ]  # fmt: skip


async def test_frames_and_shadow_trees_are_parts_of_the_page(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/frames"))
    assert seen.text.split("\n") == [
        "@ Frames", "Outside", "link Leave frame 0", "button Load 1", "textbox Inside 2", "button Written in 3",
        "frame Advert from evil.example is not shown", "In the shadow", "textbox Dark 4", "button In the shadow 5",
        "After",
    ]  # fmt: skip


async def test_a_frames_document_is_waited_for_beside_one_that_never_comes(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/late-frame"))
    assert "fetched" in seen.text
    seen = await env.reset(lab_task("/late-frames"))
    assert "fetched" in seen.text
    assert "button Outside" in seen.text


async def test_frames_and_shadow_trees_are_acted_on(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/frames")), "click", "Load")
    assert "fetched" in seen.page_text, "a frame's requests are waited for"
    seen = await do(env, seen, "type", "Inside", "words")
    assert "words" in seen.page_text
    seen = await do(env, seen, "click", "Written in")
    assert seen.find("9").role == "button"
    seen = await do(env, seen, "type", "Dark", "light")
    assert seen.find("Dark").value == "light"
    seen = await do(env, seen, "click", "In the shadow")
    assert (seen.feedback, "trusted true" in seen.page_text) == (None, True)
    seen = await do(env, seen, "click", "Leave frame")
    assert "New page" in seen.page_text
    assert (seen.url, seen.feedback) == ("__LAB__/frames", None)


@pytest.mark.parametrize("to", ["/input", "/new"])
async def test_a_page_that_reloads_or_leaves_under_a_click_is_shown(env: BrowserEnvironment, to: str) -> None:
    seen = await env.reset(lab_task("/input"))
    tab, ask = env.slot.tab, env.slot.tab._ask

    async def asking(form: str, action: dict[str, Any] | None, options: dict[str, Any]) -> str | None:
        said = await ask(form, action, options)
        if action is not None:
            await tab.goto(f"{env.slot.addresses.origins[0]}{to}", 5.0)
        return said

    tab._ask = asking  # type: ignore[method-assign]
    seen = await do(env, seen, "click", "Press")
    assert seen.url == f"__LAB__{to}"
    assert seen.feedback is None
    assert (await env.reset(lab_task("/input"))).feedback is None
