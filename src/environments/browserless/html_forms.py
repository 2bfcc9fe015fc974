"""Sending a form without a browser: its data, and the checks before it is sent.

Owns the rules of form data and validity. Invariants: nothing here touches the network; follows the HTML standard's form
rules as Chromium applies them.
"""

from __future__ import annotations

import re
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from lxml.html import HtmlElement

from environments.browserless.effects import Effect, PageRequest
from environments.browserless.html_page import HtmlPage, form_of, is_disabled, kind_of, option_text
from environments.interface.element_names import Names, role_of

TICKS = ("checkbox", "radio")
BUTTONS = ("submit", "button", "reset", "image")
FORMATS = {
    "number": re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][-+]?\d+)?"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "month": re.compile(r"\d{4}-\d{2}"),
    "time": re.compile(r"\d{2}:\d{2}(:\d{2})?"),
}
_EMAIL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)


def submit(page: HtmlPage, form: HtmlElement, submitter: HtmlElement | None) -> Effect:
    """Send a form by ``submitter``, or as Enter in a field does; a control that is not valid gets the focus instead."""
    chosen = {} if submitter is None else submitter.attrib
    if "novalidate" not in form.attrib and "formnovalidate" not in chosen:
        wrong = next(
            (c for c in page.controls() if form_of(c) is form and not is_disabled(c) and not _valid(page, c)), None
        )
        if wrong is not None:
            page.focus = wrong
            return Effect(code="invalid", detail=_name_of(page, wrong))
    url = urljoin(page.url, chosen.get("formaction") or form.get("action") or page.url)
    method = (chosen.get("formmethod") or form.get("method") or "get").upper()
    fields = _fields(page, form, submitter)
    new_tab = is_new_tab(form)
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
        elif element.tag == "button" or kind in (*BUTTONS, "file"):
            continue
        elif element.tag == "select":
            fields.extend(
                (name, o.get("value", option_text(o))) for o in page.chosen(element) if "disabled" not in o.attrib
            )
        elif kind not in TICKS or page.checked(element):
            fields.append((name, re.sub(r"\r\n|\r|\n", "\r\n", page.value(element))))
    return fields


def _valid(page: HtmlPage, control: HtmlElement) -> bool:
    kind, value = kind_of(control), "" if control.tag == "select" else page.value(control)
    if kind in (*BUTTONS, "hidden") or "readonly" in control.attrib:
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
    number_form = FORMATS["number"]
    if number_form.fullmatch(low) and number < float(low):
        return False
    if number_form.fullmatch(high) and number > float(high):
        return False
    if step == "any" or not number_form.fullmatch(step) or float(step) <= 0:
        return True
    steps = (number - (float(low) if number_form.fullmatch(low) else 0.0)) / float(step)
    return abs(steps - round(steps)) < 1e-6


def is_new_tab(element: HtmlElement) -> bool:
    """Whether a link or a form opens a tab."""
    return element.get("target", "").lower() not in ("", "_self", "_top", "_parent")


def submits(element: HtmlElement) -> bool:
    """Whether a button or input sends its form."""
    if element.tag == "button":
        return element.get("type", "submit").lower() not in ("button", "reset")
    return kind_of(element) in ("submit", "image")


def _name_of(page: HtmlPage, element: HtmlElement) -> str:
    """Return an element's accessible name on its page, as observations show it."""
    root = page.snapshot().root
    number = page.refs.index(element) if element in page.refs else -1
    found = next((node for node in root.walk() if node.attributes.get("n") == number), None)
    return str(element.get("name", "")) if found is None else Names(root).name(found, role_of(found) or "")
