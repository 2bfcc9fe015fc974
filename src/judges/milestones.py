"""Declarative milestone checks: is a milestone true of what the agent sees now and has done so far?

Owns the little language of checks (``url``, ``text``, ``element``, ``acted``, ``answer``, ``all``, ``any``) and its
validation. Pure: reads an observation and a list of past actions, nothing else. ``reached`` keeps
milestone vectors monotone (once done, done).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from judges.answers import is_right
from judges.rule_errors import RuleError
from records.environment import Action, Element, Observation
from records.episodes import Milestone, Task


@dataclass(frozen=True, slots=True)
class Acted:
    """One action that was carried out: its kind, the *real* name of its element ("" for none), its argument."""

    kind: str
    name: str = ""
    argument: str | None = None

    @classmethod
    def of(cls, action: Action, element: Element | None) -> Acted:
        """Describe ``action`` on ``element``; what the agent merely called the element does not count."""
        return cls(action.kind, element.name if element else "", action.argument)


def check(milestone_check: Mapping[str, Any], observation: Observation, action_history: Sequence[Acted]) -> bool:
    """Whether the check holds now.

    ``url`` is an fnmatch pattern on the canonical URL with its query; ``text`` a list of strings that
    must all be in the visible text, in any case; ``element`` an element with this exact name (and role,
    and value); ``acted`` an earlier action of this kind (on an element of this name, with this argument);
    ``answer`` an exit whose message passes these ``reference_answers``; ``all`` and ``any`` combine.

    Raises:
        ValueError: for a malformed check; run ``validate`` when tasks are loaded.
    """
    validate(milestone_check)
    return _holds(milestone_check, observation, action_history)


def reached(
    milestones: Sequence[Milestone],
    previous: Sequence[bool],
    observation: Observation,
    action_history: Sequence[Acted],
) -> tuple[bool, ...]:
    """Return the milestone vector (K,) of this state: what was reached stays reached; ``previous`` may be empty.

    A milestone without a check is never reached here: a judge says so of the recorded episode.
    """
    before = tuple(previous) or (False,) * len(milestones)
    if len(before) != len(milestones):
        raise ValueError(f"milestones: expected {len(milestones)} earlier values, found {len(before)}")
    return tuple(
        done or (milestone.check != {} and check(milestone.check, observation, action_history))
        for done, milestone in zip(before, milestones, strict=True)
    )


def validate(milestone_check: object, where: str = "check") -> None:
    """Raise ``ValueError`` that says where a check is malformed and what is expected there."""
    if not isinstance(milestone_check, Mapping) or len(milestone_check) != 1:
        raise _malformed(where, f"an object with one of {sorted(_CHECKS)}", milestone_check)
    ((kind, argument),) = milestone_check.items()
    if kind not in _CHECKS:
        raise _malformed(where, f"one of {sorted(_CHECKS)}", kind)
    where = f"{where}.{kind}"
    if kind in ("all", "any"):
        for index, inner in enumerate(_non_empty_list(argument, where)):
            validate(inner, f"{where}[{index}]")
    elif kind == "url":
        _string(argument, where)
    elif kind == "answer":
        _references(argument, where)
    elif kind == "text":
        for index, text in enumerate(_non_empty_list(argument, where)):
            _string(text, f"{where}[{index}]")
    else:
        _fields(argument, where, *_FIELDS[kind])


def validate_task(task: Task, count: int = 4) -> None:
    """Raise ``ValueError`` unless the task has exactly ``count`` milestones with well-formed checks."""
    if len(task.milestones) != count:
        raise ValueError(f"task {task.task_id}: expected {count} milestones, found {len(task.milestones)}")
    for index, milestone in enumerate(task.milestones):
        validate(milestone.check, f"task {task.task_id}: milestones[{index}].check")


def _holds(milestone_check: Mapping[str, Any], observation: Observation, history: Sequence[Acted]) -> bool:
    ((kind, argument),) = milestone_check.items()
    return _CHECKS[kind](argument, observation, history)


def _url(pattern: str, observation: Observation, history: Sequence[Acted]) -> bool:
    return fnmatchcase(observation.url, pattern)


def _page_text(texts: Iterable[str], observation: Observation, history: Sequence[Acted]) -> bool:
    page_text = observation.page_text.casefold()
    return all(text.casefold() in page_text for text in texts)


def _element(wanted: Mapping[str, str], observation: Observation, history: Sequence[Acted]) -> bool:
    return any(all(getattr(e, key) == value for key, value in wanted.items()) for e in observation.elements)


def _acted(wanted: Mapping[str, str], observation: Observation, history: Sequence[Acted]) -> bool:
    return any(
        a.kind == wanted["kind"]
        and wanted.get("name", a.name) == a.name
        and ("argument" not in wanted or _same_text(wanted["argument"], a.argument))
        for a in history
    )


def _answer(references: Mapping[str, Any], observation: Observation, history: Sequence[Acted]) -> bool:
    return any(one.kind == "exit" and is_right(references, one.argument or "") for one in history)


def _same_text(wanted: str, found: str | None) -> bool:
    return found is not None and wanted.strip().casefold() == found.strip().casefold()


def _all(checks: Iterable[Mapping[str, Any]], observation: Observation, history: Sequence[Acted]) -> bool:
    return all(_holds(inner, observation, history) for inner in checks)


def _any(checks: Iterable[Mapping[str, Any]], observation: Observation, history: Sequence[Acted]) -> bool:
    return any(_holds(inner, observation, history) for inner in checks)


_CHECKS: dict[str, Callable[[Any, Observation, Sequence[Acted]], bool]] = {
    "url": _url,
    "text": _page_text,
    "element": _element,
    "acted": _acted,
    "answer": _answer,
    "all": _all,
    "any": _any,
}
# Required and optional fields.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "element": (("name",), ("role", "value")),
    "acted": (("kind",), ("name", "argument")),
}


def _fields(argument: object, where: str, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    expected = f"an object with {', '.join(required)}" + (f" and optionally {', '.join(optional)}" if optional else "")
    if not isinstance(argument, Mapping) or not set(required) <= set(argument) <= {*required, *optional}:
        raise _malformed(where, expected, argument)
    for key, value in argument.items():
        if not isinstance(value, str):
            raise _malformed(f"{where}.{key}", "a string", value)


def _references(argument: object, where: str) -> None:
    try:
        is_right(argument, "")
    except RuleError as error:
        raise ValueError(f"{where}: {error}") from error


def _string(value: object, where: str) -> None:
    if not isinstance(value, str) or not value:
        raise _malformed(where, "a non-empty string", value)


def _non_empty_list(value: object, where: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise _malformed(where, "a non-empty list", value)
    return value


def _malformed(where: str, expected: str, found: object) -> ValueError:
    return ValueError(f"{where}: expected {expected}, found {found!r}; correct the milestone's check")
