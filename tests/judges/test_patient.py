"""A judge that is down, slow or talks nonsense is asked again, and fails as a judge; it never says no by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from judges.interface import AnswerQuestion
from judges.patient import PatientJudge
from judges.settings import EvaluatorSettings
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind

QUESTION = AnswerQuestion("How many lamps?", "two", "2")
QUICK = EvaluatorSettings(answer_timeout_s=0.5)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between two questions are short here."""
    monkeypatch.setattr("judges.patient._FIRST_PAUSE_S", 0.01)


class Troubled:
    """Is in trouble for ``times`` questions and says yes afterwards."""

    name = "troubled"

    def __init__(self, trouble: Callable[[], object], times: int = 1) -> None:
        self._trouble, self._left, self.asked = trouble, times, 0

    async def matches(self, question: AnswerQuestion) -> bool:
        self.asked += 1
        if self.asked > self._left:
            return True
        said = self._trouble()
        return await said if asyncio.iscoroutine(said) else said  # type: ignore[return-value]

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return not await self.matches(question)


def down() -> object:
    raise ConnectionRefusedError("port 1")


def slow() -> object:
    return asyncio.sleep(60)


def nonsense() -> object:
    return "as an artificial mind I would rather not say"


def unread() -> object:
    raise KeyError("choices")


def unsure() -> object:
    raise EpisodeFailed(Failure(FailureCode("quota", FailureKind.INFRA), "ask again later"))


TROUBLES = [
    (down, "judge_unreachable"), (slow, "judge_timeout"), (nonsense, "judge_nonsense"), (unread, "judge_error"),
    (unsure, "quota"),
]  # fmt: skip


@pytest.mark.parametrize(("trouble", "code"), TROUBLES)
async def test_trouble_that_passes_costs_time_only(trouble: Callable[[], object], code: str) -> None:
    judge = Troubled(trouble)
    patient = PatientJudge(judge, EvaluatorSettings(answer_timeout_s=1.0), Deadline(60))
    assert await patient.matches(QUESTION) is True
    assert await patient.same_reason(QUESTION) is False
    assert (judge.asked, patient.name) == (3, "troubled")


@pytest.mark.parametrize(("trouble", "code"), TROUBLES)
async def test_trouble_that_stays_is_the_judges_failure(trouble: Callable[[], object], code: str) -> None:
    judge = Troubled(trouble, times=1_000_000)
    async with asyncio.timeout(60):
        with pytest.raises(EpisodeFailed) as caught:
            await PatientJudge(judge, QUICK, Deadline(2.0)).matches(QUESTION)
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.JUDGE, code)
    assert judge.asked > 1


async def test_the_questions_of_one_episode_share_a_deadline() -> None:
    patient = PatientJudge(Troubled(down, times=1_000_000), EvaluatorSettings("", 0.2), Deadline(0.5))
    with pytest.raises(EpisodeFailed):
        await patient.matches(QUESTION)
    await asyncio.sleep(0.5)
    second = Troubled(down, times=1_000_000)
    patient._judge = second
    with pytest.raises(EpisodeFailed):
        await patient.matches(QUESTION)
    assert second.asked <= 1, "the time was used up by the first question"
