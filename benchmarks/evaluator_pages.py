"""Our side of the evaluators' comparison: the same cases on stand-in pages, and the differences that are meant.

Owns ``ours`` and ``explain``. Invariant: a difference counts as explained only where undoing the named cause, and
nothing else, turns our verdict into the other one.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from benchmarks.evaluator_cases import SHOP, Case
from judges.evaluators import evaluate
from judges.functions import FUNCTIONS
from judges.interface import AnswerQuestion, EndedEpisode
from judges.rules import RuleSet
from judges.shop_functions import shop_functions
from records.episodes import Task
from records.failures import EpisodeFailed

LAST = f"{SHOP}/last"
Undo = Callable[[Case, RuleSet], tuple[Case, RuleSet]]


def ours(case: Case, rules: RuleSet) -> float | str:
    """Return our outcome, or the code of the failure."""
    try:
        return asyncio.run(_outcome(case, rules))
    except EpisodeFailed as error:
        return error.failure.code.name


async def _outcome(case: Case, rules: RuleSet) -> float:
    last = _Page(case, case.get("at", LAST))

    async def fresh_page() -> _Page:
        return _Page(case, "about:blank")

    async def judged(evaluation: dict[str, Any], **pages: Any) -> float:
        functions = {**FUNCTIONS, **shop_functions(_Shop(case), dict)}
        task = Task("case", ("shopping",), "", SHOP, evaluation, "case")
        ended = EndedEpisode(task, case.get("answer"), last, rules=rules, functions=functions, **pages)
        return (await evaluate(ended, _Judge())).outcome

    if "one_page" not in case:
        return await judged(case["eval"], fresh_page=fresh_page)
    return min([await judged({**case["eval"], "eval_types": [kind]}) for kind in case["eval"]["eval_types"]])


def explain(case: Case, rules: RuleSet, theirs: float | str, dialect_of: RuleSet) -> str | None:
    """Return which differences, undone together, give the other verdict; None where none do.

    These are the fields in which ``rules`` differ from ``dialect_of``, and the meant differences.
    """
    causes = {**_dialects(rules, dialect_of), **UNDO}
    for count in (1, 2, 3):
        for names in combinations(causes, count):
            changed, dialect = copy.deepcopy(case), rules
            for name in names:
                changed, dialect = causes[name](changed, dialect)
            if (changed, dialect) != (case, rules) and _same(ours(changed, dialect), theirs):
                return " + ".join(names)
    return None


def agree(case: Case, rules: RuleSet, theirs: float | str) -> bool:
    """Whether we give the same verdict, or both refuse."""
    return _same(ours(case, rules), theirs)


def _same(mine: float | str, theirs: float | str) -> bool:
    return mine == theirs or (isinstance(mine, str) and isinstance(theirs, str))


def _dialects(rules: RuleSet, other: RuleSet) -> dict[str, Undo]:
    """Return one cause a field in which the two differ."""
    names = [field.name for field in dataclasses.fields(RuleSet) if field.name not in ("name", "version")]
    return {
        f"dialect: {name}": lambda case, dialect, name=name: (
            case,
            dataclasses.replace(dialect, **{name: getattr(other, name)}),
        )
        for name in names
        if getattr(rules, name) != getattr(other, name)
    }


def _texts(change: Callable[[str], str]) -> Undo:
    """Return an undo that changes the answer, every text of the pages and every reference alike."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: changed(child) for key, child in value.items()}
        if isinstance(value, list):
            return [changed(child) for child in value]
        return change(value) if isinstance(value, str) else value

    def undo(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
        case["answer"] = changed(case.get("answer"))
        for table in _tables(case):
            table.update(changed(table))
        for target in case["eval"].get("program_html", ()):
            target["required_contents"] = changed(target["required_contents"])
        case["eval"]["reference_answers"] = changed(case["eval"].get("reference_answers"))
        return case, rules

    return undo


def _tables(case: Case) -> Iterator[dict[str, Any]]:
    for pages in (case.get("pages", {}), case.get("prepared", {})):
        yield from pages.values()


def _null_is_text(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    for table in _tables(case):
        table.update({key: "None" for key, found in table.items() if found is None and not key.startswith("lambda:")})
    return case, rules


def _silence_is_empty(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    case["answer"] = case.get("answer") or ""
    return case, rules


def _only_reason(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    references = case["eval"].get("reference_answers") or {}
    if references.get("fuzzy_match") == "N/A":
        case["eval"]["reference_answers"] = {"fuzzy_match": "N/A"}
    return case, rules


def _tolerant(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    for holder in (case["eval"].get("reference_answers"), *_required(case)):
        if holder and "required_values" in holder:
            holder["required_values"] = [re.sub("([<>])=?", r"\1=", each) for each in holder["required_values"]]
    return case, rules


def _required(case: Case) -> list[dict[str, Any]]:
    return [target["required_contents"] for target in case["eval"].get("program_html", ())]


def _refuse_lone_strings(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    references = case["eval"].get("reference_answers") or {}
    if isinstance(references.get("must_include"), str):
        references["must_include"] = None
    return case, rules


def _one_page(case: Case, rules: RuleSet) -> tuple[Case, RuleSet]:
    """Let targets navigate the last page, which evaluators after them then see."""
    return {**case, "one_page": True}, rules


UNDO: dict[str, Undo] = {
    "a full stop after a word is a token": _texts(lambda text: re.sub(r"(\w)\.(?=\s)", "\\1.\u2060", text)),
    "an apostrophe before a sign is a token": _texts(lambda text: re.sub(r"'(?=[^\w\s'])", "'\u2060", text)),
    "null is no text": _null_is_text,
    "no exit is no answer": _silence_is_empty,
    "a failed rule stays failed before N/A": _only_reason,
    "< and > are strict": _tolerant,
    "a lone string is a list of one": _refuse_lone_strings,
    "the last page stays the last page": _one_page,
}


class _Page:
    def __init__(self, case: Case, at: str) -> None:
        self._case, self._at, self._prepared = case, at, False

    async def url(self) -> str:
        return self._at

    async def open(self, url: str) -> None:
        self._at = url.replace("__SHOPPING__", SHOP)

    async def content_text(self, locator: str) -> str:
        if "members" in self._case:
            return next((role for name, role in self._case["members"] if f'"@{name}"' in locator), "")
        if locator.endswith(".click()"):
            self._prepared = self._prepared or "nothing" not in locator
            return ""
        pages = self._case.get("prepared", {}) if self._prepared else self._case.get("pages", {})
        function = re.fullmatch(r"\((.*)\)\(\) \|\| ''", locator)
        found = pages.get(self._at, {}).get(f"lambda:{function[1]}" if function else locator)
        return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


class _Judge:
    name = "stand-in"

    async def matches(self, question: AnswerQuestion) -> bool:
        return all(part.lower() in question.answer.lower() for part in question.reference.split(", "))

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return question.reference.lower() in question.answer.lower()


class _Shop:
    def __init__(self, case: Case) -> None:
        self._case = case

    async def json(self, method: str, url: str, **options: Any) -> Any:
        if method == "POST":
            return "token"
        if url.endswith("/orders"):
            return {"items": [{"increment_id": number} for number in self._case.get("orders", ())][-1:]}
        return [{"nickname": who, "ratings": [{"percent": percent}]} for who, percent in self._case.get("reviews", ())]
