"""Answers of agents against a task's references, by WebArena's own rules.

Owns the reading of ``reference_answers``, and an answer as a milestone. Invariant: pure; what only a judge of meaning
can say is left open, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from judges.findings import UNACHIEVABLE, Findings
from judges.rule_errors import RuleError
from judges.rules import WEBARENA
from records.episodes import Milestone, Task

ANSWERED = "the question is answered rightly"
"""What the milestone says, which may stand in a prompt: the answer itself is in its check alone."""


def match_answer(references: object, given: str | None, findings: Findings) -> None:
    """Hold an answer (None: the episode has no exit) against references, and add what is found to ``findings``.

    Raises:
        RuleError: the references cannot be read.
    """
    if not isinstance(references, Mapping) or not references:
        raise RuleError(f"reference_answers: expected an object with at least one rule, found {references!r}")
    if given is None:
        findings.add(False, "string_match", references, "no exit, hence no answer")
        return
    # Cleaned here and again by each rule, as WebArena does: two layers of quotes come off.
    rules, answer = findings.rules, findings.rules.clean(given)
    for rule, wanted in references.items():
        only = not isinstance(wanted, (list, tuple)) or len(wanted) == 1
        findings.check(
            rule,
            wanted,
            answer,
            includes=partial(rules.answer_includes, answer=answer, only=only),
            where="string_match",
            joined=rules.join_references,
        )


def is_right(references: object, given: str | None) -> bool:
    """Whether an answer passes all references by WebArena's rules; one that needs a judge of meaning does not.

    Raises:
        RuleError: the references cannot be read.
    """
    findings = Findings(WEBARENA, "", "")
    match_answer(references, given, findings)
    return findings.passed and not findings.open


def with_answer(task: Task) -> Task:
    """Return a task that asks a question with the right answer as its last milestone, another one as it is.

    A task without milestones has none to add to. Where meaning decides whether an answer is right
    (``fuzzy_match``), no check can say so as it is given, and the task stays as it is, too.
    """
    kinds, references = task.evaluation.get("eval_types"), task.evaluation.get("reference_answers")
    if not task.milestones or "string_match" not in (kinds or ()) or not isinstance(references, Mapping):
        return task
    exact = {rule: wanted for rule, wanted in references.items() if rule != "fuzzy_match"}
    if not exact or references.get("fuzzy_match", UNACHIEVABLE) != UNACHIEVABLE:
        return task
    return replace(task, milestones=(*task.milestones, Milestone(ANSWERED, {"answer": exact})))
