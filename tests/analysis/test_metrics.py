"""Tables, pass@k and rank statistics agree with hand-worked numbers and with scipy."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from analysis.metrics import auc, horizon_bucket, kendall_tau, mean_pass_at_k, pass_at_k, spearman, success_table
from replay.records import Failure, FailureKind, Source, Termination, Trajectory

stats = pytest.importorskip("scipy.stats")


def episode(outcome: float | None, task: str = "t", site: str = "shop", horizon: int = 4) -> Trajectory:
    failure = Failure(FailureKind.INFRA, "browser_crashed") if outcome is None else None
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
    table = success_table([episode(1.0), episode(None)], [Failure(FailureKind.JUDGE, "timeout")] * 2)
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


def test_auc_by_hand() -> None:
    # Positives 0.9 and 0.4 against negatives 0.4 and 0.1: wins 1, 1, half, 1 of 4 pairs.
    assert auc([0.9, 0.4, 0.4, 0.1], [True, True, False, False]) == pytest.approx(3.5 / 4)
    assert math.isnan(auc([0.5, 0.2], [True, True]))
    with pytest.raises(ValueError, match="2 scores and 1 labels"):
        auc([0.5, 0.2], [True])


def test_rank_correlations_by_hand() -> None:
    assert spearman([1, 2, 3], [10, 30, 20]) == pytest.approx(0.5)
    assert kendall_tau([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)
    assert kendall_tau([1, 2, 3], [9, 4, 1]) == -1.0
    assert math.isnan(spearman([1, 1], [1, 2]))
    assert math.isnan(kendall_tau([1], [1]))


def test_rank_statistics_agree_with_scipy_on_ties() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        a, b = (generator.integers(0, 6, 40).astype(float) for _ in range(2))
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
        assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)
        labels = b > 2
        u = stats.mannwhitneyu(a[labels], a[~labels]).statistic
        assert auc(a, labels.tolist()) == pytest.approx(u / (labels.sum() * (~labels).sum()))
