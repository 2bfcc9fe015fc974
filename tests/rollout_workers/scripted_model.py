"""A language model that says what it is told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from judges.llm.interface import A, LlmAnswer, LlmQuestion
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

Respond = Callable[[LlmQuestion[Any], int], dict[str, Any] | Failure]


@dataclass
class ScriptedModel:
    """Answers with ``respond(question, n)``, n counting from 0; what does not fit the schema is a judge's failure."""

    respond: Respond
    name: str = "scripted"
    delay_s: float = 0.0
    asked: list[LlmQuestion[Any]] = field(default_factory=list)

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        self.asked.append(question)
        await asyncio.sleep(self.delay_s)
        said = self.respond(question, len(self.asked) - 1)
        if isinstance(said, Failure):
            raise EpisodeFailed(said)
        try:
            value: BaseModel = question.schema.model_validate(_with_reason(question.schema, said))
        except ValidationError as error:
            raise EpisodeFailed(Failure(codes.JUDGE_NONSENSE, str(error))) from error
        return LlmAnswer(value, self.name, input_tokens=100, output_tokens=10, cost_usd=0.001)  # type: ignore[arg-type]

    @property
    def prompts(self) -> list[str]:
        """The wordings that were asked, without their versions."""
        return [question.prompt.partition("/")[0].removeprefix("sgo-") for question in self.asked]


def _with_reason(schema: type[BaseModel], said: dict[str, Any]) -> dict[str, Any]:
    return {"reason": "because", **said} if "reason" in schema.model_fields else said
