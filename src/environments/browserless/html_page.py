"""A page without a browser: HTML parsed by lxml, with the live state of its controls.

Owns parsing, control state (typed text, ticks, chosen options, open details) and the snapshot.
Invariants: follows what Chromium does on server-rendered pages without scripts; style sheets are
not read (only ``hidden``, inline ``display:none``/``visibility:hidden`` and closed ``details`` hide).
What an action does with a page is in ``html_actions``.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import html
from lxml.html import HtmlElement

from environments.interface.snapshot import ATTRIBUTES, MAX_CONTROL_DEPTH, MAX_DEPTH, Node, Snapshot

_SKIPPED = frozenset({
    "head", "script", "style", "template", "noscript", "datalist", "canvas", "video", "audio", "object",
    "embed", "iframe", "option", "optgroup", "title", "link", "meta", "base", "param", "source", "track", "area",
    "map",
})  # fmt: skip
_SPACE = re.compile(r"[ \t\n\r\f]+")
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*(hidden|collapse)", re.IGNORECASE)
_NUMBERED = frozenset({"a", "button", "input", "select", "textarea", "summary"})
_VALUED = frozenset({"slider", "spinbutton"})

ControlState = tuple[str, str, Any]
"""Name, type and live value of one control, for restoring a page that is returned to."""


class HtmlPage:
    """One loaded document. ``refs[n]`` is the element with reference number ``n`` in the last snapshot."""

    def __init__(self, text: str, url: str, status: int = 200) -> None:
        self.text, self.url, self.status = text, url, status
        parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
        self.root: HtmlElement = html.document_fromstring(
            (text.strip() or "<html><body></body></html>").encode(), parser
        )
        # lxml makes element objects on demand; holding them keeps the state below keyed correctly.
        self._held = list(self.root.iter())
        self.refs: list[HtmlElement] = []
        self._live: dict[HtmlElement, Any] = {}
        self.focus: HtmlElement | None = next((e for e in self._held if "autofocus" in e.attrib), None)

    @property
    def title(self) -> str:
        """The document's title with white space collapsed."""
        return " ".join((self.root.findtext(".//title") or "").split())

    def controls(self) -> list[HtmlElement]:
        """All form controls in document order."""
        return [e for e in self._held if e.tag in ("input", "select", "textarea")]

    def value(self, control: HtmlElement) -> str:
        """Return the live value of a text-like control, or the value a tick box would send."""
        if control in self._live and kind_of(control) not in ("checkbox", "radio"):
            return str(self._live[control])
        if control.tag == "textarea":
            return (control.text_content() or "").removeprefix("\n")
        default = "on" if kind_of(control) in ("checkbox", "radio") else ""
        return str(control.get("value", default))

    def checked(self, control: HtmlElement) -> bool:
        """Whether a tick box or radio button is on."""
        return bool(self._live.get(control, "checked" in control.attrib))

    def chosen(self, select: HtmlElement) -> list[HtmlElement]:
        """Return the chosen options of a select."""
        options = options_of(select)
        if select in self._live:
            return [options[i] for i in self._live[select] if i < len(options)]
        marked = [o for o in options if "selected" in o.attrib]
        if "multiple" in select.attrib:
            return marked
        usable = [o for o in options if "disabled" not in o.attrib]
        return (marked[-1:] or usable[:1]) if int(select.get("size", "1") or 1) <= 1 else marked[-1:]

    def set_value(self, control: HtmlElement, value: str) -> None:
        """Fill in a text-like control."""
        self._live[control] = value

    def set_checked(self, control: HtmlElement, on: bool) -> None:
        """Turn a box on or off; a radio button that goes on turns the others of its group off."""
        self._live[control] = on
        if on and kind_of(control) == "radio":
            for other in self.controls():
                same = kind_of(other) == "radio" and other.get("name") == control.get("name")
                if same and other is not control and form_of(other) is form_of(control):
                    self._live[other] = False

    def choose(self, select: HtmlElement, index: int) -> None:
        """Choose the option at ``index``."""
        self._live[select] = [index]

    def reset(self, form: HtmlElement) -> None:
        """Put a form's controls back to what the page came with."""
        for control in self.controls():
            if form_of(control) is form:
                self._live.pop(control, None)

    def save(self) -> list[ControlState]:
        """Return the live state of all controls, as a browser keeps it with a history entry."""
        return [(c.get("name", ""), kind_of(c), self._live.get(c)) for c in self.controls()]

    def restore(self, states: list[ControlState]) -> None:
        """Put back what ``save`` returned, for controls that are still the same."""
        for control, (name, kind, value) in zip(self.controls(), states, strict=False):
            same = (control.get("name", ""), kind_of(control)) == (name, kind) and kind != "password"
            if value is not None and same and _remembered(control):
                self._live[control] = value

    def snapshot(self, tabs: tuple[str, ...] = (), tab: int = 0) -> Snapshot:
        """Return what is visible now, and number the elements that may be acted on."""
        self.refs = []
        # From the root, because libxml2 leaves some of a page that names no body outside of it.
        root = self._visit(self.root, 0, []) or Node("html")
        return Snapshot(self.url, self.title, root, self.status, tabs, tab)

    def node_of(self, element: HtmlElement) -> Node | None:
        """Return the snapshot of one element without renumbering, None when it is hidden."""
        refs, self.refs = self.refs, []
        node = self._visit(element, 0, [])
        self.refs = refs
        return node

    def _visit(self, element: HtmlElement, depth: int, into: list[Node | str]) -> Node | None:
        """Append the node of ``element`` to ``into``; below ``MAX_DEPTH`` its content too, except for controls."""
        if not isinstance(element.tag, str) or element.tag in _SKIPPED or _is_hidden(element):
            return None
        if element.tag == "svg":
            into.append(Node("img", {"alt": element.get("aria-label", element.findtext(".//title") or "")}))
            return None
        node = Node(element.tag, self._facts(element))
        into.append(node)
        if element.tag in ("select", "textarea"):
            return node
        deepest = MAX_CONTROL_DEPTH if "n" in node.attributes else MAX_DEPTH
        content = node.children if depth < deepest else into
        closed = element.tag == "details" and "open" not in element.attrib
        summary = element.find("summary") if closed else None
        if element.text and not closed:
            content.append(_SPACE.sub(" ", element.text))
        for child in element:
            if not closed or child is summary:
                self._visit(child, depth + 1, content)
            if child.tail and not closed:
                content.append(_SPACE.sub(" ", child.tail))
        return node

    def _facts(self, element: HtmlElement) -> dict[str, Any]:
        facts: dict[str, Any] = {key: element.attrib[key] for key in ATTRIBUTES if key in element.attrib}
        if element.tag == "input":
            facts["type"] = kind_of(element)
        referred = [self.root.get_element_by_id(i, None) for i in element.get("aria-labelledby", "").split()]
        if any(e is not None for e in referred):
            facts["labelledby"] = " ".join(e.text_content() for e in referred if e is not None)
        if element.tag in ("input", "textarea"):
            facts["value"] = self.value(element)
            if kind_of(element) in ("submit", "button", "reset") and "value" not in element.attrib:
                facts["value"] = ""
            if kind_of(element) in ("checkbox", "radio") and self.checked(element):
                facts["checked"] = True
        elif element.tag == "select":
            facts["options"] = [option_text(o) for o in options_of(element)]
            facts["selected"] = [option_text(o) for o in self.chosen(element)]
        elif facts.get("role") in _VALUED:
            facts["value"] = element.get("aria-valuetext", element.get("aria-valuenow", ""))
        if is_disabled(element):
            facts["disabled"] = True
        if element.get("aria-hidden") == "true":
            facts["unspoken"] = True
        if "onclick" in element.attrib:
            facts["clickable"] = True
        if element.tag in _NUMBERED or "role" in facts or "clickable" in facts or "contenteditable" in facts:
            facts["n"] = len(self.refs)
            self.refs.append(element)
        return facts


