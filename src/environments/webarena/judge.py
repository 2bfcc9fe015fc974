"""The LLM judge that a recipe names, and which tasks ask for one.

Owns ``load_judge`` and ``needs_judge``. A recipe names a function that makes one. Waiting for its answers,
and typing what goes wrong with it, is ``judges.patient``.
"""

from __future__ import annotations

from collections.abc import Mapping

from environments.kinds import load
from judges.interface import AnswerJudge
from records.episodes import Task

_METHODS = ("matches", "same_reason")
_RULE = "fuzzy_match"


def load_judge(reference: str) -> AnswerJudge | None:
    """Return what the function ``module:name`` makes, called without arguments; None for an empty reference.

    Raises:
        ValueError: where there is no such function, or what it makes is no ``AnswerJudge``.
    """
    if not reference:
        return None
    try:
        make = load(reference)
    except ValueError as error:
        raise ValueError(f"webarena.judge: {error}") from error
    if not callable(make):
        raise ValueError(f"webarena.judge: expected a function that makes a judge, found a {type(make).__name__}")
    judge: AnswerJudge = make()
    missing = [name for name in _METHODS if not callable(getattr(judge, name, None))]
    if missing or not isinstance(getattr(judge, "name", None), str):
        raise ValueError(
            f"webarena.judge: expected {reference} to make an AnswerJudge (name, {', '.join(_METHODS)}), found a "
            f"{type(judge).__name__} without {', '.join(missing or ['a name'])}"
        )
    return judge


def needs_judge(task: Task) -> bool:
    """Whether a verdict on ``task`` may need an LLM judge: it has a ``fuzzy_match``, "N/A" included.

    An answer that is "N/A" to the letter needs none.
    """
    evaluation = task.evaluation
    kinds = evaluation.get("eval_types", ())
    rules: list[object] = []
    if "string_match" in kinds:
        rules.append(evaluation.get("reference_answers"))
    if "program_html" in kinds:
        targets = evaluation.get("program_html") or ()
        rules += [target.get("required_contents") for target in targets if isinstance(target, Mapping)]
    return any(isinstance(found, Mapping) and _RULE in found for found in rules)
