"""What a page answered, read with distrust: any script of a page can speak in the page script's place.

Owns the reading of replies. Invariants: whatever comes, the reading ends and gives values of the right types
and of bounded size, or ``EpisodeFailed`` (``infra/page_reply_malformed``), so that nothing after it has to
check again; texts hold no lone surrogates, which could not be encoded. Pure; the limits are far above what the
page script sends of any page, because it cuts first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from environments.interface.feedback import CODES
from environments.interface.keys import read_keys
from environments.interface.snapshot import MAX_CONTROL_DEPTH, Node, RichView
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

MAX_REPLY = 8_000_000
"""Longest reply, in characters; the page is asked for its length before any of it is sent."""

LARGE = 200_000
"""Characters past which a reply, and what it shows, is worked on in a thread."""

MAX_NODES = 60_000
"""Most elements in a reply."""

DEEPEST = MAX_CONTROL_DEPTH + 1
"""Deepest element of a reply, in either of its trees."""

MAX_FEEDBACK = 8
"""Most lines of feedback of one step that are passed on."""

_MAX_TITLE, _MAX_URL, _MAX_DETAIL, _MAX_INPUTS, _MAX_TABLE = 1_000, 4_000, 500, 64, 10_000
_MAX_ENTRY = 100
_TOLD = {
    "code": str, "detail": str, "invalid": int, "new_tab": bool, "posted": bool, "navigating": bool, "still": bool,
    "redirects": int, "entry": str,
}  # fmt: skip
_FEEDBACK: dict[str, type] = {"code": str, "detail": str}
_SEEN = {"url": str, "title": str, "status": int, "cut": bool}
_FLAGS = frozenset({"checked", "disabled", "clickable", "unspoken"})
_LISTS = frozenset({"options", "selected"})
_PATTERNS = {"mark": re.compile(r"\d{1,6}", re.ASCII), "data-bbox": re.compile(r"-?\d+(,-?\d+){3}", re.ASCII)}
_TAG = re.compile(r"[^\s<>]{1,100}")
_KEYS = frozenset({"Enter", "Delete", "Unidentified", "SelectAll"})
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Seen:
    """What is visible of a page.

    ``status`` is the HTTP status (0 where there is none). ``cut`` says that the page is too large to be shown whole,
    ``large`` that it is worked on in a thread. ``rich`` is there for the ``webrl`` format only; ``aside`` is whatever
    JSON the page gives there.
    """

    url: str
    title: str
    status: int
    cut: bool
    large: bool
    root: Node
    rich: RichView | None
    aside: Any


@dataclass(frozen=True, slots=True)
class PageReply:
    """What the page script told of a step, and what is visible after it.

    ``code`` (with ``detail``) says why the action did not do what it asks for, '' that it did; ``invalid`` is the
    number of the field that kept a form from being sent, or -1; ``feedback`` holds (code, detail) of what else
    happened. ``new_tab``: the page opened a tab; ``posted``: it sent a form by POST; ``navigating``: another document
    takes its place; ``still``: nothing came of the action. ``redirects`` counts those that led to this document,
    ``entry`` is the key of its history entry. ``seen`` is None where another document takes its place, and where the
    page opened a tab, which is looked at instead.
    """

    code: str
    detail: str
    invalid: int
    new_tab: bool
    posted: bool
    navigating: bool
    still: bool
    redirects: int
    entry: str
    feedback: tuple[tuple[str, str], ...]
    seen: Seen | None


class _Malformed(ValueError):
    """The reply is not one of the page script's; the message says where it differs."""


def read_result(raw: str, url: str) -> PageReply:
    """Return what a step told and what is visible after it.

    Raises:
        EpisodeFailed: ``infra/page_reply_malformed``.
    """
    try:
        return _reply(_object(raw), large=len(raw) > LARGE)
    except (ValueError, RecursionError) as error:
        raise malformed(url, error) from error


def read_inputs(raw: str, url: str) -> list[dict[str, Any]]:
    """Return the inputs that the page script asks for, as ``browser_input`` takes them.

    Raises:
        EpisodeFailed: ``infra/page_reply_malformed``.
    """
    try:
        listed = _object(raw).get("input")
        if not isinstance(listed, list) or len(listed) > _MAX_INPUTS:
            raise _Malformed(f"input: expected a list of at most {_MAX_INPUTS}")
        return [_input(item) for item in listed]
    except (ValueError, RecursionError) as error:
        raise malformed(url, error) from error


def malformed(url: str, what: object) -> EpisodeFailed:
    """Return the failure of a page whose reply cannot be used."""
    detail = f"{url[:200]}: the page's reply is not the page script's: {str(what)[:200]}"
    return EpisodeFailed(Failure(codes.PAGE_REPLY_MALFORMED, detail))


