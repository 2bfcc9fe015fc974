"""How a page is written down for the agent: format ``waymark`` (``webrl`` is in ``webrl_format``).

Owns the rules by which a ``Snapshot`` becomes lines, element ids and page text. Invariants: pure;
ids count from 0 in document order; real and browserless pages go through this same code.

Rules. First ``@ title``; then, only when there are several tabs, ``tabs 0 Title | 1 Title (current)``.
Every interactive element has a line ``role name[ = value][ (option | option)] id``. Other text is
one line per block, broken where an interactive element stands, so that document order is kept.
Headings begin with ``# ``; the cells of a table row are joined by `` | ``, a ``dd`` follows its
``dt`` after ``: ``. A label's text is its control's name and is not repeated. Disabled controls
have no id and end with ``disabled``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.browser.settings import BrowserSettings
from environments.interface.element_names import Names, is_cell, line_break, role_of, squeeze
from environments.interface.snapshot import Node, Snapshot
from environments.interface.webrl_format import numbered_elements, simplify
from records.environment import Element

MAX_VALUE = 120
"""Longest value shown on a line, in characters (the element keeps all of it)."""

MAX_OPTIONS = 20
"""Most options shown on a line (the element keeps all of them)."""

MAX_TEXT = 200
"""Longest line of plain text on a page that is over its budget, in characters."""

_SHOWN_ID = re.compile(r'<[^\s<>]+ id="(\d+)"')
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


@dataclass(frozen=True, slots=True)
class Rendered:
    """An observation before its url: ``targets[element_id]`` is the driver's reference number ``n``."""

    text: str
    page_text: str
    elements: tuple[Element, ...]
    targets: tuple[int, ...]


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
    """Write ``snapshot`` down in at most about ``max_chars`` characters.

    On a longer page long lines of plain text are shortened first; then the last lines go, whatever they are.
    """
    writer = _Writer(Names(snapshot.root))
    writer.visit(snapshot.root)
    writer.flush()
    head = [f"@ {squeeze(snapshot.title)}".rstrip()]
    if len(snapshot.tabs) > 1:
        names = (f"{i} {squeeze(t)}{' (current)' if i == snapshot.tab else ''}" for i, t in enumerate(snapshot.tabs))
        head.append(f"tabs {' | '.join(names)}")
    if sum(len(line) + 1 for line in (*head, *(line for line, _ in writer.lines))) > max_chars:
        writer.shorten()
    lines, size = head, sum(len(line) + 1 for line in head)
    kept = 0
    for index, (line, element) in enumerate(writer.lines):
        size += len(line) + 1
        if size > max_chars:
            lines.append(f"… {len(writer.lines) - index} more lines")
            break
        lines.append(line)
        kept += element is not None
    return Rendered("\n".join(lines), page_text(snapshot), tuple(writer.elements[:kept]), tuple(writer.targets[:kept]))


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
    edge = "\n" if line_break(node.tag) else ("\t" if is_cell(node.tag) else "")
    parts.append(edge)
    if with_buttons and node.tag == "input" and role_of(node) == "button":
        parts.append(f" {node.attributes.get('value', '')} ")
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        else:
            _gather(child, parts, with_buttons=with_buttons)
    parts.append(edge)


class _Writer:
    """Walks a snapshot once and collects lines; a run is the text of the line being put together."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lines: list[tuple[str, Element | None]] = []
        self.elements: list[Element] = []
        self.targets: list[int] = []
        self.run: list[str] = []
        self.joint = ""
        self.heading = False
        self.rows = 0

    def visit(self, node: Node) -> None:
        role = role_of(node)
        if role is not None:
            self._control(node, role)
            return
        if node.tag == "img":
            self._text(f" {node.attributes.get('alt', '')} ")
            return
        silent = self.names.is_used_label(node)
        outer, self.heading = self.heading, self.heading or node.tag in _HEADINGS
        self._enter(node.tag)
        for child in node.children:
            if not isinstance(child, str):
                self.visit(child)
            elif not silent:
                self._text(child)
        self._leave(node.tag)
        self.heading = outer

    def flush(self) -> None:
        """End the line being put together."""
        text = squeeze("".join(self.run))
        self.run, self.joint = [], ""
        if text:
            self.lines.append((f"# {text}" if self.heading else text, None))

    def shorten(self) -> None:
        """Cut the long lines of plain text."""
        self.lines = [
            (line if element or len(line) <= MAX_TEXT else f"{line[:MAX_TEXT].rstrip()}…", element)
            for line, element in self.lines
        ]

    def _enter(self, tag: str) -> None:
        if is_cell(tag):
            self.joint = " | "
        elif tag == "dd" and self.run:
            self.joint = ": "
        elif tag == "tr" or (line_break(tag) and not self.rows):
            self.flush()
        elif line_break(tag):
            self._text(" ")
        self.rows += tag == "tr"

    def _leave(self, tag: str) -> None:
        self.rows -= tag == "tr"
        if tag == "dt" or is_cell(tag):
            self._text(" ")
        elif tag == "tr" or (line_break(tag) and not self.rows):
            self.flush()
        elif line_break(tag):
            self._text(" ")

    def _text(self, text: str) -> None:
        if self.joint and text.strip():
            before = "".join(self.run).rstrip()
            self.run = [before, self.joint] if before else []
            self.joint = ""
        self.run.append(text)

    def _control(self, node: Node, role: str) -> None:
        self.flush()
        name, value = self.names.name(node, role), self.names.value(node, role)
        options = tuple(squeeze(o) for o in node.attributes.get("options", ()))
        line = " ".join(part for part in (role, name) if part)
        if value:
            line += f" = {value if len(value) <= MAX_VALUE else value[:MAX_VALUE] + '…'}"
        if options:
            shown = [*options[:MAX_OPTIONS], *(["…"] if len(options) > MAX_OPTIONS else [])]
            line += f" ({' | '.join(shown)})"
        if "disabled" in node.attributes:
            self.lines.append((f"{line} disabled", None))
        else:
            element = Element(len(self.elements), role, name, value, options)
            self.lines.append((f"{line} {element.element_id}", element))
            self.elements.append(element)
            self.targets.append(node.attributes.get("n", -1))
        self._inner_controls(node)

    def _inner_controls(self, node: Node) -> None:
        """Emit controls nested in a control; their texts are already part of its name."""
        for child in node.children:
            if not isinstance(child, str):
                role = role_of(child)
                if role is not None:
                    self._control(child, role)
                else:
                    self._inner_controls(child)
