"""What the back office's tasks are judged by: WebArena evaluations and milestones over its pages.

Owns the shapes of both. Pages of records say the whole record in ``#record``, tables their number of rows in
``#count``. Invariants: only WebArena's evaluators; every judged page fails its check in a fresh session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sites.shop import checks as shop_checks
from sites.shop.checks import Check, Evaluation, Subgoals, acted, both, field, milestones, text

__all__ = [
    "Check", "Evaluation", "Subgoals", "acted", "answer", "both", "either", "ends_at", "equals", "field", "includes",
    "milestones", "no_answer", "pages", "record", "recorded", "text", "ticked", "url",
]  # fmt: skip
BASE = "__ADMIN__"
UNANSWERABLE = "N/A"


def url(pattern: str) -> Check:
    """The page's address matches ``pattern``, a path in the back office in fnmatch's language."""
    return {"url": BASE + pattern}


def either(*checks: Check) -> Check:
    """At least one of the checks holds."""
    return {"any": list(checks)}


def ticked(names: Iterable[str]) -> Check:
    """All checkboxes of these names are on."""
    return both(*({"element": {"name": name, "role": "checkbox", "value": "checked"}} for name in names))


def recorded(path: str, summary: str) -> Check:
    """The page of a record is open and says this."""
    return both(url(path), text(summary))


def answer(expected: str) -> Evaluation:
    """Expect this answer and no other."""
    return _evaluation(
        "string_match", reference_answers={"exact_match": expected}, reference_answer_raw_annotation=expected
    )


def no_answer(reason: str) -> Evaluation:
    """Expect the answer that there is none, for this ``reason``.

    The exact rule beside WebArena's fuzzy one settles every other answer without a judge of meaning.
    """
    return _evaluation(
        "string_match",
        reference_answers={"exact_match": UNANSWERABLE, "fuzzy_match": UNANSWERABLE},
        reference_answer_raw_annotation=UNANSWERABLE,
        string_note=reason,
    )


def ends_at(path: str) -> Evaluation:
    """Expect the episode to end at this address, with at least these values in its query."""
    return _evaluation("url_match", reference_url=BASE + path, url_note="GOLD in PRED")


def pages(*targets: dict[str, Any]) -> Evaluation:
    """Expect these contents of pages."""
    return _evaluation("program_html", program_html=list(targets))


def record(path: str, summary: str) -> dict[str, Any]:
    """The record's page says exactly this."""
    return equals(path, "#record", summary)


def equals(path: str, selector: str, content: str) -> dict[str, Any]:
    """The first element of ``selector`` on the page at ``path`` reads exactly ``content`` ("" where it is absent)."""
    return _rebased(shop_checks.equals(path, selector, content))


def includes(path: str, selector: str, *contents: str) -> dict[str, Any]:
    """The first element of ``selector`` on the page at ``path`` contains all of ``contents``."""
    return _rebased(shop_checks.includes(path, selector, *contents))


def _rebased(target: dict[str, Any]) -> dict[str, Any]:
    return {**target, "url": BASE + target["url"].removeprefix(shop_checks.BASE)}


def _evaluation(kind: str, **fields: Any) -> Evaluation:
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": [], "string_note": ""}
    return {"eval_types": [kind], **empty, "reference_answer_raw_annotation": "", **fields}
