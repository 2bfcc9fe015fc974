"""WebArena's three evaluators: string_match, url_match and program_html, multiplied into one verdict.

Owns the reading of a task's ``eval`` object. Invariants: pages are reached only through ``PageView``; no
text of a task is evaluated in Python; an episode without an exit has no answer and never passes
string_match; what cannot be judged (a malformed task, no judge) is raised as ``EpisodeFailed``, never
scored 0. Rules that need a judge of meaning are asked last, and only while the verdict is still open.
"""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from judges import functions as page_functions
from judges.functions import FUNCTIONS, PageFunction
from judges.interface import AnswerJudge, AnswerQuestion, NoJudge, PageView
from judges.rules import WEBARENA, RuleError, RuleSet
from replay.records import EpisodeFailed, Failure, FailureKind
from rollout_workers.environment import Verdict

__all__ = ["PageView", "evaluate"]

EVALUATORS = ("string_match", "url_match", "program_html")
UNACHIEVABLE = "N/A"
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class _Context:
    """Everything that the checks of one episode share."""

    evaluation: Mapping[str, Any]
    answer: str | None
    intent: str
    page: PageView
    fresh_page: Callable[[], Awaitable[PageView]]
    rules: RuleSet
    judge: AnswerJudge
    functions: Mapping[str, PageFunction]


@dataclass(slots=True)
class _Findings:
    """The lines of evidence so far, whether all rules passed, and the questions that wait for a judge."""

    rules: RuleSet
    evidence: list[str] = field(default_factory=list)
    passed: bool = True
    questions: list[tuple[str, AnswerQuestion]] = field(default_factory=list)

    def add(self, passed: bool, rule: str, expected: object, found: object) -> None:
        self.passed = self.passed and passed
        outcome = "pass" if passed else "fail"
        self.evidence.append(f"{outcome} {self.rules.label} {rule}: expected {_cut(expected)}, found {_cut(found)}")


async def evaluate(
    evaluation: Mapping[str, Any],
    *,
    answer: str | None,
    page: PageView,
    fresh_page: Callable[[], Awaitable[PageView]] | None = None,
    intent: str = "",
    rules: RuleSet = WEBARENA,
    judge: AnswerJudge | None = None,
    functions: Mapping[str, PageFunction] = FUNCTIONS,
) -> Verdict:
    """Judge one finished episode by its task's ``eval`` object.

    Args:
        evaluation: WebArena's ``eval`` object, with canonical URLs.
        answer: the exit message; None where the agent never exited.
        page: the page on which the episode ended; it is not navigated when ``fresh_page`` is given.
        fresh_page: makes another page of the same session, for targets with an address; called at most
            once. Without it the last page itself is navigated, as WebArena's harness does.
        intent: the instruction, which a judge of meaning needs.
        rules: the dialect of WebArena's rules (``judges.rules``).
        judge: the judge of meaning; without one, a rule that needs it raises.
        functions: the functions that ``func:`` may name.

    Raises:
        EpisodeFailed: ``task/evaluation_invalid`` or ``task/unknown_function`` where the task cannot be
            read, ``judge/no_judge`` where meaning must be judged and nobody can.
    """
    kinds = evaluation.get("eval_types")
    if not isinstance(kinds, (list, tuple)) or not kinds or any(kind not in EVALUATORS for kind in kinds):
        raise _invalid(f"eval_types: expected a non-empty list out of {EVALUATORS}, found {kinds!r}")

    async def same_page() -> PageView:
        return page

    context = _Context(evaluation, answer, intent, page, fresh_page or same_page, rules, judge or NoJudge(), functions)
    findings = _Findings(rules)
    try:
        if "string_match" in kinds:
            _string_match(context, findings)
        if "url_match" in kinds:
            await _url_match(context, findings)
        if "program_html" in kinds:
            await _program_html(context, findings)
    except RuleError as error:
        raise _invalid(str(error)) from error
    await _ask_judge(context, findings)
    return Verdict(1.0 if findings.passed else 0.0, tuple(findings.evidence))


def _string_match(context: _Context, findings: _Findings) -> None:
    references = context.evaluation.get("reference_answers")
    if not isinstance(references, Mapping) or not references:
        raise RuleError(f"reference_answers: expected an object with at least one rule, found {references!r}")
    if context.answer is None:
        findings.add(False, "string_match", references, "no exit, hence no answer")
        return
    # Cleaned here and again by each rule, as WebArena does: two layers of quotes come off.
    rules, answer = context.rules, context.rules.clean(context.answer)
    for rule, wanted in references.items():
        if rule == "exact_match":
            findings.add(rules.exact_match(_text(wanted), answer), "string_match exact_match", wanted, answer)
        elif rule == "must_include":
            values = _texts(wanted)
            for value in values:
                passed = rules.answer_includes(value, answer, only=len(values) == 1)
                findings.add(passed, "string_match must_include", value, answer)
        elif rule == "fuzzy_match":
            _fuzzy_match(context, findings, wanted, answer, "string_match fuzzy_match")
        else:
            raise RuleError(f"reference_answers: expected exact_match, must_include or fuzzy_match, found {rule!r}")


