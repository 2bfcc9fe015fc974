"""Rank statistics against numbers counted by hand, and against scipy where ties matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from learner.metrics import ratio_metrics
from learner.statistics import auc, kendall, spearman, summarise


def test_auc_counts_pairs() -> None:
    # positives 0.8 and 0.3, negatives 0.5 and 0.3: won, won, lost, tied -> (1 + 1 + 0 + 0.5) / 4.
    assert auc(np.array([0.8, 0.3, 0.5, 0.3]), np.array([1, 1, 0, 0])) == pytest.approx(2.5 / 4)


def test_statistics_without_a_value_are_none() -> None:
    assert auc(np.array([0.1, 0.2]), np.array([1, 1])) is None
    assert kendall(np.array([1.0, 1.0]), np.array([0.0, 1.0])) is None
    assert spearman(np.array([1.0, 1.0]), np.array([0.0, 1.0])) is None
    assert summarise(np.zeros(0)) is None


def test_rank_correlations_by_hand() -> None:
    # Of six pairs three are in order, one is not, and each side ties one: (3 - 1) / 5. The ranks are 1, 2.5, 2.5, 4 and
    # 1, 4, 2.5, 2.5.
    a, b = np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 2.0])
    assert kendall(a, b) == pytest.approx(2 / 5)
    assert spearman(a, b) == pytest.approx(2.25 / 4.5)
    assert kendall(a, -b) == pytest.approx(-2 / 5)
    assert kendall(np.zeros(0), np.zeros(0)) is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=15))
def test_rank_correlations_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=np.float64).T
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert kendall(a, b) is None
        return
    assert kendall(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=15))
def test_auc_is_mann_whitneys_u_over_the_pairs(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([s for s, _ in pairs], dtype=np.float64), np.array([won for _, won in pairs])
    if labels.all() or not labels.any():
        assert auc(scores, labels) is None
        return
    wins = stats.mannwhitneyu(scores[labels], scores[~labels]).statistic
    assert auc(scores, labels) == pytest.approx(wins / (labels.sum() * (~labels).sum()))


def test_ratio_metrics_by_hand() -> None:
    # asked 2, -1, 0 (mean 1/3); achieved half of each: slope 1/2, all signs agree, the unsigned one does not count.
    metrics = ratio_metrics(np.array([2.0, -1.0, 0.0]), np.array([1.0, -0.5, 0.0]))
    assert metrics is not None
    assert metrics.slope == pytest.approx(0.5)
    assert metrics.correlation == pytest.approx(1.0)
    assert metrics.agreement == 1.0
    assert (metrics.achieved_positive, metrics.achieved_negative) == (1.0, -0.5)
