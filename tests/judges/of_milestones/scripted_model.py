"""A language model that says what it was told to, as a client of a provider would pass it on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from judges.llm.interface import LlmAnswer, LlmQuestion
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

A = TypeVar("A", bound=BaseModel)
Reply = str | Callable[[LlmQuestion[Any]], str]


class ScriptedModel:
    """Answers with the texts it is given, in order, the last one again and again; what is no answer is a failure."""

    name = "scripted"

    def __init__(self, *replies: Reply | dict[str, Any]) -> None:
        self._replies: Sequence[Reply] = [json.dumps(one) if isinstance(one, dict) else one for one in replies]
        self.asked: list[LlmQuestion[Any]] = []

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        self.asked.append(question)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        text = reply if isinstance(reply, str) else reply(question)
        try:
            value = question.schema.model_validate_json(text)
        except ValidationError as error:
            raise EpisodeFailed(Failure(codes.JUDGE_NONSENSE, f"expected an answer, found {text[:60]!r}")) from error
        return LlmAnswer(value, self.name, 100, 10, 0.001)
