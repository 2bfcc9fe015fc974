"""How a page is written down in the format of the WebRL lineage, for checkpoints trained on it.

Owns the rules by which a page's full tree becomes simplified HTML: which elements stay, which
attributes are shown in which order, how they are joined. Byte-compatible with the lineage's own
simplifier (tested against its recorded pairs). Pure; which elements have a number (``mark``) and what
``data-bbox``, ``data-text`` and the like hold is worked out in the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.interface.element_names import MAX_NESTED, Names, role_of
from environments.interface.snapshot import Node, RichView
from records.environment import Element

ATTRIBUTES = (
    "title", "value", "type", "placeholder", "selected", "data-value", "data-text", "data-testid", "data-label",
    "data-bbox", "data-status",
)  # fmt: skip
"""The attributes that are shown, in this order."""

MAX_TEXT = 500
"""Longest text or attribute, in characters."""

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _Simplified:
    """A subtree's text, and whether it counts as content for its parent."""

    text: str
    counts: bool


def simplify(view: RichView) -> str:
    """Return the simplified HTML of a page."""
    return _simplify(view.root, view, in_select=False).text


def _simplify(node: Node, view: RichView, in_select: bool) -> _Simplified:
    mark = node.attributes.get("mark", "")
    stays = bool(mark) or _in_window(node, view) or (in_select and node.tag == "option")
    first = node.children[0] if node.children else ""
    text = _cut(first) if isinstance(first, str) else ""
    shown = {name: value for name in ATTRIBUTES if (value := _attribute(node, name))}
    has_text = bool(text) or any(name != "data-bbox" for name in shown)
    parts = [_simplify(c, view, stays and node.tag == "select") for c in node.children if not isinstance(c, str)]
    contents = sum(part.counts for part in parts)
    inner = " ".join(part.text for part in parts if part.text)
    if stays and (contents > 1 or has_text or (mark and _in_window(node, view))):
        inner = _element(node.tag, mark, shown, text, inner)
    return _Simplified(inner, bool(contents) or has_text)


def _element(tag: str, mark: str, shown: dict[str, str], text: str, inner: str) -> str:
    head = f'<{tag} id="{mark}"' if mark else f"<{tag}"
    seen: set[str] = set()
    for name, value in shown.items():
        if value not in seen:  # a value is shown once, under the first attribute that has it
            seen.add(value)
            head += f' {name}="{value}"'
    return " ".join(part for part in (f"{head}>", text, inner, f"</{tag}>") if part)


def _attribute(node: Node, name: str) -> str:
    value = _cut(node.attributes.get(name, ""))
    return "" if name == "type" and value == "hidden" else value


def _cut(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:MAX_TEXT]


def _in_window(node: Node, view: RichView) -> bool:
    if node.attributes.get("aria-hidden") == "true":
        return False
    box = node.attributes.get("data-bbox", "")
    if box.count(",") != 3:
        return False
    x, y, width, height = (float(part) for part in box.split(","))
    return x + width >= 0 and x <= view.width and y + height >= 0 and y <= view.height


def numbered_elements(view: RichView, visible: Node) -> tuple[Element, ...]:
    """Return the numbered elements in order; names and values come from the ``visible`` tree where it has them.

    Elements in more than ``MAX_NESTED`` others have no name of the text in them, as in ``waymark_format``.
    """
    names = Names(visible)
    found: dict[int, tuple[str, str, str, Node]] = {}
    waiting = [(visible, 0)]
    while waiting:
        node, depth = waiting.pop()
        marked = "mark" in node.attributes
        waiting.extend((child, depth + marked) for child in node.children if not isinstance(child, str))
        if marked and depth < MAX_NESTED:
            role = role_of(node) or node.tag
            found[int(node.attributes["mark"])] = (role, names.name(node, role), names.value(node, role), node)
    elements = []
    for node in view.root.walk():
        if "mark" in node.attributes:
            number = int(node.attributes["mark"])
            text = _cut(node.attributes.get("title", "") or node.attributes.get("data-text", ""))
            fallback = (node.tag, text, "", node)
            role, name, value, source = found.get(number, fallback)
            elements.append(Element(number, role, name, value, tuple(source.attributes.get("options", ()))))
    return tuple(sorted(elements, key=lambda element: element.element_id))
