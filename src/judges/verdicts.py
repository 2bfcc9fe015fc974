"""WebArena's evaluators as a judge of trajectories, and which tasks need an LLM judge beside them.

Owns the judge ``evaluators``. Waiting for an LLM judge's answers, and typing what goes wrong with it, is
``judges.patient``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judges.evaluators import evaluate, read_pages
from judges.findings import Findings
from judges.interface import AnswerJudge, EndedEpisode, EpisodeJudge, OpenVerdict, TrajectoryJudge
from judges.kinds import JudgeKind, Judges, TasksBySplit
from judges.patient import patient
from judges.settings import EvaluatorSettings
from records.checks import Check, Status
from records.deadline import Deadline
from records.environment import Verdict
from records.episodes import Task, Trajectory
from records.labels import LabelSubject

_RULE = "fuzzy_match"
_SHOWN = 12
_NAME_ONE = (
    "name one in judges.evaluators.answer_judge, or leave them out; an answer that is no exact match fails as "
    "judge/no_judge"
)


class Evaluators:
    """Judges by a task's ``eval`` object; ``answers`` compares meanings, None where no task asks for that.

    ``otherwise`` gives the verdict where rules cannot tell, because a task has none or nobody compares meanings; it
    judges what was recorded, so that it is asked by ``postponing`` evaluators only.
    """

    def __init__(
        self,
        answers: AnswerJudge | None = None,
        settings: EvaluatorSettings | None = None,
        otherwise: EpisodeJudge | None = None,
    ) -> None:
        self.answers, self.settings, self.otherwise = answers, settings or EvaluatorSettings(), otherwise

    async def verdict(self, ended: EndedEpisode) -> Verdict | OpenVerdict:
        """Return the verdict of the evaluators; see ``judges.evaluators.evaluate``."""
        return await evaluate(ended, self.answers, self.settings)

    def postponing(self) -> TrajectoryJudge:
        """Return evaluators that ask their questions of meaning when the pages are gone."""
        return _Postponing(self)


class _Postponing:
    """Evaluators that leave questions open."""

    def __init__(self, evaluators: Evaluators) -> None:
        self._evaluators = evaluators

    async def verdict(self, ended: EndedEpisode) -> Verdict | OpenVerdict:
        """Return the verdict where rules and pages decide, else an open one."""
        if self._evaluators.otherwise is not None and not ended.task.evaluation.get("eval_types"):
            return _Open(self._evaluators, None)
        findings = await read_pages(ended)
        return _Open(self._evaluators, findings) if findings.open else findings.verdict()


class _Open:
    """What rules left open: ``findings`` with questions, or None where the task has no rules."""

    def __init__(self, evaluators: Evaluators, findings: Findings | None) -> None:
        self._evaluators, self._findings = evaluators, findings

    async def settle(self, episode: Trajectory, task: Task, deadline: Deadline) -> Verdict:
        """Return the verdict; see ``OpenVerdict``."""
        by, findings = self._evaluators, self._findings
        if by.otherwise is not None and (findings is None or by.answers is None):
            label = await by.otherwise.label(episode, task, deadline)
            said = "pass" if label.outcome else "fail"
            why = f"{said} instead of rules: {label.judge} ({label.model}, {label.prompt}) gives {label.values[0]:.2f}"
            known = () if findings is None else findings.evidence
            return Verdict(label.outcome, (*known, f"{why}: {label.evidence}"))
        assert findings is not None
        await findings.ask(None if by.answers is None else patient(by.answers, by.settings, deadline))
        return findings.verdict()


def needs_answer_judge(task: Task) -> bool:
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


def _make(settings: EvaluatorSettings, judges: Judges) -> Evaluators:
    answers = judges.of_answers(settings.answer_judge) if settings.answer_judge else None
    otherwise = judges.of_episodes(settings.otherwise) if settings.otherwise else None
    if otherwise is not None and otherwise.subject is not LabelSubject.OUTCOME:
        raise ValueError(
            f"otherwise: expected a judge of outcomes, found {settings.otherwise!r}, which judges {otherwise.subject}"
        )
    return Evaluators(answers, settings, otherwise)


def _preflight(settings: EvaluatorSettings, judges: Judges, tasks: TasksBySplit) -> list[Check]:
    """Whether there is an LLM judge for the tasks that need one."""
    try:
        made = _make(settings, judges)
    except ValueError as error:
        return [Check("LLM judge", Status.FAIL, f"judges.evaluators: {error}")]
    answers = made.answers
    asking = {split: [task for task in found if needs_answer_judge(task)] for split, found in tasks.items()}
    if answers is None and made.otherwise is not None:
        found = (
            f"{settings.otherwise}, in place of rules that ask for meaning, for {sum(map(len, asking.values()))} tasks"
        )
        return [Check("LLM judge", Status.OK, found)]
    if answers is None:
        return [
            Check("LLM judge", Status.WARN, f"none, and {some(found)} of {split} need one", _NAME_ONE)
            for split, found in asking.items()
            if found
        ]
    return [Check("LLM judge", Status.OK, f"{answers.name}, for {sum(map(len, asking.values()))} tasks")]


def some(tasks: Sequence[Task]) -> str:
    """Return the tasks as a line shows them: their number, and the first ones' ids."""
    names = [task.task_id for task in tasks[:_SHOWN]]
    more = f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    return f"{len(tasks)} tasks ({', '.join(names)}{more})"


EVALUATORS = JudgeKind(settings=EvaluatorSettings, make=_make, preflight=_preflight)
"""The judge ``evaluators``."""
