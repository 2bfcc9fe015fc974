"""What the tasks of every site are judged by: WebArena evaluations and the checks of milestones.

Owns the shapes of both. A site's own ``checks`` module names its pages (``PagesOf``) and the things that are done
there. Invariants: only WebArena's evaluators; the exact rule stands beside WebArena's fuzzy one for "N/A", so that
no LLM judge is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from records.placeholders import placeholder

UNANSWERABLE = "N/A"
"""What WebArena wants to hear where a question has no answer."""
Check = dict[str, Any]
Evaluation = dict[str, Any]
Target = dict[str, Any]
Step = tuple[str, Check]
Milestones = tuple[Step, Step, Step, Step]
"""What each milestone of a task means, and its check."""


def evaluation(*kinds: str, **fields: Any) -> Evaluation:
    """Return a complete WebArena ``eval`` object of these evaluators."""
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": [], "string_note": ""}
    return {"eval_types": list(kinds), **empty, "reference_answer_raw_annotation": "", **fields}


def answer(text: str) -> Evaluation:
    """Expect this answer and no other."""
    return _answer(text, {"exact_match": text})


def answer_including(text: str) -> Evaluation:
    """Expect an answer that includes this."""
    return _answer(text, {"must_include": [text]})


def no_answer(reason: str) -> Evaluation:
    """Expect the answer that there is none; ``reason`` says why."""
    return _answer(UNANSWERABLE, {"exact_match": UNANSWERABLE, "fuzzy_match": UNANSWERABLE}, string_note=reason)


def answer_or_none(text: str, reason: str) -> Evaluation:
    """Expect this answer, or for an empty one that there is none for this ``reason``."""
    return answer(text) if text else no_answer(reason)


def pages(*targets: Target) -> Evaluation:
    """Expect these contents of pages."""
    return evaluation("program_html", program_html=list(targets))


@dataclass(frozen=True, slots=True)
class PagesOf:
    """The pages of one site, named by their paths."""

    site: str

    def at(self, pattern: str) -> Check:
        """The agent is on a page whose path matches ``pattern``, in the language of ``fnmatch``."""
        return {"url": self._url(pattern)}

    def ends_at(self, path: str, *targets: Target) -> Evaluation:
        """Expect the episode to end here, with at least these values in the query, and these contents of pages."""
        kinds = ("url_match", "program_html") if targets else ("url_match",)
        address = {"reference_url": self._url(path), "url_note": "GOLD in PRED"}
        return evaluation(*kinds, **address, program_html=list(targets))

    def equals(self, path: str, css: str, text: str) -> Target:
        """Expect the first element of ``css`` on the page at ``path`` to read ``text`` ("" where it is absent)."""
        return self._target(path, css, {"exact_match": text})

    def includes(self, path: str, css: str, *texts: str) -> Target:
        """Expect the first element of ``css`` on the page at ``path`` to contain all of ``texts``."""
        return self._target(path, css, {"must_include": list(texts)})

    def _url(self, path: str) -> str:
        return placeholder(self.site) + path

    def _target(self, path: str, css: str, required: dict[str, Any]) -> Target:
        locator = f"document.querySelector('{css}').outerText"
        return {"url": self._url(path), "locator": locator, "required_contents": required}


def shows(*texts: str) -> Check:
    """The page says all of this."""
    return {"text": list(texts)}


def has(name: str, value: str | None = None, role: str | None = None) -> Check:
    """The page has an element of this name, with this value and role where they are given."""
    optional = {"value": value, "role": role}
    return {"element": {"name": name, **{key: text for key, text in optional.items() if text is not None}}}


def acted(kind: str, name: str, argument: str | None = None) -> Check:
    """An earlier action was of this kind, on an element of this name."""
    return {"acted": {"kind": kind, "name": name, **({"argument": argument} if argument is not None else {})}}


def both(*checks: Check) -> Check:
    """All of the checks hold at once."""
    return {"all": list(checks)}


def either(*checks: Check) -> Check:
    """At least one of the checks holds."""
    return {"any": list(checks)}


def towards(done: Check, *checks: Check) -> Check:
    """All of the checks hold, as they do shortly before ``done``, or ``done`` does."""
    return either(both(*checks), done)


def _answer(raw: str, references: dict[str, Any], **fields: Any) -> Evaluation:
    return evaluation("string_match", reference_answers=references, reference_answer_raw_annotation=raw, **fields)
