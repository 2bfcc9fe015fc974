"""How the shop's tasks are judged and which milestones lead there.

Owns the builders of WebArena ``eval`` objects and of declarative subgoals over the shop's pages.
Invariants: only WebArena's three evaluators; only canonical addresses; every judged page exists in a
fresh session too, where it fails the check.
"""

from __future__ import annotations

from typing import Any

from replay.records import Subgoal

BASE = "__SHOP__"
Check = dict[str, Any]
Evaluation = dict[str, Any]
Subgoals = tuple[Subgoal, Subgoal, Subgoal, Subgoal]


def url(pattern: str) -> Check:
    """The page's address matches ``pattern``, a path in the shop in fnmatch's language."""
    return {"url": BASE + pattern}


def text(*parts: str) -> Check:
    """All parts are visible."""
    return {"text": list(parts)}


def field(name: str, value: str) -> Check:
    """A form field holds a value."""
    return {"element": {"name": name, "value": value}}


def acted(kind: str, name: str, argument: str | None = None) -> Check:
    """An earlier action was of this kind, on an element of this name."""
    return {"acted": {"kind": kind, "name": name, **({"argument": argument} if argument is not None else {})}}


def both(*checks: Check) -> Check:
    """All of the checks hold at once."""
    return {"all": list(checks)}


def milestones(*pairs: tuple[str, Check]) -> Subgoals:
    """Return the four subgoals described by (description, check) pairs."""
    first, second, third, fourth = (Subgoal(description, check) for description, check in pairs)
    return first, second, third, fourth


def answer(expected: str) -> Evaluation:
    """The exit message must include ``expected``."""
    return _evaluation("string_match", reference_answers={"must_include": [expected]}, raw_answer=expected)


def ends_at(path: str) -> Evaluation:
    """The episode must end at this address of the shop."""
    return _evaluation("url_match", reference_url=BASE + path)


def pages(*targets: dict[str, Any]) -> Evaluation:
    """Parts of pages must hold what the targets say (see ``includes`` and ``equals``)."""
    return _evaluation("program_html", program_html=list(targets))


def includes(path: str, selector: str, *contents: str) -> dict[str, Any]:
    """The first element of ``selector`` on the page at ``path`` contains all of ``contents``."""
    return _target(path, selector, {"must_include": list(contents)})


def equals(path: str, selector: str, content: str) -> dict[str, Any]:
    """The first element of ``selector`` on the page at ``path`` reads exactly ``content``."""
    return _target(path, selector, {"exact_match": content})


def in_cart(variant: str, quantity: int = 1) -> Evaluation:
    """The cart holds this variant in this quantity, and nothing else."""
    return pages(includes("/cart", "#cart-lines", f"{variant}, "), equals("/cart", "#items", f"Items: {quantity}"))


def ordered(*lines: str, items: int, address: str = "", shipping: str = "") -> Evaluation:
    """The newest order has these lines and no more pieces, and goes where and how it should."""
    return pages(*newest_order(*lines, items=items, address=address, shipping=shipping))


def newest_order(
    *lines: str, items: int, address: str = "", shipping: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Targets of ``pages`` that ``ordered`` consists of."""
    wanted = [*lines, *([f"Deliver to {address}"] if address else []), *([f"Shipping: {shipping}"] if shipping else [])]
    return includes("/orders/last", "#order", *wanted), equals("/orders/last", "#items", f"Items: {items}")


def _target(path: str, selector: str, required: dict[str, Any]) -> dict[str, Any]:
    locator = f"document.querySelector('{selector}').outerText"
    return {"url": BASE + path, "locator": locator, "required_contents": required}


def _evaluation(
    kind: str,
    *,
    reference_answers: dict[str, Any] | None = None,
    raw_answer: str = "",
    reference_url: str = "",
    program_html: list[dict[str, Any]] | None = None,
) -> Evaluation:
    return {
        "eval_types": [kind],
        "reference_answers": reference_answers,
        "reference_url": reference_url,
        "program_html": program_html or [],
        "string_note": "",
        "reference_answer_raw_annotation": raw_answer,
    }
