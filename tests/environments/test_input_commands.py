"""From the page script's list of inputs to DevTools commands."""

from typing import Any

import pytest

from environments.browser.input import commands


def told(listed: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """The values of ``names`` in each command's parameters."""
    return [tuple(parameters.get(name) for name in names) for _, parameters in commands(listed)]


def test_a_press_moves_there_first_and_lets_go() -> None:
    found = told([{"press": [3, 4.5], "button": "left"}], "type", "x", "y", "button")
    assert found == [
        ("mouseMoved", 3, 4.5, None), ("mousePressed", 3, 4.5, "left"), ("mouseReleased", 3, 4.5, "left"),
    ]  # fmt: skip


def test_a_movement_is_followed_by_an_empty_release() -> None:
    assert told([{"move": [1, 2]}], "type", "button") == [("mouseMoved", None), ("mouseReleased", "none")]


def test_text_goes_in_one_piece_and_keys_go_down_and_up() -> None:
    assert told([{"text": "lam"}, {"key": "p"}, {"key": "Enter"}], "text", "type", "key") == [
        ("lam", None, None), ("p", "keyDown", "p"), (None, "keyUp", "p"), ("\r", "keyDown", "Enter"),
        (None, "keyUp", "Enter"),
    ]  # fmt: skip


@pytest.mark.parametrize("character", [".", "'", "(", "-", "%"])
def test_a_character_is_never_taken_for_a_key_whose_number_it_shares(character: str) -> None:
    assert told([{"key": character}], "text", "windowsVirtualKeyCode")[0] == (character, 0)


def test_keys_without_a_text_write_nothing() -> None:
    assert told([{"key": "Delete"}], "type", "text") == [("rawKeyDown", None), ("keyUp", None)]


def test_what_a_page_lists_is_passed_on_as_numbers_only() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        commands([{"press": ["1; x", 2], "button": "left"}])
