"""``waymark env audit`` holds what agents are shown against what DevTools knows of the same page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RecipeError, RunError
from cluster.preflight.page_audit import audit_pages
from environments.browser.page_audit import compare
from environments.browser.page_opinion import Opinion, Target
from records.environment import Element
from tests.environments.lab_site import serving

GOOD = """<!doctype html><title>Good</title><p>Hello reader</p><a href=/good>Again</a><button>Press</button>
<div id=card style="cursor:pointer">A card</div><label>Name <input></label>
<script>card.addEventListener('click', () => {})</script>"""
# What is drawn on a canvas is not in an observation, and is known to DevTools by its listener.
DRAWN = """<!doctype html><title>Drawn</title><button>Press</button><canvas id=c width=90 height=90></canvas>
<script>c.addEventListener('click', () => {}); setTimeout(() => document.body.append('late'), 700)</script>"""


def _page(request: Request) -> HTMLResponse:
    return HTMLResponse(GOOD if request.url.path == "/good" else DRAWN)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Starlette(routes=[Route("/good", _page), Route("/drawn", _page)])) as port:
        yield f"http://localhost:{port}"


@pytest.mark.browser
def test_a_page_that_is_shown_whole_has_nothing_missing(address: str) -> None:
    (page,) = audit_pages(f"{address}/good", deadline_s=60)
    audit = page.audit
    assert (audit.recall, audit.precision, audit.names, audit.word_recall) == (1.0, 1.0, 1.0, 1.0)
    assert (audit.usable, audit.elements, page.stale) == (4, 4, False)
    assert audit.chars < audit.tree_chars
    assert page.step_ms > 0


@pytest.mark.browser
def test_what_is_missing_is_told_with_its_reason(address: str) -> None:
    with pytest.raises(RunError, match="1 elements that a person could use are not offered"):
        CliRunner().invoke(cli.app, ["env", "audit", f"{address}/drawn"], catch_exceptions=False)
    (page,) = audit_pages(f"{address}/drawn", deadline_s=60)
    assert page.audit.missing == ("<canvas> c: listener",) or "<canvas>" in page.audit.missing[0]
    assert page.audit.recall == 0.5
    assert page.stale


def test_an_environment_without_a_browser_has_no_pages() -> None:
    with pytest.raises(RecipeError, match="has no browser"):
        CliRunner().invoke(cli.app, ["env", "audit", "browserless"], catch_exceptions=False)


def target(group: int, *why: str, unreached: str = "", offered: bool = False, disabled: bool = False) -> Target:
    return Target(group, why, unreached, offered, disabled, f"<b> {group}")


def test_a_target_is_found_by_any_of_its_elements_and_hidden_ones_do_not_count() -> None:
    opinion = Opinion(
        (
            target(0, "cursor"),
            target(0, offered=True),
            target(1, "listener"),
            target(2, "role button", unreached="hidden"),
            target(3, offered=True),
            target(4, "role button", disabled=True),
            target(5, "role link", unreached="out of sight", offered=True),
        ),
        "one two two three",
        900,
    )
    audit = compare("One TWO, three 0", [Element(0, "button", "One", "", ()), Element(1, "link", "", "", ())], opinion)
    assert (audit.usable, audit.found, audit.missing) == (2, 1, ("<b> 1: listener",))
    assert (audit.offered, audit.right) == (3, 1)
    assert audit.vain == ("<b> 3: nothing says that it can be used", "<b> 5: role link, out of sight")
    assert (audit.words, audit.words_shown, audit.unread) == (4, 3, ("two",))
    assert (audit.names, audit.nameless) == (0.5, ("link",))
