"""WebArena's three evaluators: string_match, url_match and program_html, multiplied into one verdict.

Owns the reading of a task's ``eval`` object. Invariants: pages are reached only through ``PageView``; no
text of a task is evaluated in Python; an episode without an exit has no answer and never passes
string_match; what cannot be judged (a malformed task, no judge) is raised as ``EpisodeFailed``, never
scored 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.answers import match_answer
from judges.findings import Findings
from judges.functions import FUNCTIONS
from judges.interface import AnswerJudge, EndedEpisode, PageView
from judges.page_contents import program_html
from judges.patient import patient
from judges.rule_errors import RuleError, text
from judges.rules import WEBARENA
from judges.settings import EvaluatorSettings
from records import failure_codes as codes
from records.environment import Verdict
from records.failures import EpisodeFailed, Failure

EVALUATORS = ("string_match", "url_match", "program_html")


async def evaluate(
    ended: EndedEpisode, judge: AnswerJudge | None = None, patience: EvaluatorSettings | None = None
) -> Verdict:
    """Judge one finished episode by its task's ``eval`` object.

    ``judge`` is the LLM judge, without which a rule that needs it raises; ``patience`` says how long one answer of it
    is waited for.

    Raises:
        EpisodeFailed: as ``read_pages``, and ``judge/…`` where meaning must be judged and nobody does so in time.
    """
    findings = await read_pages(ended)
    await findings.ask(None if judge is None else patient(judge, patience, ended.deadline))
    return findings.verdict()


async def read_pages(ended: EndedEpisode) -> Findings:
    """Return what rules and pages say of a finished episode, with the questions that remain.

    ``fresh_page`` is called at most once, for targets with an address; without it the last page itself is navigated, as
    WebArena's harness does.

    Raises:
        EpisodeFailed: ``task/evaluation_invalid`` or ``task/unknown_function`` where the task cannot be read.
    """
    evaluation, page = ended.task.evaluation, ended.page
    kinds = evaluation.get("eval_types")
    if not isinstance(kinds, (list, tuple)) or not kinds or any(kind not in EVALUATORS for kind in kinds):
        raise _invalid(f"eval_types: expected a non-empty list out of {EVALUATORS}, found {kinds!r}")

    async def same_page() -> PageView:
        return page

    findings = Findings(ended.rules or WEBARENA, ended.task.intent, str(evaluation.get("string_note") or ""))
    try:
        if "string_match" in kinds:
            match_answer(evaluation.get("reference_answers"), ended.answer, findings)
        if "url_match" in kinds:
            _url_match(evaluation, await page.url(), findings)
        if "program_html" in kinds:
            await program_html(
                evaluation.get("program_html"),
                findings,
                last=page,
                fresh_page=ended.fresh_page or same_page,
                functions=FUNCTIONS if ended.functions is None else ended.functions,
            )
    except RuleError as error:
        raise _invalid(str(error)) from error
    return findings


def _url_match(evaluation: Mapping[str, Any], found: str, findings: Findings) -> None:
    reference = text(evaluation.get("reference_url"))
    if not reference:
        raise RuleError("reference_url: expected an address for url_match, found nothing")
    findings.add(findings.rules.url_match(reference, found, evaluation.get("url_note")), "url_match", reference, found)


def _invalid(detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(codes.EVALUATION_INVALID, detail))
