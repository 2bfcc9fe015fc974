"""What an action does to a page without a browser: a change of its controls, or a request.

Owns the rules of links, buttons, implicit submission, form data and the checks before a form is
sent. Invariants: nothing here touches the network; what cannot be done is reported as a code of
``feedback``. Follows the HTML standard's form rules as Chromium applies them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit, urlunsplit

from lxml.html import HtmlElement

from environments.browserless.html_page import HtmlPage, form_of, is_disabled, kind_of, option_text, options_of
from environments.interface.element_names import Names, role_of

_TICKS = ("checkbox", "radio")
_BUTTONS = ("submit", "button", "reset", "image")
_NOT_TEXT = (*_TICKS, *_BUTTONS, "file", "hidden", "range", "color")
_BLOCKING = (
    "text",
    "search",
    "url",
    "tel",
    "email",
    "password",
    "date",
    "month",
    "week",
    "time",
    "datetime-local",
    "number",
)
_FORMATS = {
    "number": re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][-+]?\d+)?"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "month": re.compile(r"\d{4}-\d{2}"),
    "time": re.compile(r"\d{2}:\d{2}(:\d{2})?"),
}
_EMAIL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page that an action asks for; ``form`` holds the fields of a POST, ``sent`` is true for any form."""

    url: str
    method: str = "GET"
    form: tuple[tuple[str, str], ...] = ()
    new_tab: bool = False
    sent: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of an action: maybe a request, maybe a feedback code with its detail."""

    request: PageRequest | None = None
    code: str = ""
    detail: str = ""


def click(page: HtmlPage, element: HtmlElement) -> Effect:
    """Click an element of the page."""
    if is_disabled(element):
        return Effect(code="disabled")
    page.focus = element
    kind = kind_of(element)
    if element.tag == "a" and "href" in element.attrib:
        return _follow(page, element)
    if element.tag == "summary":
        details = element.getparent()
        if "open" in details.attrib:
            del details.attrib["open"]
        else:
            details.set("open", "")
        return Effect()
    if kind == "checkbox":
        page.set_checked(element, not page.checked(element))
    elif kind == "radio":
        if page.checked(element):
            return _idle(element)
        page.set_checked(element, True)
    elif kind == "file":
        return Effect(code="file")
    elif element.tag == "button" or kind in _BUTTONS:
        return _press(page, element)
    elif element.tag not in ("input", "select", "textarea") and "contenteditable" not in element.attrib:
        return _idle(element)
    return Effect()


def type_text(page: HtmlPage, element: HtmlElement, text: str) -> Effect:
    """Replace the content of a text field."""
    kind = kind_of(element)
    if element.tag not in ("input", "textarea") or kind in _NOT_TEXT:
        return Effect(code="not_text")
    if is_disabled(element):
        return Effect(code="disabled")
    if "readonly" in element.attrib:
        return Effect(code="read_only")
    page.focus = element
    value = text if element.tag == "textarea" else text.replace("\r", "").replace("\n", "")
    length = element.get("maxlength", "")
    if length.isdigit():
        value = value[: int(length)]
    if kind in ("email", "url"):
        value = value.strip()
    if value and kind in _FORMATS and not _FORMATS[kind].fullmatch(value):
        page.set_value(element, "")
        return Effect(code="not_accepted")
    page.set_value(element, value)
    return Effect()


def select(page: HtmlPage, element: HtmlElement, wanted: str) -> Effect:
    """Choose the option with this text (exactly, else ignoring case and space) or value."""
    if element.tag != "select":
        return Effect(code="not_select")
    if is_disabled(element):
        return Effect(code="disabled")
    page.focus = element
    options, plain = options_of(element), " ".join(wanted.split()).casefold()
    texts = [option_text(o) for o in options]
    folded = [" ".join(t.split()).casefold() for t in texts]
    values = [o.get("value", t) for o, t in zip(options, texts, strict=True)]
    for candidates, target in ((texts, wanted), (folded, plain), (values, wanted)):
        if target in candidates:
            page.choose(element, candidates.index(target))
            return Effect()
    return Effect(code="no_option")


def press_enter(page: HtmlPage, element: HtmlElement | None) -> Effect:
    """Press Enter on an element, or on the focused one."""
    target = page.focus if element is None else element
    if target is None:
        return Effect(code="no_focus")
    page.focus = target
    kind = kind_of(target)
    if target.tag in ("a", "button", "summary") or kind in _BUTTONS:
        return click(page, target)
    if target.tag == "textarea":
        page.set_value(target, page.value(target) + "\n")
        return Effect()
    form = form_of(target) if target.tag == "input" else None
    if form is None:
        return Effect(code="no_submit")
    members = [e for e in page.root.iter("button", "input") if form_of(e) is form]
    submitter = next((e for e in members if _submits(e)), None)
    if submitter is not None:
        return Effect() if is_disabled(submitter) else _submit(page, form, submitter)
    fields = [e for e in members if e.tag == "input" and kind_of(e) in _BLOCKING]
    return _submit(page, form, None) if len(fields) <= 1 else Effect(code="no_submit")


def _follow(page: HtmlPage, link: HtmlElement) -> Effect:
    address = link.get("href", "").strip()
    if urlsplit(address).scheme.lower() == "javascript":
        return Effect()
    return Effect(PageRequest(urljoin(page.url, address), new_tab=_is_new_tab(link)))


def _is_new_tab(element: HtmlElement | None) -> bool:
    target = "" if element is None else element.get("target", "")
    return target.lower() not in ("", "_self", "_top", "_parent")


def _submits(element: HtmlElement) -> bool:
    if element.tag == "button":
        return element.get("type", "submit").lower() not in ("button", "reset")
    return kind_of(element) in ("submit", "image")


def _press(page: HtmlPage, button: HtmlElement) -> Effect:
    form = form_of(button)
    if form is not None and _submits(button):
        return _submit(page, form, button)
    if form is not None and button.get("type", "").lower() == "reset":
        page.reset(form)
        return Effect()
    return _idle(button)


def _idle(element: HtmlElement) -> Effect:
    """Nothing came of a click, unless a script that does not run here would have made something of it."""
    return Effect(code="" if "onclick" in element.attrib else "nothing")


def _submit(page: HtmlPage, form: HtmlElement, submitter: HtmlElement | None) -> Effect:
    chosen = {} if submitter is None else submitter.attrib
    if "novalidate" not in form.attrib and "formnovalidate" not in chosen:
        wrong = next(
            (c for c in page.controls() if form_of(c) is form and not is_disabled(c) and not _valid(page, c)), None
        )
        if wrong is not None:
            page.focus = wrong
            return Effect(code="invalid", detail=name_of(page, wrong))
    url = urljoin(page.url, chosen.get("formaction") or form.get("action") or page.url)
    method = (chosen.get("formmethod") or form.get("method") or "get").upper()
    fields = _fields(page, form, submitter)
    new_tab = _is_new_tab(form)
    if method == "POST":
        return Effect(PageRequest(url, "POST", tuple(fields), new_tab, sent=True))
    scheme, host, path, _, _ = urlsplit(url)
    return Effect(PageRequest(urlunsplit((scheme, host, path, urlencode(fields), "")), new_tab=new_tab, sent=True))


def _fields(page: HtmlPage, form: HtmlElement, submitter: HtmlElement | None) -> list[tuple[str, str]]:
    fields: list[tuple[str, str]] = []
    for element in page.root.iter("input", "select", "textarea", "button"):
        name, kind = element.get("name", ""), kind_of(element)
        if not name or form_of(element) is not form or is_disabled(element):
            continue
        if submitter is not None and element is submitter:
            fields.append((name, submitter.get("value", "")))
        elif element.tag == "button" or kind in (*_BUTTONS, "file"):
            continue
        elif element.tag == "select":
            fields.extend(
                (name, o.get("value", option_text(o))) for o in page.chosen(element) if "disabled" not in o.attrib
            )
        elif kind not in _TICKS or page.checked(element):
            fields.append((name, re.sub(r"\r\n|\r|\n", "\r\n", page.value(element))))
    return fields


def _valid(page: HtmlPage, control: HtmlElement) -> bool:
    kind, value = kind_of(control), "" if control.tag == "select" else page.value(control)
    if kind in (*_BUTTONS, "hidden") or "readonly" in control.attrib:
        return True
    if control.tag == "select":
        chosen = page.chosen(control)
        value = chosen[0].get("value", option_text(chosen[0])) if chosen else ""
    elif kind == "checkbox":
        value = "on" if page.checked(control) else ""
    elif kind == "radio":
        group = [c for c in page.controls() if c.get("name") == control.get("name") and form_of(c) is form_of(control)]
        value = "on" if any(page.checked(c) for c in group) else ""
        if any("required" in c.attrib for c in group) and not value:
            return False
    if not value:
        return "required" not in control.attrib
    if kind == "email":
        return _EMAIL.fullmatch(value) is not None
    if kind == "number":
        return _in_range(control, float(value))
    pattern = control.get("pattern")
    return pattern is None or re.fullmatch(pattern, value) is not None


def _in_range(control: HtmlElement, number: float) -> bool:
    low, high, step = control.get("min") or "", control.get("max") or "", control.get("step") or "1"
    number_form = _FORMATS["number"]
    if number_form.fullmatch(low) and number < float(low):
        return False
    if number_form.fullmatch(high) and number > float(high):
        return False
    if step == "any" or not number_form.fullmatch(step) or float(step) <= 0:
        return True
    steps = (number - (float(low) if number_form.fullmatch(low) else 0.0)) / float(step)
    return abs(steps - round(steps)) < 1e-6


def name_of(page: HtmlPage, element: HtmlElement) -> str:
    """Return an element's accessible name on its page, as observations show it."""
    root = page.snapshot().root
    number = page.refs.index(element) if element in page.refs else -1
    found = next((node for node in root.walk() if node.attributes.get("n") == number), None)
    return str(element.get("name", "")) if found is None else Names(root).name(found, role_of(found) or "")


def same_document(url: str, other: str) -> bool:
    """Whether going from ``other`` to ``url`` only moves to a fragment."""
    return "#" in url and urldefrag(url)[0] == urldefrag(other)[0]
