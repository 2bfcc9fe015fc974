"""What the encyclopedia's tasks are judged by: WebArena evaluations and milestones, from a few shared pieces.

Owns the shapes of both; pages are addressed by canonical URLs, parts of pages by the ids that the templates
give them.
"""

from __future__ import annotations

from typing import Any

from replay.records import Subgoal
from sites.wiki.data import Article, slug

SITE = "__WIKI__"
NO_ANSWER = "N/A"
"""What WebArena wants to hear where a question has no answer."""
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


def unanswerable(why: str) -> dict[str, Any]:
    """Expect the answer "N/A"; the exact rule settles every other answer, so that no judge of meaning is asked."""
    references = {"exact_match": NO_ANSWER, "fuzzy_match": NO_ANSWER}
    return evaluation(
        "string_match", reference_answers=references, string_note=why, reference_answer_raw_annotation=NO_ANSWER
    )


def on_reading_list(*articles: Article) -> dict[str, Any]:
    """Expect these articles on the reading list."""
    target = {
        "url": f"{SITE}/reading",
        "locator": "document.querySelector('#reading').outerText",
        "required_contents": {"must_include": [article.title for article in articles]},
    }
    return evaluation("program_html", program_html=[target])


def at(path: str) -> Check:
    """The visitor is on this page; ``*`` stands for anything."""
    return {"url": f"{SITE}{path}"}


def shows(*texts: str) -> Check:
    """The page says all of this."""
    return {"text": list(texts)}


def has(name: str, role: str | None = None) -> Check:
    """The page has this element."""
    return {"element": {"name": name, **({"role": role} if role else {})}}


def both(*checks: Check) -> Check:
    """All of these hold at the same time."""
    return {"all": list(checks)}


def category_path(name: str) -> str:
    """The path of a category."""
    return f"/category/{slug(name)}"


def beginning() -> tuple[Step, Step]:
    """Milestones that every search has behind it at its start."""
    return ("start at the encyclopedia", at("/*")), ("see a search box", has("Search", "searchbox"))


def put(article: Article) -> Check:
    """The visitor has just put the article on the reading list."""
    return both(at(article.path), shows(f"{article.title} is on your reading list."))


def milestones(*steps: Step) -> Four:
    """Return the four milestones of a task from (description, check) pairs."""
    if len(steps) != 4:
        raise ValueError(f"a task has exactly four milestones, found {len(steps)}")
    first, second, third, fourth = (Subgoal(*step) for step in steps)
    return first, second, third, fourth
