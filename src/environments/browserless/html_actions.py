"""What an action does to a page without a browser: a change of its controls, or a request.

Owns the rules of links, buttons, typing, choosing and implicit submission; how a form is sent is in ``html_forms``.
Invariants: nothing here touches the network; what cannot be done is reported as a code of ``feedback``.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from lxml.html import HtmlElement

from environments.browserless.effects import Effect, PageRequest
from environments.browserless.html_forms import BUTTONS, FORMATS, TICKS, is_new_tab, submit, submits
from environments.browserless.html_page import HtmlPage, form_of, is_disabled, kind_of, option_text, options_of

_NOT_TEXT = (*TICKS, *BUTTONS, "file", "hidden", "range", "color")
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
    elif element.tag == "button" or kind in BUTTONS:
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
    if value and kind in FORMATS and not FORMATS[kind].fullmatch(value):
        page.set_value(element, "")
        return Effect(code="not_accepted")
    page.set_value(element, value)
    return Effect()


def select(page: HtmlPage, element: HtmlElement, wanted: str) -> Effect:
    """Choose the option with this text (exactly, else ignoring case and space) or value, or the only one with it."""
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
    having = [index for index, text in enumerate(folded) if plain and plain in text]
    if len(having) != 1:
        return Effect(code="no_option")
    page.choose(element, having[0])
    return Effect()


def press_enter(page: HtmlPage, element: HtmlElement | None) -> Effect:
    """Press Enter on an element, or on the focused one."""
    target = page.focus if element is None else element
    if target is None:
        return Effect(code="no_focus")
    page.focus = target
    kind = kind_of(target)
    if target.tag in ("a", "button", "summary") or kind in BUTTONS:
        return click(page, target)
    if target.tag == "textarea":
        page.set_value(target, page.value(target) + "\n")
        return Effect()
    form = form_of(target) if target.tag == "input" else None
    if form is None:
        return Effect(code="no_submit")
    members = [e for e in page.root.iter("button", "input") if form_of(e) is form]
    submitter = next((e for e in members if submits(e)), None)
    if submitter is not None:
        return Effect() if is_disabled(submitter) else submit(page, form, submitter)
    fields = [e for e in members if e.tag == "input" and kind_of(e) in _BLOCKING]
    return submit(page, form, None) if len(fields) <= 1 else Effect(code="no_submit")


def _follow(page: HtmlPage, link: HtmlElement) -> Effect:
    address = link.get("href", "").strip()
    if urlsplit(address).scheme.lower() == "javascript":
        return Effect()
    return Effect(PageRequest(urljoin(page.url, address), new_tab=is_new_tab(link)))


def _press(page: HtmlPage, button: HtmlElement) -> Effect:
    form = form_of(button)
    if form is not None and submits(button):
        return submit(page, form, button)
    if form is not None and button.get("type", "").lower() == "reset":
        page.reset(form)
        return Effect()
    return _idle(button)


def _idle(element: HtmlElement) -> Effect:
    """Nothing came of a click, unless a script that does not run here would have made something of it."""
    return Effect(code="" if "onclick" in element.attrib else "nothing")
