"""Episodes without a browser: forms, history, tabs, feedback, failures and the evaluators' view."""

from dataclasses import replace

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from environments.contract import check_environment
from records.environment import Action, Observation
from records.failures import EpisodeFailed, FailureKind
from sites.app import create_app
from tests.environments.lab_site import lab_app, lab_task, target


@pytest.fixture
def env() -> BrowserlessEnvironment:
    return BrowserlessEnvironment(lab_app())


async def do(
    env: BrowserlessEnvironment, seen: Observation, kind: str, name: str, argument: str | None = None
) -> Observation:
    return await env.step(Action(kind, argument, seen.find(name).element_id))


async def test_it_keeps_the_contract(env: BrowserlessEnvironment) -> None:
    app = lab_app()
    await check_environment(lambda: BrowserlessEnvironment(app), lab_task())


async def test_a_form_sends_what_a_browser_sends(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task("/post"))
    seen = await do(env, seen, "type", "Say it", "two\nlines, more than twenty characters")
    seen = await do(env, seen, "select", "Size", "large")
    seen = await do(env, seen, "click", "Gift wrap")
    seen = await do(env, seen, "click", "Cash")
    assert [seen.find(n).value for n in ("Size", "Gift wrap", "Card", "Cash")] == ["Large", "checked", "", "checked"]
    seen = await do(env, seen, "click", "Send")
    assert seen.url == "__LAB__/echo"
    sent = (
        "who='me' mail='' count='2' secret='' text='two\\r\\nlines, more than' size='l' gift='on' pay='cash' "
        "fixed='same' token='t1' go='1'"
    )
    assert seen.page_text == f"POST {sent} Start"


@pytest.mark.parametrize(("wanted", "chosen"), [("larg", "Large"), ("dium s", "Medium size"), ("small", "Small")])
async def test_a_part_that_one_option_has_is_enough(env: BrowserlessEnvironment, wanted: str, chosen: str) -> None:
    seen = await do(env, await env.reset(lab_task("/form")), "select", "Size", wanted)
    assert (seen.find("Size").value, seen.feedback, seen.refused) == (chosen, None, False)


@pytest.mark.parametrize("wanted", ["a", "huge", " "])
async def test_a_part_that_no_option_or_several_have_is_refused(env: BrowserlessEnvironment, wanted: str) -> None:
    seen = await do(env, await env.reset(lab_task("/form")), "select", "Size", wanted)
    assert (seen.find("Size").value, seen.refused) == ("Medium size", True)


async def test_a_get_form_puts_its_fields_into_the_address(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task())
    seen = await do(env, seen, "search", "Search", "blue & red")
    assert seen.url == "__LAB__/search?q=blue+%26+red"
    assert "q='blue & red'" in seen.page_text


async def test_what_cannot_be_sent_is_told(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task("/form"))
    seen = await do(env, seen, "type", "Count", "9")
    seen = await do(env, seen, "click", "Send")
    assert seen.url == "__LAB__/form"
    assert seen.feedback == "The form was not sent: Count is not filled in as it must be."
    assert seen.refused
    seen = await do(env, seen, "type", "Count", "many")
    assert seen.feedback == "Element 2 (textbox Count) does not accept 'many'."


@pytest.mark.parametrize(
    ("kind", "name", "argument", "feedback"),
    [
        ("type", "Start", "x", "Nothing can be typed into element 12 (link Start)."),
        ("type", "Fixed", "x", "Element 9 (textbox Fixed) cannot be changed."),
        ("select", "Size", "Huge", "Element 5 (select Size) has no option 'Huge'."),
        ("select", "Who", "Huge", "Element 0 (textbox Who) is not a list to select from."),
    ],
)
async def test_impossible_actions_are_told(
    env: BrowserlessEnvironment, kind: str, name: str, argument: str, feedback: str
) -> None:
    seen = await env.reset(lab_task("/form"))
    after = await do(env, seen, kind, name, argument)
    assert (after.feedback, after.refused) == (feedback, True)
    assert after.text == seen.text
    assert not (await env.step(Action("wait"))).refused, "the next action is another one"


async def test_going_back_restores_what_was_typed(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task("/form"))
    seen = await do(env, seen, "type", "Who", "somebody")
    seen = await do(env, seen, "click", "Start")
    assert seen.title == "Lab"
    seen = await env.step(Action("go_backward"))
    assert seen.find("Who").value == "somebody"
    seen = await env.step(Action("go_forward"))
    assert seen.title == "Lab"
    assert (await env.step(Action("go_forward"))).feedback == "There is no later page to go forward to."


