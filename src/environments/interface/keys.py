"""Keys and combinations of keys as an agent names them: ``Escape``, ``Control+A``, ``Shift+Tab``.

Owns ``read_keys``. Pure; names are those of the UI Events specification, without regard to case, and a few short forms.
"""

from __future__ import annotations

from dataclasses import dataclass

ALT, CONTROL, META, SHIFT = 1, 2, 4, 8
"""Modifiers, as DevTools counts them."""

_MODIFIERS = {
    "alt": ALT, "option": ALT, "control": CONTROL, "ctrl": CONTROL, "meta": META, "command": META, "cmd": META,
    "shift": SHIFT,
}  # fmt: skip
_VIRTUAL = {
    "Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8, "Delete": 46, "Insert": 45, "Home": 36, "End": 35,
    "PageUp": 33, "PageDown": 34, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39,
    **{f"F{number}": 111 + number for number in range(1, 13)},
}  # fmt: skip
_NAMED = {name.lower(): name for name in _VIRTUAL} | {
    "esc": "Escape", "return": "Enter", "del": "Delete", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft",
    "right": "ArrowRight",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyPress:
    """One key with the ``modifiers`` held meanwhile; ``text`` is what it writes, '' for nothing."""

    key: str
    code: str
    virtual_code: int
    modifiers: int = 0
    text: str = ""


def read_keys(said: str) -> KeyPress | None:
    """Return the key that ``said`` names, None where it names none."""
    *held, last = said.strip().split("+") if said.strip() not in ("", "+") else [said.strip()]
    if last == "" and len(held) > 1 and held[-1] == "":
        *held, last = *held[:-1], "+"
    named = [_MODIFIERS.get(name.strip().lower()) for name in held]
    if None in named:
        return None
    modifiers = sum({name for name in named if name})
    last = last.strip() or last
    silent = modifiers & (ALT | CONTROL | META)
    if last.lower() == "space" or said == " ":
        return KeyPress(" ", "Space", 32, modifiers, "" if silent else " ")
    if last.lower() in _NAMED:
        name = _NAMED[last.lower()]
        return KeyPress(name, name, _VIRTUAL[name], modifiers, "\r" if name == "Enter" and not silent else "")
    if len(last) != 1 or not last.isprintable():
        return None
    key = last.upper() if modifiers & SHIFT else last.lower() if silent else last
    plain = key.isascii() and key.isalnum()
    code = "" if not plain else f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
    return KeyPress(key, code, ord(key.upper()) if plain else 0, modifiers, "" if silent else key)
