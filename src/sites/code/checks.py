"""What tasks are judged by: WebArena evaluations and milestones, from a few shared pieces.

Owns the shapes of both. Pages are addressed by canonical URLs, and parts of pages by the ids that the
templates give them (``#assignee``, ``#due``, ``#role-ana``, ...).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from replay.records import Subgoal
from sites.code.data import ME

SITE = "__CODE__"
UNANSWERABLE = "N/A"
Check = dict[str, Any]
Step = tuple[str, Check]
Four = tuple[Subgoal, Subgoal, Subgoal, Subgoal]


def evaluation(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a complete WebArena ``eval`` object of one evaluator."""
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": [], "string_note": ""}
    return {"eval_types": [kind], **empty, "reference_answer_raw_annotation": "", **fields}


def answer(text: str) -> dict[str, Any]:
    """Expect this answer and no other."""
    references = {"exact_match": text}
    return evaluation("string_match", reference_answers=references, reference_answer_raw_annotation=text)


def no_answer(reason: str) -> dict[str, Any]:
    """Expect the answer that there is none; ``reason`` says why.

    The exact rule beside WebArena's fuzzy one settles every other answer without a judge of meaning.
    """
    references = {"exact_match": UNANSWERABLE, "fuzzy_match": UNANSWERABLE}
    return evaluation(
        "string_match",
        reference_answers=references,
        reference_answer_raw_annotation=UNANSWERABLE,
        string_note=reason,
    )


def answer_or_none(text: str, reason: str) -> dict[str, Any]:
    """Expect this answer, or for an empty one that there is none for this ``reason``."""
    return answer(text) if text else no_answer(reason)


def ends_at(path: str) -> dict[str, Any]:
    """Expect the episode to end on this page."""
    return evaluation("url_match", reference_url=f"{SITE}{path}", url_note="GOLD in PRED")


def pages(*targets: dict[str, Any]) -> dict[str, Any]:
    """Expect these contents of pages."""
    return evaluation("program_html", program_html=list(targets))


def content(path: str, css: str, *, exact: str | None = None, include: tuple[str, ...] = ()) -> dict[str, Any]:
    """Expect the text of the element ``css`` on a page to be this ("" where it is absent), or to include these."""
    required = {"exact_match": exact} if exact is not None else {"must_include": list(include)}
    locator = f"document.querySelector('{css}').outerText"
    return {"url": f"{SITE}{path}", "locator": locator, "required_contents": required}


def contents(path: str, **texts: str) -> tuple[dict[str, Any], ...]:
    """Expect these texts in the elements of these ids on one page."""
    return tuple(content(path, f"#{name}", exact=text) for name, text in texts.items())


def commented(path: str, text: str) -> dict[str, Any]:
    """Expect the page's latest comment to be the user's, with this text."""
    return content(path, "#comments .comment:last-child", exact=f"{ME}: {text}")


def role(project: str, user: str, name: str) -> dict[str, Any]:
    """Expect the user to have this role in the project; "" for who is no member."""
    return content(f"/{project}/members", f"#role-{user}", exact=name)


def at(path: str) -> Check:
    """The agent is on this page; ``*`` stands for anything."""
    return {"url": f"{SITE}{path}"}


def filtered(path: str, **query: str) -> Check:
    """The agent is on this page with these choices in its query, in this order."""
    return at(f"{path}?*{'*'.join(urlencode({name: value}) for name, value in query.items())}*")


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


def opening(project: str, page: str, what: str) -> tuple[Step, Step]:
    """Milestones on the way to one of a project's pages."""
    return ("open the project", at(f"/{project}*")), (f"open its {what}", at(f"/{project}/{page}*"))


def finding(project: str, page: str, what: str, found: str) -> tuple[Step, Step, Step]:
    """Milestones on the way to one of a project's issues, requests or milestones, whose path is ``found``."""
    return (*opening(project, page, f"{what}s"), (f"open the {what}", at(f"{found}*")))


def milestones(*steps: Step) -> Four:
    """Return the four milestones of a task from (description, check) pairs."""
    if len(steps) != 4:
        raise ValueError(f"a task has exactly four milestones, found {len(steps)}")
    first, second, third, fourth = (Subgoal(*step) for step in steps)
    return first, second, third, fourth
