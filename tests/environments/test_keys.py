"""Keys as agents name them, and what a page hears of them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browser.input import commands
from environments.embedded.sessions import SiteEndpoint
from environments.interface.grammar import GrammarError, parse
from environments.interface.keys import ALT, CONTROL, SHIFT, KeyPress, read_keys
from records.environment import Action
from sites.app import create_app
from tests.environments.lab_site import SECRET, serving
from tests.hostile.hostile_site import TRAP, trap_task

in_browser = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
PAGE = """<!doctype html><title>Keys</title><input aria-label=One value=abc><input aria-label=Two><p id=out></p><script>
addEventListener('keydown', e => {
  out.append(`${e.ctrlKey ? 'C-' : ''}${e.shiftKey ? 'S-' : ''}${e.key} ${e.isTrusted};`); });
</script>"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Escape", KeyPress("Escape", "Escape", 27)),
        ("esc", KeyPress("Escape", "Escape", 27)),
        ("ctrl+A", KeyPress("a", "KeyA", 65, CONTROL)),
        ("Shift+a", KeyPress("A", "KeyA", 65, SHIFT, "A")),
        ("Control+Alt+Delete", KeyPress("Delete", "Delete", 46, CONTROL | ALT)),
        ("Enter", KeyPress("Enter", "Enter", 13, 0, "\r")),
        ("Space", KeyPress(" ", "Space", 32, 0, " ")),
        ("+", KeyPress("+", "", 0, 0, "+")),
        ("Control++", KeyPress("+", "", 0, CONTROL)),
        ("7", KeyPress("7", "Digit7", 55, 0, "7")),
    ],
)
def test_a_key_is_read(said: str, expected: KeyPress) -> None:
    assert read_keys(said) == expected


@pytest.mark.parametrize("said", ["", "Foo", "Hyper+A", "Control+", "ab", "+A", "\x00", "F13"])
def test_what_names_no_key_is_none(said: str) -> None:
    assert read_keys(said) is None


def test_a_combination_is_one_key_with_what_is_held() -> None:
    (down, pressed), (up, _) = commands([{"key": "Control+A"}])
    assert (down, up) == ("Input.dispatchKeyEvent", "Input.dispatchKeyEvent")
    assert (pressed["type"], pressed["key"], pressed["modifiers"]) == ("rawKeyDown", "a", CONTROL)
    assert "text" not in pressed


def test_the_grammar_has_keys_and_no_files() -> None:
    assert parse('do(action="Press Key", argument="Escape")') == Action("press_key", "Escape")
    with pytest.raises(GrammarError, match="needs an argument"):
        parse('do(action="Press Key")')
    with pytest.raises(GrammarError, match="files cannot be given"):
        parse('do(action="Upload", argument="a.txt", element="3")')


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(create_app(secret=SECRET, sites={"lab": TRAP})) as port:
        yield SiteEndpoint(port, SECRET)


class TestInABrowser:
    pytestmark = in_browser

    async def test_keys_are_the_keyboards_own(self, env: BrowserEnvironment) -> None:
        await env.reset(trap_task(f"/html?html={quote(PAGE)}"))
        await env.step(Action("press_key", "Control+A", 0))
        seen = await env.step(Action("press_key", "x", 0))
        assert seen.find("One").value == "x"
        await env.step(Action("press_key", "Tab", 0))
        seen = await env.step(Action("press_key", "Shift+y"))
        assert (seen.find("One").value, seen.find("Two").value) == ("x", "Y")
        assert "C-a true;x true;Tab true;S-Y true;" in seen.page_text

    async def test_a_key_that_is_none_is_told_and_changes_nothing(self, env: BrowserEnvironment) -> None:
        await env.reset(trap_task(f"/html?html={quote(PAGE)}"))
        seen = await env.step(Action("press_key", "Foo"))
        assert seen.feedback is not None
        assert seen.feedback.startswith("There is no key 'Foo'")
        assert "true" not in seen.page_text
