"""A judge of one's own: answers are the same where their letters are."""

from __future__ import annotations

from dataclasses import dataclass

from judges.interface import AnswerQuestion
from judges.kinds import JudgeKind


@dataclass(frozen=True)
class SameSettings:
    """What a recipe may tell it in ``judges``."""

    __pydantic_config__ = {"extra": "forbid"}
    fold_case: bool = True


class Same:
    """A judge of answers; it reads no reasons."""

    name = "same"

    def __init__(self, settings: SameSettings) -> None:
        self._fold = str.casefold if settings.fold_case else str

    async def matches(self, question: AnswerQuestion) -> bool:
        """Whether both are the same text."""
        return self._fold(question.answer) == self._fold(question.reference)

    async def same_reason(self, question: AnswerQuestion) -> bool:
        """No."""
        return False


SAME = JudgeKind(settings=SameSettings, make=lambda settings, judges: Same(settings))
