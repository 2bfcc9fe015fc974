"""An LLM judge that may be down, slow or talk nonsense, made into one that answers or fails as a judge.

Owns ``PatientJudge``, for judges that ask once, and ``patient``, which leaves those with patience of their own to
themselves (``judges.llm.endpoint``), so that nothing is asked again in two places. Invariants: every question ends by a
deadline; only yes and no are answers; whatever else happens is asked again while there is time, and is then
``EpisodeFailed`` of kind judge, never "no".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from judges.interface import AnswerJudge, AnswerQuestion, PatientAnswerJudge
from judges.settings import EvaluatorSettings
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind
from records.supervision import supervised

_FIRST_PAUSE_S = 0.5
"""Fixed: a pace within ``rollout.judge_deadline_s``; it doubles."""


def patient(judge: AnswerJudge, settings: EvaluatorSettings | None, deadline: Deadline | None) -> AnswerJudge:
    """Return the judge for the questions of one episode, which are answered, or have failed, by ``deadline``."""
    deadline = deadline or Deadline()
    return judge.until(deadline) if isinstance(judge, PatientAnswerJudge) else PatientJudge(judge, settings, deadline)


class PatientJudge:
    """Asks ``judge`` for one episode, until ``deadline``."""

    def __init__(
        self, judge: AnswerJudge, settings: EvaluatorSettings | None = None, deadline: Deadline | None = None
    ) -> None:
        self._judge = judge
        self._settings = settings or EvaluatorSettings()
        self._deadline = deadline or Deadline()
        self.name = judge.name

    async def matches(self, question: AnswerQuestion) -> bool:
        """Whether the answer is equivalent to the reference; see ``AnswerJudge``."""
        return await self._ask(self._judge.matches, question)

    async def same_reason(self, question: AnswerQuestion) -> bool:
        """Whether the answer reports the reference's reason; see ``AnswerJudge``."""
        return await self._ask(self._judge.same_reason, question)

    async def _ask(self, ask: Callable[[AnswerQuestion], Awaitable[bool]], question: AnswerQuestion) -> bool:
        pause_s = _FIRST_PAUSE_S
        with self._deadline.waiting_for(codes.JUDGE_TIMEOUT, f"judge {self.name}"):
            while True:
                said = await self._try(ask, question, self._deadline.left(self._settings.answer_timeout_s))
                if isinstance(said, bool):
                    return said
                if pause_s >= self._deadline.left():
                    raise EpisodeFailed(said)
                await asyncio.sleep(pause_s)
                pause_s *= 2

    async def _try(
        self, ask: Callable[[AnswerQuestion], Awaitable[bool]], question: AnswerQuestion, timeout_s: float
    ) -> bool | Failure:
        """Ask once; return the answer, or what went wrong."""
        try:
            async with asyncio.timeout(timeout_s):
                said = await supervised(ask(question))
        except TimeoutError:
            return self._failure(codes.JUDGE_TIMEOUT, f"no answer within {timeout_s:.1f} s")
        if isinstance(said, bool):
            return said
        if isinstance(said, EpisodeFailed):
            return Failure(FailureCode(said.failure.code.name, FailureKind.JUDGE), said.failure.detail)
        if isinstance(said, OSError):
            return self._failure(codes.JUDGE_UNREACHABLE, f"{type(said).__name__}: {said}")
        if isinstance(said, BaseException):
            return self._failure(codes.JUDGE_ERROR, f"{type(said).__name__}: {said}")
        return self._failure(codes.JUDGE_NONSENSE, f"expected yes or no, found {str(said)[:200]!r}")

    def _failure(self, code: FailureCode, detail: str) -> Failure:
        return Failure(code, f"judge {self.name}: {detail}")