def kind_of(control: HtmlElement) -> str:
    """Return a control's type in lower case: an input's ``type``, else the tag."""
    return str(control.get("type", "text")).lower() if control.tag == "input" else str(control.tag)


def options_of(select: HtmlElement) -> list[HtmlElement]:
    """Return the options of a select in order."""
    return list(select.iter("option"))


def option_text(option: HtmlElement) -> str:
    """Return an option's label with white space collapsed."""
    return option.get("label") or " ".join(option.text_content().split())


def form_of(control: HtmlElement) -> HtmlElement | None:
    """Return the form a control belongs to: the one it names, else the one around it."""
    if "form" in control.attrib:
        found = control.getroottree().getroot().get_element_by_id(control.get("form"), None)
        return found if found is not None and found.tag == "form" else None
    return next(control.iterancestors("form"), None)


def _remembered(control: HtmlElement) -> bool:
    """Whether a browser keeps this control's state in history (``autocomplete="off"`` says no)."""
    form = form_of(control)
    default = "" if form is None else form.get("autocomplete", "")
    return bool(control.get("autocomplete", default).lower() != "off")


def is_disabled(element: HtmlElement) -> bool:
    """Whether a control is disabled, itself or through its fieldset."""
    if element.tag not in ("button", "input", "select", "textarea"):
        return False
    return "disabled" in element.attrib or any("disabled" in f.attrib for f in element.iterancestors("fieldset"))


def _is_hidden(element: HtmlElement) -> bool:
    if "hidden" in element.attrib or (element.tag == "input" and kind_of(element) == "hidden"):
        return True
    if element.tag == "dialog" and "open" not in element.attrib:
        return True
    style = element.get("style")
    return style is not None and _HIDING.search(style) is not None
