"""Asking a language model until its answer can be read by our rules.

Owns ``ask_until_read``. Invariant: an answer that breaks the rules is asked for again with what was wrong, at most so
often, and then given up as a judge's failure; what was asked in vain is paid for and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from judges.llm.interface import A, LanguageModel, LlmQuestion
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure
from records.terminal import printable

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Read(Generic[R]):
    """What was read from the answer of ``model``, how often it was asked, and what that cost."""

    value: R
    model: str
    asked: int
    cost_usd: float


async def ask_until_read(
    model: LanguageModel,
    question: LlmQuestion[A],
    read: Callable[[A], R],
    *,
    attempts: int,
    what: str,
    deadline: Deadline,
) -> Read[R]:
    """Return what ``read`` makes of the answer; it raises ``ValueError`` with a sentence that the model is told.

    Raises:
        EpisodeFailed: of kind judge, where there is no answer, or after ``attempts`` none that can be read.
    """
    cost, wrong = 0.0, ""
    for asked in range(1, attempts + 1):
        again = (f"Your last answer could not be used: {wrong}. Answer again.",) if wrong else ()
        answer = await model.ask(replace(question, parts=(*question.parts, *again)), deadline)
        cost += answer.cost_usd
        try:
            return Read(read(answer.value), answer.model, asked, cost)
        except ValueError as error:
            wrong = printable(str(error))
    raise EpisodeFailed(Failure(codes.JUDGE_NONSENSE, f"{model.name} gave no usable {what}: {wrong}"))
