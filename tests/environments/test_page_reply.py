"""A page's reply that does not say what the page script says fails the episode, whatever is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from environments.browser.page_reply import LARGE, PageReply, Seen, read_result
from environments.interface.snapshot import Node, RichView
from records.failures import EpisodeFailed

TOLD = {
    "code": "", "detail": "", "invalid": -1, "new_tab": False, "posted": False, "navigating": True, "still": False,
    "redirects": 1, "entry": "k1", "feedback": [{"code": "dialog", "detail": "hello"}],
}  # fmt: skip
SEEN = {
    "navigating": False, "url": "http://shop.localhost/", "title": "Shop", "status": 200, "cut": False,
    "root": ["body", {}, ["a", {"href": "", "n": 0}, "Cart"]], "tree": ["body", {"mark": "0"}], "window": [1280, 720],
    "aside": {"done": True},
}  # fmt: skip


def read(**changed: Any) -> PageReply:
    return read_result(json.dumps(TOLD | changed), "http://shop.localhost/")


def test_what_the_script_says_is_taken() -> None:
    assert read() == PageReply(
        code="", detail="", invalid=-1, new_tab=False, posted=False, navigating=True, still=False, redirects=1,
        entry="k1", feedback=(("dialog", "hello"),), seen=None,
    )  # fmt: skip


def test_what_is_visible_is_taken() -> None:
    root = Node("body", {}, [Node("a", {"href": "", "n": 0}, ["Cart"])])
    rich = RichView(Node("body", {"mark": "0"}), 1280, 720)
    shop = "http://shop.localhost/"
    seen = Seen(url=shop, title="Shop", status=200, cut=False, large=False, root=root, rich=rich, aside={"done": True})
    assert read(**SEEN).seen == seen
    assert read(**SEEN | {"tree": None}).seen == replace(seen, rich=None)


def test_a_page_that_gives_way_or_shows_another_tab_shows_nothing() -> None:
    assert read(**SEEN | {"navigating": True}).seen is None
    assert read(navigating=False, new_tab=True).seen is None


def test_what_is_large_is_cut_and_known_to_be_large() -> None:
    seen = read(**SEEN | {"title": "x" * LARGE}).seen
    assert seen is not None
    assert (seen.large, len(seen.title)) == (True, 1_000)


@pytest.mark.parametrize(
    "feedback",
    [{}, [], "dialog", 3, {"code": "dialog"}, {"code": "dialog", "detail": 3}, {"code": "unheard_of", "detail": ""},
     {"code": ["dialog"], "detail": ""}, {"code": {"dialog": 1}, "detail": ""}],
)  # fmt: skip
def test_a_feedback_of_another_form_fails_the_episode(feedback: object) -> None:
    with pytest.raises(EpisodeFailed, match="feedback|code|detail"):
        read(feedback=[feedback])


@pytest.mark.parametrize("name", sorted(TOLD))
@pytest.mark.parametrize("value", [None, 3.5, {"a": 1}, [[]]])
def test_a_field_of_another_kind_fails_the_episode(name: str, value: object) -> None:
    with pytest.raises(EpisodeFailed):
        read(**{name: value})


@pytest.mark.parametrize("name", sorted(SEEN.keys() - {"navigating", "tree", "aside"}))
@pytest.mark.parametrize("value", [None, 3.5, {"a": 1}, [[]]])
def test_a_visible_part_of_another_kind_fails_the_episode(name: str, value: object) -> None:
    with pytest.raises(EpisodeFailed):
        read(**SEEN | {name: value})
