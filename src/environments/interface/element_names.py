"""What an element is called: its role, its accessible name and its value.

Owns the role table and a short form of the accessible-name rules of the ARIA specification. Pure:
works on ``Node`` trees only, so that both drivers agree.
"""

from __future__ import annotations

from collections.abc import Collection

from environments.interface.snapshot import Node

MAX_NAME = 80
"""Longest name, in characters."""

MAX_NESTED = 16
"""Most controls in one another that are numbered; what lies deeper is read as text. A control's name is the text in it,
so that this bounds how often a text is read."""

HIDDEN_VALUE = "********"
"""What is shown for a password that has been filled in."""

_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hgroup", "hr", "html", "iframe", "legend", "li", "main", "menu", "nav", "ol", "optgroup",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})  # fmt: skip
_CELLS = frozenset({"td", "th"})
_CELL_ROLES = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
_INPUT_ROLES = {
    "submit": "button", "button": "button", "reset": "button", "image": "button", "checkbox": "checkbox",
    "radio": "radio", "search": "searchbox", "range": "slider", "file": "file",
}  # fmt: skip
_ARIA_ROLES = frozenset({
    "button", "link", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "checkbox", "radio", "switch",
    "option", "combobox", "textbox", "searchbox", "slider", "spinbutton", "treeitem",
})  # fmt: skip
ROLES = _ARIA_ROLES | frozenset({"select", "file", "clickable", "row", "video", "audio"})
"""Every role that an element can have."""

WHOLES = frozenset({"clickable", "row"})
"""Roles of what is pressed as a whole and may hold other controls."""

_NOT_LINKS = ROLES - {"link"}
_LABELABLE = frozenset({"input", "select", "textarea", "button"})
_TEXT_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "slider", "select"})


def line_break(tag: str) -> bool:
    """Whether text before and after this element stands on different lines."""
    return tag in _BLOCKS


def is_cell(node: Node) -> bool:
    """Whether this is a cell of a table or grid."""
    return node.tag in _CELLS or node.attributes.get("role") in _CELL_ROLES


def is_row(node: Node) -> bool:
    """Whether this is a row of a table or grid."""
    return node.tag == "tr" or node.attributes.get("role") == "row"


def squeeze(text: str) -> str:
    """Collapse every run of white space (no-break spaces too) to one space and strip the ends."""
    return " ".join(text.split())


def role_of(node: Node) -> str | None:
    """Return the role of an element that can be acted on, None for anything else."""
    attributes, tag = node.attributes, node.tag
    if tag == "input":
        return _INPUT_ROLES.get(attributes.get("type", "text"), "textbox")
    role: str = attributes.get("role", "")
    if role in _ARIA_ROLES:
        return role
    if tag == "select":
        return "select"
    if tag == "textarea" or attributes.get("contenteditable") in ("", "true", "plaintext-only"):
        return "textbox"
    if tag in ("a", "area") and "href" in attributes:
        return "link"
    if tag in ("button", "summary"):
        return "button"
    return _role_of_clickable(node) if "clickable" in attributes else None


def _role_of_clickable(node: Node) -> str:
    if is_row(node):
        return "row"
    return {"a": "link", "video": "video", "audio": "audio"}.get(node.tag, "clickable")


def own_text(node: Node, *, leaving_out: Collection[str] = (), spoken: bool = False) -> str:
    """Return the text inside an element with white space collapsed; pictures count by their ``alt``.

    Controls of the roles ``leaving_out`` are left out, where ``spoken`` what is for eyes only too. The cells of a row
    are joined by `` | ``.
    """
    parts: list[str] = []
    _gather(node, parts, leaving_out, spoken)
    text = squeeze("".join(parts))
    return text.strip("| ") if is_row(node) else text


def _gather(node: Node, parts: list[str], leaving_out: Collection[str], spoken: bool) -> None:
    row = is_row(node)
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        elif spoken and "unspoken" in child.attributes:
            continue
        elif child.tag == "img":
            parts.append(f" {child.attributes.get('alt', '')} ")
        elif not (leaving_out and role_of(child) in leaving_out):
            cell = is_cell(child)
            parts.append(" " if line_break(child.tag) or cell else "")
            before = len(parts)
            _gather(child, parts, leaving_out, spoken)
            joint = " | " if cell and row and any(part.strip() for part in parts[before:]) else " "
            parts.append(joint if line_break(child.tag) or cell else "")