def _object(raw: str) -> dict[str, Any]:
    if len(raw) > MAX_REPLY:
        raise _Malformed(f"expected JSON text of at most {MAX_REPLY} characters")
    value = json.loads(raw)
    if _SURROGATE.search(raw) or not _encodable(raw):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    if not isinstance(value, dict):
        raise _Malformed(f"expected an object, found a {type(value).__name__}")
    return value


def _encodable(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _reply(value: dict[str, Any], *, large: bool) -> PageReply:
    told = _fields(value, _TOLD)
    feedback = value.get("feedback")
    if told["code"] and told["code"] not in CODES or not isinstance(feedback, list):
        raise _Malformed("expected a known code and a list of feedback")
    told |= {"detail": told["detail"][:_MAX_DETAIL], "entry": told["entry"][:_MAX_ENTRY]}
    lines = tuple(_feedback(line) for line in feedback[:MAX_FEEDBACK])
    hidden = told["navigating"] or "root" not in value
    return PageReply(**told, feedback=lines, seen=None if hidden else _seen(value, large))


def _seen(value: dict[str, Any], large: bool) -> Seen:
    found = _fields(value, _SEEN)
    return Seen(
        url=found["url"][:_MAX_URL],
        title=found["title"][:_MAX_TITLE],
        status=found["status"],
        cut=found["cut"],
        large=large,
        root=_Trees(_fact).read(value["root"]),
        rich=None if value.get("tree") is None else _rich(value["tree"], value.get("window")),
        aside=value.get("aside"),
    )


def _rich(tree: object, window: object) -> RichView:
    if not isinstance(window, list) or len(window) != 2 or not all(map(_is_number, window)):
        raise _Malformed("window: expected two numbers")
    return RichView(_Trees(_text).read(tree), *window)


def _fields(value: dict[str, Any], kinds: dict[str, type]) -> dict[str, Any]:
    for name, kind in kinds.items():
        if type(value.get(name)) is not kind:
            raise _Malformed(f"{name}: expected {kind.__name__}, found {type(value.get(name)).__name__}")
    return {name: value[name] for name in kinds}


def _feedback(value: object) -> tuple[str, str]:
    found: dict[str, Any] = _fields(value, _FEEDBACK) if isinstance(value, dict) else {"code": ""}
    if found["code"] not in CODES:
        raise _Malformed("feedback: expected known codes with texts")
    return found["code"], found["detail"][:_MAX_DETAIL]


def _input(item: object) -> dict[str, Any]:
    if isinstance(item, dict):
        if isinstance(item.get("text"), str):
            return {"text": item["text"]}
        key = item.get("key")
        if isinstance(key, str) and (len(key) == 1 or key in _KEYS or read_keys(key) is not None):
            return {"key": key}
        if _is_point(item.get("move")):
            return {"move": item["move"]}
        if _is_point(item.get("drag")) and _is_point(item.get("to")):
            return {"drag": item["drag"], "to": item["to"]}
        if _is_point(item.get("press")) and item.get("button") in ("left", "right"):
            return {"press": item["press"], "button": item["button"]}
    raise _Malformed("input: expected a text, a key, a movement, a press or a drag")


def _is_point(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 1e9


class _Trees:
    """Builds nodes from nested ``[tag, attributes, child, child, …]`` lists; ``fits`` is what an attribute may be."""

    def __init__(self, fits: Callable[[str, object], bool]) -> None:
        self._fits = fits
        self._left = MAX_NODES

    def read(self, value: object, depth: int = 0) -> Node:
        """Return the tree; raise ``_Malformed`` where it is none or too large."""
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise _Malformed(f"expected at most {MAX_NODES} elements, none deeper than {DEEPEST}")
        if type(value) is not list or len(value) < 2:
            raise _Malformed("expected an element as a list of tag, attributes and children")
        tag, attributes = value[0], value[1]
        if type(tag) is not str or not _TAG.fullmatch(tag) or type(attributes) is not dict:
            raise _Malformed("expected an element's tag and attributes")
        for name, held in attributes.items():
            if not self._fits(name, held):
                raise _Malformed(f"attribute {name[:40]!r}: found a {type(held).__name__} that it cannot have")
        node = Node(tag, attributes)
        children = node.children
        for child in value[2:]:
            children.append(child if type(child) is str else self.read(child, depth + 1))
        return node


def _fact(name: str, held: object) -> bool:
    """Whether an attribute of the visible tree is one of the facts of ``snapshot``."""
    if name == "n":
        return type(held) is int and held >= 0
    if name in _LISTS:
        return type(held) is list and len(held) <= _MAX_TABLE and all(type(one) is str for one in held)
    return held is True if name in _FLAGS else _text(name, held)


def _text(name: str, held: object) -> bool:
    """Whether an attribute is a text, and of the form that its name asks for."""
    return type(held) is str and (name not in _PATTERNS or _PATTERNS[name].fullmatch(held) is not None)
