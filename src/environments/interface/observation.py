"""How a page is written down for the agent.

Owns ``render``, which knows the formats ``waymark`` (``waymark_format``) and ``webrl`` (``webrl_format``), and texts
of pages and of elements. Invariants: pure; real and browserless pages go through this same code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.browser.settings import BrowserSettings
from environments.interface.element_names import is_cell, line_break, role_of, squeeze
from environments.interface.snapshot import Node, Snapshot
from environments.interface.waymark_format import write_lines
from environments.interface.webrl_format import numbered_elements, simplify
from records.environment import Element

_SHOWN_ID = re.compile(r'<[^\s<>]+ id="(\d+)"')


@dataclass(frozen=True, slots=True)
class Rendered:
    """An observation before its url: ``targets[element_id]`` is the driver's reference number ``n``."""

    text: str
    page_text: str
    elements: tuple[Element, ...]
    targets: tuple[int, ...]

    def element(self, number: int | None) -> Element | None:
        """Return the element with this id, None where there is none."""
        return self.elements[number] if number is not None and 0 <= number < len(self.elements) else None


def render(snapshot: Snapshot, settings: BrowserSettings) -> Rendered:
    """Write ``snapshot`` down in the format that the settings name."""
    write = render_webrl if settings.observation_format == "webrl" else render_waymark
    return write(snapshot, settings.max_observation_chars)


def render_webrl(snapshot: Snapshot, max_chars: int) -> Rendered:
    """Write ``snapshot`` down as the WebRL lineage does, in at most ``max_chars`` characters.

    A longer page is cut where an element begins, and what is not shown is not offered.
    """
    if snapshot.rich is None:
        raise ValueError("the observation format webrl needs a real browser, which knows where things lie on the page")
    elements, text = numbered_elements(snapshot.rich, snapshot.root), simplify(snapshot.rich)
    if len(text) > max_chars:
        text = text[: max(0, text.rfind(" <", 0, max_chars + 1))]
        last = max(map(int, _SHOWN_ID.findall(text)), default=-1)
        elements = elements[: last + 1]
    return Rendered(text, page_text(snapshot), elements, tuple(range(len(elements))))


def render_waymark(snapshot: Snapshot, max_chars: int) -> Rendered:
    """Write ``snapshot`` down as lines, in at most about ``max_chars`` characters; see ``waymark_format``."""
    text, elements, targets = write_lines(snapshot, max_chars)
    return Rendered(text, page_text(snapshot), elements, targets)


def page_text(snapshot: Snapshot) -> str:
    """Return all visible text with white space collapsed: what a person would read, links and labels included."""
    parts: list[str] = []
    _gather(snapshot.root, parts, with_buttons=True)
    return squeeze("".join(parts))


def inner_text(node: Node | None) -> str:
    """Return an element's visible text, one line per block, as the DOM's ``innerText`` does; "" when hidden."""
    parts: list[str] = []
    if node is not None:
        _gather(node, parts, with_buttons=False)
    lines = (squeeze(line) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _gather(node: Node, parts: list[str], *, with_buttons: bool) -> None:
    """Append the texts in document order, blocks and cells set apart; ``with_buttons`` those of input buttons too."""
    edge = "\n" if line_break(node.tag) else ("\t" if is_cell(node) else "")
    parts.append(edge)
    if with_buttons and node.tag == "input" and role_of(node) == "button":
        parts.append(f" {node.attributes.get('value', '')} ")
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        else:
            _gather(child, parts, with_buttons=with_buttons)
    parts.append(edge)