class Names:
    """Accessible names over one page: knows which label belongs to which control.

    What was read of an element is kept: an element in many others would be read once for each, and more.
    """

    def __init__(self, root: Node) -> None:
        self._labels: dict[int, list[str]] = {}
        self._used: set[int] = set()
        self._hold_controls: dict[int, bool] = {}
        self._texts: dict[tuple[int, str, bool], str] = {}
        by_id: dict[str, Node] = {}
        labels: list[Node] = []
        for node in root.walk():
            if node.tag == "label":
                labels.append(node)
            elif node.tag in _LABELABLE and (identifier := node.attributes.get("id")):
                by_id.setdefault(identifier, node)
        for label in labels:
            inner = next((node for node in label.walk() if node.tag in _LABELABLE), None)
            control = by_id.get(label.attributes["for"]) if "for" in label.attributes else inner
            text = own_text(label, leaving_out=_NOT_LINKS)
            if control is not None and text and role_of(control) is not None:
                self._labels.setdefault(id(control), []).append(text)
                if not (control.attributes.get("aria-label") or control.attributes.get("labelledby")):
                    self._used.add(id(label))

    def has_controls(self, node: Node) -> bool:
        """Whether there are controls in an element."""
        found = self._hold_controls.get(id(node))
        if found is None:
            found = any(role_of(inner) is not None for inner in node.walk() if inner is not node)
            self._hold_controls[id(node)] = found
        return found

    def inner_text(self, node: Node, role: str, *, spoken: bool = False) -> str:
        """Return an element's own text; that of what can be pressed as a whole without the controls in it."""
        key = (id(node), role, spoken)
        if key not in self._texts:
            self._texts[key] = self._inner_text(node, role, spoken)
        return self._texts[key]

    def _inner_text(self, node: Node, role: str, spoken: bool) -> str:
        if "clickable" not in node.attributes or not self.has_controls(node):
            return own_text(node, spoken=spoken)
        text = own_text(node, leaving_out=ROLES, spoken=spoken)
        return text if text or role in WHOLES else own_text(node, leaving_out={role}, spoken=spoken)

    def is_used_label(self, node: Node) -> bool:
        """Whether this element's text is already shown as the name of a control."""
        return id(node) in self._used

    def name(self, node: Node, role: str) -> str:
        """Return the accessible name, at most ``MAX_NAME`` characters; empty when there is none."""
        return self.whole_name(node, role)[0][:MAX_NAME].rstrip()

    def whole_name(self, node: Node, role: str) -> tuple[str, bool]:
        """Return the accessible name, uncut, and whether it is the element's own text."""
        attributes = node.attributes
        candidates = [attributes.get("aria-label", ""), attributes.get("labelledby", "")]
        candidates.append(" ".join(self._labels.get(id(node), ())))
        if node.tag == "input" and role == "button":
            default = {"submit": "Submit", "reset": "Reset", "image": "Submit"}.get(attributes.get("type", ""), "")
            candidates.append(attributes.get("alt" if attributes.get("type") == "image" else "value", "") or default)
        own = len(candidates)
        if role not in _TEXT_ROLES:
            candidates += [self.inner_text(node, role, spoken=True), self.inner_text(node, role)]
        given = len(candidates)
        candidates.extend(attributes.get(key, "") for key in ("alt", "title", "placeholder", "name"))
        candidates.append("" if role in WHOLES and self.has_controls(node) else attributes.get("hint", ""))
        names = enumerate(map(squeeze, candidates))
        place, name = next(((place, text) for place, text in names if text), (-1, ""))
        return name, own <= place < given

    def value(self, node: Node, role: str) -> str:
        """Return what the control holds: text, the chosen options, ``checked``, and its state."""
        held, state = self._held(node, role), node.attributes.get("state", "")
        return f"{held}, {state}" if held and state else held or state

    def _held(self, node: Node, role: str) -> str:
        attributes = node.attributes
        if role in ("checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"):
            return "checked" if "checked" in attributes else ""
        if node.tag == "select":
            return ", ".join(squeeze(text) for text in attributes.get("selected", ()))
        if role == "button" or role == "file":
            return ""
        if role == "combobox" and node.tag != "input":
            return own_text(node)
        value = squeeze(attributes.get("value", ""))
        return HIDDEN_VALUE if value and attributes.get("type") == "password" else value
