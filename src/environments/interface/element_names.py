"""What an element is called: its role, its accessible name and its value.

Owns the role table and a short form of the accessible-name rules of the ARIA specification. Pure:
works on ``Node`` trees only, so that both drivers agree.
"""

from __future__ import annotations

from environments.interface.snapshot import Node

MAX_NAME = 80
"""Longest name, in characters."""

HIDDEN_VALUE = "********"
"""What is shown for a password that has been filled in."""

_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hgroup", "hr", "html", "iframe", "legend", "li", "main", "menu", "nav", "ol", "optgroup",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})  # fmt: skip
_CELLS = frozenset({"td", "th"})
_INPUT_ROLES = {
    "submit": "button", "button": "button", "reset": "button", "image": "button", "checkbox": "checkbox",
    "radio": "radio", "search": "searchbox", "range": "slider", "file": "file",
}  # fmt: skip
_ARIA_ROLES = frozenset({
    "button", "link", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "checkbox", "radio", "switch",
    "option", "combobox", "textbox", "searchbox", "slider", "spinbutton", "treeitem",
})  # fmt: skip
_LABELABLE = frozenset({"input", "select", "textarea", "button"})
_TEXT_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "slider", "select"})


def line_break(tag: str) -> bool:
    """Whether text before and after this element stands on different lines."""
    return tag in _BLOCKS


def is_cell(tag: str) -> bool:
    """Whether this is a table cell."""
    return tag in _CELLS


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
    if tag == "a" and "href" in attributes:
        return "link"
    if tag in ("button", "summary"):
        return "button"
    return "clickable" if "clickable" in attributes else None


def own_text(node: Node, *, without_controls: bool = False) -> str:
    """Return the text inside an element with white space collapsed; pictures count by their ``alt``."""
    parts: list[str] = []
    _gather(node, parts, without_controls)
    return squeeze("".join(parts))


def _gather(node: Node, parts: list[str], without_controls: bool) -> None:
    for child in node.children:
        if isinstance(child, str):
            parts.append(child)
        elif child.tag == "img":
            parts.append(f" {child.attributes.get('alt', '')} ")
        elif not (without_controls and role_of(child) is not None):
            apart = line_break(child.tag) or child.tag in _CELLS
            parts.append(" " if apart else "")
            _gather(child, parts, without_controls)
            parts.append(" " if apart else "")


class Names:
    """Accessible names over one page: knows which label belongs to which control."""

    def __init__(self, root: Node) -> None:
        self._labels: dict[int, list[str]] = {}
        self._used: set[int] = set()
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
            text = own_text(label, without_controls=True)
            if control is not None and text and role_of(control) is not None:
                self._labels.setdefault(id(control), []).append(text)
                if not (control.attributes.get("aria-label") or control.attributes.get("labelledby")):
                    self._used.add(id(label))

    def is_used_label(self, node: Node) -> bool:
        """Whether this element's text is already shown as the name of a control."""
        return id(node) in self._used

    def name(self, node: Node, role: str) -> str:
        """Return the accessible name, at most ``MAX_NAME`` characters; empty when there is none."""
        attributes = node.attributes
        candidates = [attributes.get("aria-label", ""), attributes.get("labelledby", "")]
        candidates.append(" ".join(self._labels.get(id(node), ())))
        if node.tag == "input" and role == "button":
            default = {"submit": "Submit", "reset": "Reset", "image": "Submit"}.get(attributes.get("type", ""), "")
            candidates.append(attributes.get("alt" if attributes.get("type") == "image" else "value", "") or default)
        if role not in _TEXT_ROLES:
            candidates.append(own_text(node))
        candidates.extend(attributes.get(key, "") for key in ("alt", "title", "placeholder", "name"))
        name = next((text for text in map(squeeze, candidates) if text), "")
        return name[:MAX_NAME].rstrip()

    def value(self, node: Node, role: str) -> str:
        """Return what the control holds: text, the chosen options, or ``checked``."""
        attributes = node.attributes
        if role in ("checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"):
            return "checked" if "checked" in attributes else ""
        if node.tag == "select":
            return ", ".join(squeeze(text) for text in attributes.get("selected", ()))
        if role == "button" or role == "file":
            return ""
        value = squeeze(attributes.get("value", ""))
        return HIDDEN_VALUE if value and attributes.get("type") == "password" else value
