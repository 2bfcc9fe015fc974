"""WebArena's evaluators as a judge of trajectories, and which tasks need an LLM judge beside them.

Owns the judge ``evaluators``. Waiting for an LLM judge's answers, and typing what goes wrong with it, is
``judges.patient``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judges.evaluators import evaluate
from judges.interface import AnswerJudge, EndedEpisode
from judges.kinds import JudgeKind, Judges, TasksBySplit
from judges.settings import EvaluatorSettings
from records.checks import Check, Status
from records.environment import Verdict
from records.episodes import Task

_RULE = "fuzzy_match"
_SHOWN = 12
_NAME_ONE = (
    "name one in judges.evaluators.answer_judge, or leave them out; an answer that is no exact match fails as "
    "judge/no_judge"
)


class Evaluators:
    """Judges by a task's ``eval`` object; ``answers`` compares meanings, None where no task asks for that."""

    def __init__(self, answers: AnswerJudge | None = None, settings: EvaluatorSettings | None = None) -> None:
        self.answers, self.settings = answers, settings or EvaluatorSettings()

    async def verdict(self, ended: EndedEpisode) -> Verdict:
        """Return the verdict of the evaluators; see ``judges.evaluators.evaluate``."""
        return await evaluate(ended, self.answers, self.settings)


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
    return Evaluators(judges.of_answers(settings.answer_judge) if settings.answer_judge else None, settings)


def _preflight(settings: EvaluatorSettings, judges: Judges, tasks: TasksBySplit) -> list[Check]:
    """Whether there is an LLM judge for the tasks that need one."""
    try:
        answers = _make(settings, judges).answers
    except ValueError as error:
        return [Check("LLM judge", Status.FAIL, f"judges.evaluators.answer_judge: {error}")]
    asking = {split: [task for task in found if needs_answer_judge(task)] for split, found in tasks.items()}
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
