"""What a language model is asked and what it answers: the seam between judges and whatever serves a model.

Owns ``LlmQuestion``, ``LlmAnswer`` and the protocol ``LanguageModel``. Invariants: an answer is an instance of the
question's schema, or there is none; what a model says is data, never evaluated. Who implements the protocol (a
provider's SDK, a cache, a test's script) is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from records.deadline import Deadline

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a question: the bytes of a PNG."""

    png: bytes


@dataclass(frozen=True, slots=True)
class LlmQuestion(Generic[A]):
    """One question.

    ``prompt`` names the wording with its version, such as ``outcome/1``: with the model and the parts it is what an
    answer is kept by. ``system`` and ``parts`` are what the model reads; ``schema`` is what it has to answer.
    ``thinking_tokens`` is the thinking budget (None: the model decides; 0: none), ``max_tokens`` bounds the answer
    beside it.
    """

    prompt: str
    system: str
    parts: tuple[str | Image, ...]
    schema: type[A]
    max_tokens: int = 1024
    temperature: float = 0.0
    thinking_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LlmAnswer(Generic[A]):
    """The answer ``value`` of ``model``, with what it cost; ``cached`` says that it was known and cost nothing.

    ``budget_refused`` says that the model does not take the question's thinking budget and decided itself.
    """

    value: A
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    cached: bool = False
    budget_refused: bool = False


class LanguageModel(Protocol):
    """Answers questions; ``name`` is the model as its provider calls it."""

    name: str

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        """Return an answer by ``deadline``; raise ``EpisodeFailed`` of kind judge where there is none."""
        ...