async def _url_match(context: _Context, findings: _Findings) -> None:
    reference, note = _text(context.evaluation.get("reference_url")), context.evaluation.get("url_note")
    if not reference:
        raise RuleError("reference_url: expected an address for url_match, found nothing")
    found = await context.page.url()
    findings.add(context.rules.url_match(reference, found, note), "url_match", reference, found)


async def _program_html(context: _Context, findings: _Findings) -> None:
    targets = context.evaluation.get("program_html")
    if not isinstance(targets, (list, tuple)) or not targets:
        raise RuleError(f"program_html: expected a non-empty list of targets, found {targets!r}")
    other: PageView | None = None
    for target in targets:
        if not isinstance(target, Mapping) or not {"url", "locator", "required_contents"} <= set(target):
            raise RuleError(f"program_html: expected url, locator and required_contents, found {target!r}")
        url = _text(target["url"])
        if url.startswith(page_functions.PREFIX):
            url = await page_functions.call(url, context.page, await context.page.url(), context.functions)
        page = context.page
        if url != "last":
            other = other or await context.fresh_page()
            page = other
            await page.open(url)
        content = await _content(context, page, target)
        if context.rules.unescape_html:
            content = html.unescape(content)
        _required_contents(context, findings, target, content)


async def _content(context: _Context, page: PageView, target: Mapping[str, Any]) -> str:
    """Return the text that a target's locator selects on ``page``, after its preparing scripts."""
    locator = _text(target["locator"]).strip()
    if not locator:
        return await page.content_text("")
    if locator.startswith(page_functions.PREFIX):
        return await page_functions.call(locator, page, await page.url(), context.functions)
    if not locator.startswith(("document.", "[...document.")):
        raise RuleError(f"locator: expected '', 'document.…' or 'func:…', found {locator!r}")
    for script in target.get("prep_actions", ()):
        await page.content_text(script)
    return await page.content_text(locator)


def _required_contents(context: _Context, findings: _Findings, target: Mapping[str, Any], content: str) -> None:
    required, rules = target["required_contents"], context.rules
    if not isinstance(required, Mapping):
        raise RuleError(f"required_contents: expected an object, found {required!r}")
    where = f"program_html {target['url']} {target['locator']}".rstrip()
    if "exact_match" in required:
        wanted = _text(required["exact_match"])
        findings.add(rules.exact_match(wanted, content), f"{where} exact_match", wanted, content)
    elif "must_include" in required:
        for wanted in _texts(required["must_include"]):
            found = content if target["locator"].strip() else f"a page of {len(content)} characters"
            findings.add(rules.page_includes(wanted, content), f"{where} must_include", wanted, found)
    elif "fuzzy_match" in required:
        _fuzzy_match(context, findings, required["fuzzy_match"], content, f"{where} fuzzy_match")
    else:
        raise RuleError(
            f"required_contents: expected exact_match, must_include or fuzzy_match, found {sorted(required)}"
        )


def _fuzzy_match(context: _Context, findings: _Findings, wanted: object, found: str, rule: str) -> None:
    """Settle what needs no judge, and put the rest on the list of questions."""
    if wanted == UNACHIEVABLE:
        if context.rules.exact_match(UNACHIEVABLE, found):
            findings.add(True, rule, UNACHIEVABLE, found)
            return
        reason = str(context.evaluation.get("string_note") or "")
        findings.questions.append((f"{rule} {UNACHIEVABLE}", AnswerQuestion(context.intent, reason, found)))
        return
    references = _texts(wanted)
    if context.rules.join_references:
        references = [", ".join(references)]
    for reference in references:
        if found:
            findings.questions.append((rule, AnswerQuestion(context.intent, reference, found)))
        else:
            findings.add(not reference, rule, reference, found)


async def _ask_judge(context: _Context, findings: _Findings) -> None:
    for rule, question in findings.questions:
        if not findings.passed:
            return
        judge = context.judge
        ask = judge.same_reason if rule.endswith(UNACHIEVABLE) else judge.matches
        findings.add(await ask(question), f"{rule} (judge {judge.name})", question.reference, question.answer)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise RuleError(f"expected a string, found {value!r}; correct the task file")
    return value


def _texts(value: object) -> list[str]:
    """Return a list of strings; a lone string, which some task files hold, is a list of one."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)) or not value:
        raise RuleError(f"expected a non-empty list of strings, found {value!r}; correct the task file")
    return [_text(item) for item in value]


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _invalid(detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(FailureKind.TASK, "evaluation_invalid", detail))
