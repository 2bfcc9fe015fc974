"""Tables and pass@k agree with hand-worked numbers."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from analysis.metrics import horizon_bucket, mean_pass_at_k, pass_at_k, success_table
from records import failure_codes as codes
from records.episodes import Source, Termination, Trajectory
from records.failures import Failure, FailureCode, FailureKind


def episode(outcome: float | None, task: str = "t", site: str = "shop", horizon: int = 4) -> Trajectory:
    failure = Failure(codes.BROWSER_CRASHED) if outcome is None else None
    return Trajectory(
        episode_id="e", task_id=task, template=f"{site}.buy", site=site, split="test", intent="", phase=0, seed=0,
        source=Source.EVALUATION, steps=(), termination=Termination.EXIT, answer=None, outcome=outcome,
        failure=failure, horizon=horizon,
    )  # fmt: skip


def test_success_table_groups_and_keeps_lost_episodes_out_of_every_rate() -> None:
    episodes = [episode(1.0), episode(0.0), episode(None), episode(1.0, site="forum", horizon=12)]
    table = success_table(episodes)
    assert (table.total.success, table.total.n) == (pytest.approx(2 / 3), 3)
    assert {site: (rate.success, rate.n) for site, rate in table.by_site.items()} == {"forum": (1, 1), "shop": (0.5, 2)}
    assert {name: rate.n for name, rate in table.by_horizon.items()} == {"1-5": 2, "11-15": 1}
    assert list(table.by_template) == ["forum.buy", "shop.buy"]
    assert table.failures == {"infra/browser_crashed": 1}
    assert table.total.low < table.total.success < table.total.high


def test_success_table_of_lost_episodes_only_has_no_rate() -> None:
    table = success_table([episode(None)])
    assert math.isnan(table.total.success)
    assert table.total.n == 0


def test_failures_known_only_by_their_reason_are_counted_with_the_others() -> None:
    table = success_table([episode(1.0), episode(None)], [Failure(FailureCode("timeout", FailureKind.JUDGE))] * 2)
    assert table.failures == {"infra/browser_crashed": 1, "judge/timeout": 2}
    assert table.total.n == 1


def test_horizon_groups_are_in_order_of_length() -> None:
    table = success_table([episode(1.0, horizon=h) for h in (12, 3, 40, 7)])
    assert list(table.by_horizon) == ["1-5", "6-10", "11-15", "31+"]


@pytest.mark.parametrize(
    ("horizon", "bucket"), [(0, "unknown"), (1, "1-5"), (5, "1-5"), (6, "6-10"), (30, "21-30"), (31, "31+")]
)
def test_horizon_buckets(horizon: int, bucket: str) -> None:
    assert horizon_bucket(horizon) == bucket


def test_pass_at_k_counts_subsets_with_a_success() -> None:
    n, correct, k = 6, 2, 3
    subsets = list(combinations(range(n), k))
    expected = sum(any(member < correct for member in subset) for subset in subsets) / len(subsets)
    assert pass_at_k(n, correct, k) == pytest.approx(expected) == pytest.approx(0.8)


def test_pass_at_k_ends_and_refusals() -> None:
    assert pass_at_k(5, 0, 2) == 0.0
    assert pass_at_k(5, 4, 2) == 1.0
    with pytest.raises(ValueError, match="k=3"):
        pass_at_k(2, 1, 3)


def test_mean_pass_at_k_averages_over_tasks_and_skips_tasks_with_too_few_verdicts() -> None:
    episodes = [episode(1.0, "a"), episode(0.0, "a"), episode(0.0, "b"), episode(0.0, "b"), episode(1.0, "c")]
    assert mean_pass_at_k(episodes, 1) == pytest.approx((0.5 + 0 + 1) / 3)
    assert mean_pass_at_k([*episodes, episode(None, "c")], 2) == pytest.approx(0.5)
    assert math.isnan(mean_pass_at_k(episodes, 3))
