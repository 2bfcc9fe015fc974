"""What the rules of one episode found so far: evidence, the verdict, and the questions that wait for a judge.

Owns ``Findings`` and how a text is held against a task's references. Invariants: every rule leaves one line of
evidence a reference; rules that need an LLM judge are only noted here and asked last, while the verdict
is still open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from judges.interface import AnswerJudge, AnswerQuestion
from judges.rule_errors import RuleError, text, texts
from judges.rules import RuleSet
from records import failure_codes as codes
from records.environment import Verdict
from records.failures import EpisodeFailed, Failure

UNACHIEVABLE = "N/A"
_SHOWN = 120


@dataclass(slots=True)
class Findings:
    """The findings of one episode under ``rules``; ``intent`` and ``reason`` go into questions to the judge.

    ``reason`` is why the task cannot be done, where it cannot (WebArena's ``string_note``).
    """

    rules: RuleSet
    intent: str
    reason: str
    evidence: list[str] = field(default_factory=list)
    passed: bool = True
    questions: list[tuple[str, AnswerQuestion]] = field(default_factory=list)

    def add(self, passed: bool, rule: str, expected: object, found: object) -> None:
        """Record one checked reference."""
        self.passed = self.passed and passed
        outcome = "pass" if passed else "fail"
        self.evidence.append(f"{outcome} {self.rules.label} {rule}: expected {_cut(expected)}, found {_cut(found)}")

    def check(
        self,
        rule: str,
        wanted: object,
        found: str,
        *,
        includes: Callable[[str], bool],
        where: str,
        shown: str | None = None,
        joined: bool = False,
    ) -> None:
        """Hold ``found`` against the references ``wanted`` of one ``rule``.

        Args:
            rule: a key of WebArena's reference_answers or required_contents.
            wanted: its value.
            found: the answer or the page's content.
            includes: must_include's meaning here, which answers and pages do not share.
            where: what the evidence calls this check.
            shown: what the evidence shows instead of ``found``.
            joined: several fuzzy references are one question.

        Raises:
            RuleError: for a rule that nobody knows, or references that cannot be read.
        """
        shown, where = found if shown is None else shown, f"{where} {rule}"
        if rule == "exact_match":
            self.add(self.rules.exact_match(text(wanted), found), where, wanted, shown)
        elif rule == "one_of":
            self.add(self.rules.one_of(texts(wanted), found), where, wanted, shown)
        elif rule == "fuzzy_match":
            self._fuzzy_match(wanted, found, where, joined)
        elif rule in ("must_include", "must_exclude", "required_values"):
            checks: Mapping[str, Callable[[str], bool]] = {
                "must_include": includes,
                "must_exclude": lambda reference: self.rules.must_exclude(reference, found),
                "required_values": lambda reference: self.rules.required_value(reference, found),
            }
            for reference in texts(wanted):
                self.add(checks[rule](reference), where, reference, shown)
        else:
            raise RuleError(f"expected a rule out of {', '.join(RULES)}, found {rule!r}; correct the task file")

    def _fuzzy_match(self, wanted: object, found: str, where: str, joined: bool) -> None:
        """Settle what needs no judge, and put the rest on the list of questions."""
        if wanted == UNACHIEVABLE:
            if self.rules.exact_match(UNACHIEVABLE, found):
                self.add(True, where, UNACHIEVABLE, found)
                return
            self.questions.append((f"{where} {UNACHIEVABLE}", AnswerQuestion(self.intent, self.reason, found)))
            return
        references = [", ".join(texts(wanted))] if joined else texts(wanted)
        for reference in references:
            if found:
                self.questions.append((where, AnswerQuestion(self.intent, reference, found)))
            else:
                self.add(not reference, where, reference, found)

    @property
    def open(self) -> bool:
        """Whether the verdict depends on answers to questions."""
        return self.passed and bool(self.questions)

    def verdict(self) -> Verdict:
        """Return the verdict of what was found."""
        return Verdict(1.0 if self.passed else 0.0, tuple(self.evidence))

    async def ask(self, judge: AnswerJudge | None) -> None:
        """Ask the waiting questions in turn, until one is answered no.

        Raises:
            EpisodeFailed: ``judge/no_judge`` where a question waits and there is no judge.
        """
        for rule, question in self.questions:
            if not self.passed:
                return
            if judge is None:
                detail = (
                    f"{rule} of {question.reference!r} against {question.answer!r} needs an LLM judge and none is "
                    "configured; configure a judge, or leave tasks with fuzzy_match out"
                )
                raise EpisodeFailed(Failure(codes.NO_JUDGE, detail))
            asked = judge.same_reason if rule.endswith(UNACHIEVABLE) else judge.matches
            self.add(await asked(question), f"{rule} (judge {judge.name})", question.reference, question.answer)


RULES = ("exact_match", "must_include", "must_exclude", "required_values", "one_of", "fuzzy_match")
"""The rules for texts that reference_answers and required_contents may name."""


def _cut(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}… ({len(shown)} characters)"
