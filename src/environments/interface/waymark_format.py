"""How a page is written down as lines, each short and most with an element id.

Owns the rules by which the visible tree becomes lines and numbered elements. Invariants: pure; ids count from 0 in
document order.

Rules. First ``@ title``; then, only when there are several tabs, ``tabs 0 Title | 1 Title (current)``.
Every interactive element has a line ``role name[ = value][ (option | option)] id``. Other text is
one line per block, broken where an interactive element stands, so that document order is kept.
Headings begin with ``# ``; the cells of a table row are joined by `` | ``, a ``dd`` follows its
``dt`` after ``: ``. A label's text is its control's name and is not repeated. Disabled controls
have no id and end with ``disabled``. No text is lost to a name: what a control's line does not say of its text follows
as plain text, and so do the words of a control that is called otherwise, where they are more than two.
"""

from __future__ import annotations

import re

from environments.interface.element_names import (
    MAX_NAME,
    MAX_NESTED,
    WHOLES,
    Names,
    is_cell,
    is_row,
    line_break,
    role_of,
    squeeze,
)
from environments.interface.snapshot import Node, Snapshot
from records.environment import Element

MAX_VALUE = 120
"""Longest value shown on a line, in characters (the element keeps all of it)."""

MAX_LINE = 200
"""Longest text of a control that is written on its line, in characters; of a longer one the line has the beginning."""

MAX_OPTIONS = 20
"""Most options shown on a line (the element keeps all of them)."""

MAX_TEXT = 200
"""Longest line of plain text on a page that is over its budget, in characters."""

_FEW_WORDS = 3
"""Words of its own that a control which is called otherwise may have without their being shown."""
_WORD = re.compile(r"\w+")
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def write_lines(snapshot: Snapshot, max_chars: int) -> tuple[str, tuple[Element, ...], tuple[int, ...]]:
    """Return the text, in at most about ``max_chars`` characters, the elements in it, and their reference numbers.

    On a longer page long lines of plain text are shortened first; then the last lines go, whatever they are.
    """
    writer = _Writer(Names(snapshot.root))
    writer.inside(Node("", {}, [snapshot.root]))
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
    return "\n".join(lines), tuple(writer.elements[:kept]), tuple(writer.targets[:kept])


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
        self.nested = 0
        self.silent = False

    def inside(self, node: Node, *, label: bool = True) -> None:
        """Write what is in an element, but for the text of one that is a ``label``; one call a level, as pages nest."""
        outer, self.heading = (self.heading, self.silent), self.heading or node.tag in _HEADINGS
        self.silent = self.silent or (label and self.names.is_used_label(node))
        self._enter(node)
        for child in node.children:
            if isinstance(child, str):
                if not self.silent:
                    self._text(child)
            elif (role := self._role(child)) is not None:
                self._control(child, role)
            elif child.tag == "img":
                self._text(f" {child.attributes.get('alt', '')} ")
            else:
                self.inside(child)
        self._leave(node)
        self.heading, self.silent = outer

    def _role(self, node: Node) -> str | None:
        return role_of(node) if self.nested < MAX_NESTED else None

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

    def _enter(self, node: Node) -> None:
        tag = node.tag
        if is_cell(node):
            self.joint = " | "
        elif tag == "dd" and self.run:
            self.joint = ": "
        elif is_row(node) or (line_break(tag) and not self.rows):
            self.flush()
        elif line_break(tag):
            self._text(" ")
        self.rows += is_row(node)

    def _leave(self, node: Node) -> None:
        tag = node.tag
        self.rows -= is_row(node)
        if tag == "dt" or is_cell(node):
            self._text(" ")
        elif is_row(node) or (line_break(tag) and not self.rows):
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
        self.nested += 1
        self._written(node, role)
        self.nested -= 1

    def _written(self, node: Node, role: str) -> None:
        self.flush()
        (whole, is_text), value = self.names.whole_name(node, role), self.names.value(node, role)
        text = self.names.inner_text(node, role) if role not in ("select", "textbox", "searchbox", "combobox") else ""
        if role in WHOLES and not whole and self.names.has_controls(node):
            self.inside(node, label=False)  # nothing can be pressed beside what is in it
            return
        opened = is_text and len(whole) > MAX_LINE
        name = whole[:MAX_NAME].rstrip()
        options = tuple(squeeze(o) for o in node.attributes.get("options", ()))
        line = " ".join(part for part in (role, name if opened else whole[:MAX_LINE]) if part)
        if value:
            line += f" = {value if len(value) <= MAX_VALUE else _beginning(value) + '…'}"
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
        lost = set(_WORD.findall(text.casefold())) - set(_WORD.findall(whole.casefold()))
        deepest = self.nested == MAX_NESTED and self.names.has_controls(node)
        if opened or deepest or len(lost) >= _FEW_WORDS:
            self.inside(node, label=False)
            self.flush()
            return
        if len(value) > MAX_VALUE and "contenteditable" in node.attributes or node.attributes.get("role") == "textbox":
            self.lines += [(rest, None) for rest in (value[len(_beginning(value)) :].strip(),) if rest]
        self._inner_controls(node)

    def _inner_controls(self, node: Node) -> None:
        """Emit controls nested in a control; their texts are already part of its name."""
        for child in node.children:
            if not isinstance(child, str):
                role = self._role(child)
                if role is not None:
                    self._control(child, role)
                else:
                    self._inner_controls(child)


def _beginning(value: str) -> str:
    """Return what is shown of a long value: no word is cut in two, but for one that is very long itself."""
    if len(value) <= MAX_VALUE or value[MAX_VALUE].isspace():
        return value[:MAX_VALUE]
    space = value.rfind(" ", MAX_VALUE // 2, MAX_VALUE)
    return value[:MAX_VALUE] if space < 0 else value[:space]
