"""A run may have some failures of each kind, and stops with a useful sentence past that."""

from __future__ import annotations

import pytest

from records import failure_codes as codes
from records.failures import Failure, FailureCode, FailureKind
from rollout_workers.budget import FailureBudget, FailureBudgetExceeded


def infra(code: str = "browser_crashed", detail: str = "") -> Failure:
    known = {found.name: found for found in vars(codes).values() if isinstance(found, FailureCode)}
    return Failure(known.get(code, FailureCode(code, FailureKind.INFRA)), detail)


def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    budget = FailureBudget({FailureKind.INFRA: 2})
    for _ in range(2):
        budget.record(infra())
    budget.check()
    budget.record(infra())
    with pytest.raises(FailureBudgetExceeded):
        budget.check()


def test_kinds_have_separate_limits() -> None:
    budget = FailureBudget({FailureKind.INFRA: 5, FailureKind.JUDGE: 0})
    budget.record(infra())
    assert budget.exceeded() is None
    budget.record(Failure(codes.JUDGE_DEADLINE))
    assert budget.exceeded() is FailureKind.JUDGE


def test_a_failure_that_ends_the_run_does_so_at_once_with_its_own_sentence() -> None:
    budget = FailureBudget({FailureKind.JUDGE: 100})
    budget.record(Failure(codes.JUDGE_BUDGET, "0 USD are left"))
    with pytest.raises(FailureBudgetExceeded, match=r"stopped: 0 USD are left\. What to do: raise judges\.llm\.budget"):
        budget.check()


def test_a_kind_without_a_limit_is_counted_only() -> None:
    budget = FailureBudget({})
    for _ in range(100):
        budget.record(infra())
    budget.check()
    assert budget.counts() == {"infra/browser_crashed": 100}


def test_the_message_says_what_happened_most_and_what_to_do() -> None:
    budget = FailureBudget({FailureKind.POLICY: 0})
    for code in ("deadline", "server_dead", "server_dead"):
        budget.record(Failure(FailureCode(code, FailureKind.POLICY), "actor policy-0 is gone"))
    said = r"3 policy failures; at most 0 .*server_dead x2.*policy-0.*policy servers"
    with pytest.raises(FailureBudgetExceeded, match=said):
        budget.check()


@pytest.mark.parametrize(("episodes", "limit"), [(10, 16), (64, 16), (65, 17), (400, 100)])
def test_the_limit_grows_with_the_run_above_a_floor(episodes: int, limit: int) -> None:
    budget = FailureBudget.for_run(episodes, {FailureKind.INFRA: 0.25}, floor=16, window=1000)
    for _ in range(limit):
        budget.record(infra())
    assert budget.exceeded() is None
    budget.record(infra())
    assert budget.exceeded() is FailureKind.INFRA


def test_a_long_run_may_have_accidents_for_ever_and_still_feedback_an_outage_at_once() -> None:
    budget = FailureBudget.for_run(100_000, {FailureKind.INFRA: 0.25}, floor=16, window=100)
    for _ in range(1000):
        budget.record(infra())
        for _ in range(4):
            budget.succeed()
        budget.check()
    for _ in range(8):  # 20 of the newest 100 failed already
        budget.record(infra("site_unreachable", "port 80"))
        left = budget.exceeded() is None
    assert not left
    with pytest.raises(FailureBudgetExceeded, match="26 infra failures; at most 25 .*newest 100"):
        budget.check()
    assert budget.counts() == {"infra/browser_crashed": 1000, "infra/site_unreachable": 8}


def test_the_remedy_fits_what_happened_most() -> None:
    budget = FailureBudget({FailureKind.INFRA: 1})
    for _ in range(2):
        budget.record(infra("shard_not_written", "No space left on device"))
    with pytest.raises(FailureBudgetExceeded, match="No space left on device.*make room on the disk"):
        budget.check()


def test_a_limit_beyond_the_window_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 10 attempts"):
        FailureBudget({FailureKind.INFRA: 10}, window=10)
