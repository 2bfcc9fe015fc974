"""A page's reply that does not say what the page script says fails the episode, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from environments.browser.page_reply import read_result
from records.failures import EpisodeFailed

TOLD = {
    "code": "", "detail": "", "invalid": -1, "new_tab": False, "posted": False, "navigating": True, "still": False,
    "feedback": [{"code": "dialog", "detail": "hello"}],
}  # fmt: skip


def read(**changed: Any) -> dict[str, Any]:
    return read_result(json.dumps(TOLD | changed), "http://shop.localhost/")


def test_what_the_script_says_is_taken() -> None:
    assert read()["feedback"] == TOLD["feedback"]


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
