"""The judge ``llm`` as a kind: its settings, and how it is made.

Imports what it is made of when it is made: a recipe that asks no model loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judges.kinds import JudgeKind, Judges
from judges.llm.settings import LlmSettings

if TYPE_CHECKING:
    from judges.llm.answer_judge import LlmAnswerJudge


def _make(settings: LlmSettings, judges: Judges) -> LlmAnswerJudge:
    from judges.llm.answer_judge import LlmAnswerJudge

    if not settings.model:
        raise ValueError("judges.llm.model: expected the name of one of judges.llm.models, found none")
    return LlmAnswerJudge(judges.language_model(settings.model))


LLM = JudgeKind(settings=LlmSettings, make=_make)
"""The judge ``llm``."""
