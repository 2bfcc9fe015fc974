"""Dragging from element to element by a real mouse, whether the page listens to the mouse or to drag and drop."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browser.input import drag_path
from environments.embedded.sessions import SiteEndpoint
from environments.interface.grammar import GrammarError, format_action, parse
from records.environment import Action, Observation
from sites.app import create_app
from tests.environments.lab_site import SECRET, serving
from tests.hostile.hostile_site import TRAP, trap_task

BOXES = "<div id=a class=heard>Card</div><p style='height:{gap}px'></p><div id=b class=heard>Done</div><p id=out></p>"
LISTENS = "for (const one of [a, b]) one.addEventListener('click', () => {});"
BY_MOUSE = """let held = null, moved = 0;
a.onmousedown = event => { held = event.isTrusted; };
onmousemove = event => { if (held && event.buttons === 1) moved += 1; };
b.onmouseup = () => { if (held && moved > 2) out.textContent = 'dropped by a person'; };"""
BY_DRAG = """a.draggable = true;
a.ondragstart = event => event.dataTransfer.setData('text/plain', 'Card');
b.ondragover = event => event.preventDefault();
b.ondrop = event => {
  event.preventDefault();
  out.textContent = `${event.dataTransfer.getData('text/plain')} by ${event.isTrusted}`;
};"""


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(create_app(secret=SECRET, sites={"lab": TRAP})) as port:
        yield SiteEndpoint(port, SECRET)


async def dragged(env: BrowserEnvironment, script: str, *, gap: int = 40, to: str = "Done") -> Observation:
    body = BOXES.format(gap=gap)
    page = (
        f"<!doctype html><title>t</title><style>div {{ width: 90px }}</style>{body}<script>{LISTENS}{script}</script>"
    )
    seen = await env.reset(trap_task(f"/html?html={quote(page)}"))
    target = seen.find(to).element_id if to in ("Card", "Done") else to
    return await env.step(Action("drag", str(target), seen.find("Card").element_id))


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
class TestInAPage:
    async def test_a_page_that_listens_to_the_mouse_sees_it_pressed_moved_and_let_go(self, env: BrowserEnvironment):
        assert "dropped by a person" in (await dragged(env, BY_MOUSE)).page_text

    async def test_a_page_with_drag_and_drop_gets_what_was_dragged(self, env: BrowserEnvironment):
        assert "Card by true" in (await dragged(env, BY_DRAG)).page_text

    async def test_the_only_card_of_a_list_that_hears_the_mouse_is_what_is_dragged(self, env: BrowserEnvironment):
        page = (
            "<!doctype html><title>t</title><ul id=list style='padding:0 0 200px'><li>Card</li></ul>"
            "<div class=heard id=b>Done</div><p id=out></p><script>let held = '';"
            "list.addEventListener('mousedown', event => { held = event.target.localName; });"
            "b.addEventListener('mouseup', () => { out.textContent = `held by its ${held}`; });</script>"
        )
        seen = await env.reset(trap_task(f"/html?html={quote(page)}"))
        seen = await env.step(Action("drag", str(seen.find("Done").element_id), seen.find("Card").element_id))
        assert "held by its li" in seen.page_text

    async def test_what_is_let_go_where_nothing_takes_it_changes_nothing(self, env: BrowserEnvironment):
        seen = await dragged(env, BY_MOUSE, to="Card")
        assert "dropped" not in seen.page_text

    async def test_what_does_not_fit_into_one_view_is_dragged_by_events_of_the_page(self, env: BrowserEnvironment):
        assert "Card by false" in (await dragged(env, BY_DRAG, gap=3000)).page_text

    async def test_a_target_that_is_not_there_is_told(self, env: BrowserEnvironment):
        seen = await dragged(env, BY_MOUSE, to="99")
        assert seen.feedback == "There is no element '99' on the page to drag to."


def test_a_drag_names_both_elements():
    text = 'do(action="Drag", argument="7", element="3")'
    assert parse(text) == Action("drag", "7", 3)
    assert format_action(parse(text)) == text
    assert parse('do(action="drag", argument=7, element=3)') == parse(text)
    with pytest.raises(GrammarError, match="Drag needs an argument"):
        parse('do(action="Drag", element="3")')
    with pytest.raises(GrammarError, match="where the element is dropped, must be the number"):
        parse('do(action="Drag", argument="Done", element="3")')


def test_a_drag_begins_slowly_and_ends_where_it_should():
    path = drag_path([0.0, 0.0], [100.0, 0.0])
    assert [point[0] for point in path[:2]] == [4.0, 8.0]
    assert path[-1] == [100.0, 0.0]
    assert path == sorted(path)
