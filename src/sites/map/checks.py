"""What the map's tasks are judged by: WebArena evaluations and milestones, from a few shared pieces.

Owns the shapes of both. Pages are addressed by canonical URLs, and parts of pages by the ids that the
templates give them (``#places``, ``#note``, ``#total``, ...). Places in lists are known by their postcodes,
which no two of them share.
"""

from __future__ import annotations

from typing import Any

from replay.records import Subgoal
from sites.map.data import Place
from sites.map.state import slug

SITE = "__MAP__"
NO_ANSWER = "N/A"
"""What WebArena wants to hear where a question has no answer."""
Check = dict[str, Any]
Step = tuple[str, Check]
Four = tuple[Subgoal, Subgoal, Subgoal, Subgoal]


def evaluation(*kinds: str, **fields: Any) -> dict[str, Any]:
    """Return a complete WebArena ``eval`` object of these evaluators."""
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": [], "string_note": ""}
    return {"eval_types": list(kinds), **empty, "reference_answer_raw_annotation": "", **fields}


def answer(text: str) -> dict[str, Any]:
    """Expect this answer and no other."""
    references = {"exact_match": text}
    return evaluation("string_match", reference_answers=references, reference_answer_raw_annotation=text)


def unanswerable(why: str) -> dict[str, Any]:
    """Expect the answer "N/A".

    WebArena's ``fuzzy_match`` alone would ask a judge of meaning about every other answer; the exact rule
    beside it settles those, so that no judge is needed.
    """
    references = {"exact_match": NO_ANSWER, "fuzzy_match": NO_ANSWER}
    return evaluation(
        "string_match",
        reference_answers=references,
        string_note=why,
        reference_answer_raw_annotation=NO_ANSWER,
    )


def ends_at(path: str, *targets: dict[str, Any]) -> dict[str, Any]:
    """Expect the episode to end on this page, and these contents of pages."""
    kinds = ("url_match", "program_html") if targets else ("url_match",)
    address = {"reference_url": f"{SITE}{path}", "url_note": "GOLD in PRED"}
    return evaluation(*kinds, **address, program_html=list(targets))


def pages(*targets: dict[str, Any]) -> dict[str, Any]:
    """Expect these contents of pages."""
    return evaluation("program_html", program_html=list(targets))


def content(path: str, css: str, *, exact: str | None = None, include: tuple[str, ...] = ()) -> dict[str, Any]:
    """Expect the text of the element ``css`` on the page ``path`` to be this, or to include these."""
    required = {"exact_match": exact} if exact is not None else {"must_include": list(include)}
    locator = f"document.querySelector('{css}').outerText"
    return {"url": f"{SITE}{path}", "locator": locator, "required_contents": required}


def holds(name: str, *places: Place) -> dict[str, Any]:
    """Expect these places in the list."""
    return content(list_path(name), "#places", include=tuple(place.postcode for place in places))


def counts(name: str, number: int) -> dict[str, Any]:
    """Expect so many places in the list."""
    return content(list_path(name), "#count", exact=f"{number} places")


def noted(place: Place, text: str) -> dict[str, Any]:
    """Expect this note on the place."""
    return content(place.path, "#note", exact=text)


def reported(place: Place, problem: str, details: str, css: str = ".report") -> dict[str, Any]:
    """Expect this error report, the latest one unless ``css`` names another."""
    return content("/reports", css, include=(place.label, f"{problem}: {details}"))


def list_path(name: str) -> str:
    """The path of a list."""
    return f"/lists/{slug(name)}"


def at(path: str) -> Check:
    """The agent is on this page; ``*`` stands for anything."""
    return {"url": f"{SITE}{path}"}


def shows(*texts: str) -> Check:
    """The page says all of this."""
    return {"text": list(texts)}


def has(name: str, value: str | None = None, role: str | None = None) -> Check:
    """The page has this element, with this value."""
    optional = {"value": value, "role": role}
    return {"element": {"name": name, **{key: text for key, text in optional.items() if text is not None}}}


def both(*checks: Check) -> Check:
    """All of these hold at the same time."""
    return {"all": list(checks)}


def fields(**values: str) -> Check:
    """These form fields hold these values; underscores in names stand for spaces."""
    return both(*(has(name.replace("_", " "), value) for name, value in values.items()))


def found(place: Place) -> Check:
    """The agent sees search results with a place of this name."""
    return both(at("/search*"), has(place.name, role="link"))


def opening(place: Place) -> tuple[Step, Step]:
    """Milestones on the way to a place."""
    return ("find the place", found(place)), ("open the place", at(f"{place.path}*"))


def saved(place: Place, name: str) -> Check:
    """The agent has just put the place into the list."""
    return both(at(place.path), shows(f"Saved to {name}."))


def wrote_note(place: Place, text: str) -> Check:
    """The agent has just written this note."""
    return both(at(place.path), shows("Your note was saved.", text))


def sent_report(place: Place, problem: str, details: str) -> Check:
    """The agent has just reported this error."""
    return both(at("/reports*"), shows("Thank you for your report.", place.label, f"{problem}: {details}"))


def milestones(*steps: Step) -> Four:
    """Return the four milestones of a task from (description, check) pairs."""
    if len(steps) != 4:
        raise ValueError(f"a task has exactly four milestones, found {len(steps)}")
    first, second, third, fourth = (Subgoal(*step) for step in steps)
    return first, second, third, fourth
