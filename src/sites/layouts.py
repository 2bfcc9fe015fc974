"""Pages laid out otherwise: the same links, fields and buttons in an order that a seed decides.

Owns ``laid_out``. Invariants: what a page holds, says and does stays as it was, only the order of the links of its
menus, of the parts of its header and of the fields of its forms changes; one seed gives a menu one order on all pages.
"""

from __future__ import annotations

import hashlib

from lxml import html
from lxml.html import HtmlElement


def laid_out(page: str, seed: int) -> str:
    """Return the whole ``page`` in the layout of ``seed``."""
    document = html.document_fromstring(page)
    for menu in document.iter("nav", "header"):
        _reorder(list(menu), seed)
    for form in document.iter("form"):
        _reorder([child for child in form if child.get("class") == "field"], seed)
    written: str = html.tostring(document, encoding="unicode", doctype="<!doctype html>")
    return written


def _reorder(elements: list[HtmlElement], seed: int) -> None:
    """Let these children of one element change places; the white space between the places stays."""
    if len(elements) < 2:
        return
    parent, places = elements[0].getparent(), [(list(e.getparent()).index(e), e.tail) for e in elements]
    for element, (place, tail) in zip(sorted(elements, key=lambda e: _rank(e, seed)), places, strict=True):
        element.tail = None
        parent.remove(element)
        parent.insert(place, element)
        element.tail = tail


def _rank(element: HtmlElement, seed: int) -> bytes:
    label = element.find(".//label")
    name = (element if label is None else label).text_content().strip()
    return hashlib.sha256(f"{seed}/{element.tag}/{name}".encode()).digest()