async def test_an_answer_to_a_form_is_not_returned_to(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task("/post"))
    seen = await do(env, seen, "click", "Send")
    seen = await do(env, seen, "click", "Start")
    seen = await env.step(Action("go_backward"))
    assert seen.title == "Lab"
    assert seen.feedback is not None
    assert "answered a form" in seen.feedback


async def test_tabs_open_switch_and_have_an_end(env: BrowserlessEnvironment) -> None:
    seen = await env.reset(lab_task())
    seen = await do(env, seen, "click", "New tab")
    assert seen.text.split("\n")[:2] == ["@ New", "tabs 0 Lab | 1 New (current)"]
    seen = await env.step(Action("switch_tab", "0"))
    assert seen.title == "Lab"
    for _ in range(5):
        seen = await do(env, await env.step(Action("switch_tab", "0")), "click", "New tab")
    assert seen.feedback == "Too many tabs are open; the new one was closed."
    assert not seen.refused, "the link was clicked"


@pytest.mark.parametrize("link", ["Away", "Hidden way out"])
async def test_other_hosts_are_refused(env: BrowserlessEnvironment, link: str) -> None:
    seen = await env.reset(lab_task())
    after = await do(env, seen, "click", link)
    assert after.url == "__LAB__/"
    assert after.feedback is not None
    assert "outside this task's sites" in after.feedback
    assert not after.refused, "the link was clicked"


async def test_a_start_outside_the_sites_is_the_tasks_fault(env: BrowserlessEnvironment) -> None:
    for address in ("http://evil.example/", "__SHOP__/"):
        with pytest.raises(EpisodeFailed) as caught:
            await env.reset(replace(lab_task(), start_url=address))
        assert caught.value.failure.kind is FailureKind.TASK


async def test_a_site_that_fails_is_no_observation(env: BrowserlessEnvironment) -> None:
    with pytest.raises(EpisodeFailed) as caught:
        await env.reset(lab_task("/broken"))
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, "site_error")


async def test_a_lost_session_fails_the_episode() -> None:
    app = lab_app()
    env = BrowserlessEnvironment(app)
    seen = await env.reset(lab_task())
    for token in list(app.state.sessions._sessions):
        app.state.sessions.drop(token)
    with pytest.raises(EpisodeFailed) as caught:
        await do(env, seen, "click", "Form")
    assert caught.value.failure.code.name == "site_session_lost"


async def test_sessions_are_given_back() -> None:
    app = create_app()
    env = BrowserlessEnvironment(app)
    before = len(app.state.sessions)
    for _ in range(3):
        await env.reset(replace(lab_task(), sites=("shop",), start_url="__SHOP__/", require_login=True))
    assert len(app.state.sessions) == before + 1
    await env.close()
    await env.close()
    assert len(app.state.sessions) == before


async def test_the_evaluators_see_pages_and_controls(env: BrowserlessEnvironment) -> None:
    wanted = [
        target("last", "document.querySelector('#who').value", {"exact_match": "you"}),
        target("__LAB__/table", 'document.querySelector("ul").outerText', {"must_include": ["one", "two three"]}),
        target("__LAB__/table", "", {"must_include": ["Colour"]}),
        target("__LAB__/table", "document.querySelector('#absent').innerText", {"exact_match": ""}),
    ]
    seen = await env.reset(lab_task("/form", eval_types=["program_html"], program_html=wanted, reference_answers=None))
    assert (await env.evaluate(None)).outcome == 0.0
    await do(env, seen, "type", "Who", "you")
    verdict = await env.evaluate(None)
    assert verdict.outcome == 1.0, verdict.evidence


async def test_a_locator_that_needs_a_browser_is_no_zero(env: BrowserlessEnvironment) -> None:
    wanted = [{"url": "last", "locator": "[...document.links].length", "required_contents": {"exact_match": "1"}}]
    await env.reset(lab_task("/form", eval_types=["program_html"], program_html=wanted, reference_answers=None))
    with pytest.raises(EpisodeFailed) as caught:
        await env.evaluate(None)
    assert caught.value.failure.code.name == "locator_needs_browser"
