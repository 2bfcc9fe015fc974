"""Input as a person gives it, through DevTools: events that pages cannot tell from a mouse and a keyboard.

Owns the translation of the page script's list (``page_input.js``) into DevTools commands. Invariants: pure;
what the list holds is data of the page and is passed on as numbers and texts only. Without frames
Chromium holds a mouse's movement back until another mouse event comes, hence the empty release after it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from environments.interface.keys import read_keys

_DRAG_STEPS = 6
Command = tuple[str, dict[str, Any]]
"""A DevTools method and its parameters."""

_KEYS: dict[str, dict[str, Any]] = {
    "Enter": {"key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13},
    "Delete": {"key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46},
    "Unidentified": {"key": "Unidentified"},
    "SelectAll": {
        "key": "a",
        "code": "KeyA",
        "windowsVirtualKeyCode": 65,
        "modifiers": 4 if sys.platform == "darwin" else 2,
        "commands": ["selectAll"],
    },
    " ": {"key": " ", "code": "Space", "text": " ", "windowsVirtualKeyCode": 32},
}


def commands(listed: list[dict[str, Any]]) -> list[Command]:
    """Return the DevTools commands for a list of inputs, in order."""
    return [command for item in listed for command in _commands(item)]


def drag_path(start: list[float], end: list[float]) -> list[list[float]]:
    """Return the points that a pointer comes through: a few pixels at first, by which pages know a drag, then steps."""
    across, along = end[0] - start[0], end[1] - start[1]
    far = max(1.0, (across**2 + along**2) ** 0.5)
    shares = [
        *(min(0.5, pixels / far) for pixels in (4, 8)),
        *(step / _DRAG_STEPS for step in range(1, _DRAG_STEPS + 1)),
    ]
    return [[start[0] + share * across, start[1] + share * along] for share in sorted(shares)]


def held_mouse(kind: str, point: list[float]) -> Command:
    """Return a mouse event with the left button down, or its release."""
    return "Input.dispatchMouseEvent", _at(kind, point) | {
        "button": "left", "buttons": 0 if kind == "mouseReleased" else 1, "clickCount": 1
    }  # fmt: skip


def held_mouse_moved(point: list[float]) -> list[Command]:
    """Return a movement with the left button down, and an empty release that lets it through."""
    return [
        held_mouse("mouseMoved", point),
        ("Input.dispatchMouseEvent", _at("mouseReleased", point) | {"button": "none", "buttons": 1}),
    ]


def dragged(kind: str, point: list[float], data: dict[str, Any]) -> Command:
    """Return an event of the browser's own drag and drop; ``data`` is what it said when the drag began."""
    return "Input.dispatchDragEvent", _at(kind, point) | {"data": data}


def _commands(item: dict[str, Any]) -> Iterator[Command]:
    if "text" in item:
        yield "Input.insertText", {"text": str(item["text"])}
    elif "key" in item:
        yield from _key(str(item["key"]))
    elif "move" in item:
        yield from _mouse(item["move"])
        yield "Input.dispatchMouseEvent", _at("mouseReleased", item["move"]) | {"button": "none"}
    else:
        yield from _mouse(item["press"])
        button = {"button": str(item["button"]), "clickCount": 1}
        buttons = {"buttons": 2 if item["button"] == "right" else 1}
        yield "Input.dispatchMouseEvent", _at("mousePressed", item["press"]) | button | buttons
        yield "Input.dispatchMouseEvent", _at("mouseReleased", item["press"]) | button


def _mouse(point: list[float]) -> Iterator[Command]:
    yield "Input.dispatchMouseEvent", _at("mouseMoved", point)


def _at(kind: str, point: list[float]) -> dict[str, Any]:
    return {"type": kind, "x": float(point[0]), "y": float(point[1])}


def _key(name: str) -> Iterator[Command]:
    key = (
        _KEYS.get(name)
        or (_combination(name) if len(name) > 1 else None)
        or {"key": name, "text": name, "windowsVirtualKeyCode": _virtual_code(name)}
    )
    yield "Input.dispatchKeyEvent", {"type": "keyDown" if "text" in key else "rawKeyDown", **key}
    yield "Input.dispatchKeyEvent", {"type": "keyUp", **{name: key[name] for name in key if name != "text"}}


def _combination(name: str) -> dict[str, Any] | None:
    """Return a key, with what is held meanwhile, as DevTools takes it."""
    pressed = read_keys(name)
    if pressed is None:
        return None
    key = {"key": pressed.key, "windowsVirtualKeyCode": pressed.virtual_code, "modifiers": pressed.modifiers}
    return key | ({"code": pressed.code} if pressed.code else {}) | ({"text": pressed.text} if pressed.text else {})


def _virtual_code(character: str) -> int:
    """Return the code of a letter or digit; others have none, for their numbers are those of keys such as Delete."""
    return ord(character.upper()) if character.isascii() and character.isalnum() else 0
