"""The judges that ask language models, as kinds: their settings, and how they are made.

Imports what they are made of when one is made: a recipe that asks no model loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judges.kinds import JudgeKind, Judges
from judges.llm.settings import LlmSettings, OrmSettings, ProcessSettings

if TYPE_CHECKING:
    from judges.llm.answer_judge import LlmAnswerJudge
    from judges.llm.interface import LanguageModel
    from judges.llm.outcome_judge import OutcomeJudge
    from judges.llm.process_judge import ProcessJudge


def _answers(settings: LlmSettings, judges: Judges) -> LlmAnswerJudge:
    from judges.llm.answer_judge import LlmAnswerJudge

    return LlmAnswerJudge(_model("llm", settings.model, judges))


def _outcomes(settings: OrmSettings, judges: Judges) -> OutcomeJudge:
    from judges.llm.outcome_judge import OutcomeJudge

    return OutcomeJudge(_model("orm", settings.model, judges), settings, judges.screenshots)


def _steps(settings: ProcessSettings, judges: Judges) -> ProcessJudge:
    from judges.llm.process_judge import ProcessJudge

    return ProcessJudge(_model("process", settings.model, judges), settings)


def _model(judge: str, name: str, judges: Judges) -> LanguageModel:
    if not name:
        raise ValueError(f"judges.{judge}.model: expected the name of one of judges.llm.models, found none")
    return judges.language_model(name)


LLM = JudgeKind(settings=LlmSettings, make=_answers)
"""The judge of answers ``llm``."""
ORM = JudgeKind(settings=OrmSettings, make=_outcomes)
"""The judge of outcomes ``orm``."""
PROCESS = JudgeKind(settings=ProcessSettings, make=_steps)
"""The judge of steps ``process``."""
