"""A ``LanguageModel`` that answers as a script says, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from judges.llm.interface import A, LlmAnswer, LlmQuestion
from judges.llm.settings import LlmSettings, ModelSettings
from records.deadline import Deadline

Say = Callable[[LlmQuestion[Any]], Mapping[str, object]]

SETTINGS = LlmSettings({"scripted": ModelSettings("scripted-1")}, model="scripted")
"""Settings under which a judge may name the model ``scripted``."""


class ScriptedModel:
    """Answers each question with what ``say`` returns for it, held against the question's schema."""

    name = "scripted-1"

    def __init__(self, say: Say) -> None:
        self.say = say
        self.asked: list[LlmQuestion[Any]] = []

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        self.asked.append(question)
        value = question.schema.model_validate(self.say(question), strict=True)
        return LlmAnswer(value, self.name, input_tokens=100, output_tokens=10, cost_usd=0.001)
