"""Agreement of two judges, with numbers worked by hand."""

import pytest

from analysis.agreement import Agreement


def test_agreement_by_hand() -> None:
    # 20 both yes, 15 both no, 5 only the first, 10 only the second (Cohen's textbook table): p_o = 0.7,
    # p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4.
    first = [True] * 20 + [False] * 15 + [True] * 5 + [False] * 10
    second = [True] * 20 + [False] * 15 + [False] * 5 + [True] * 10
    found = Agreement.of(first, second)
    assert (found.both, found.neither, found.only_first, found.only_second, found.n) == (20, 15, 5, 10, 50)
    assert found.share == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.kappa_low is not None
    assert found.kappa_high is not None
    assert 0.1 < found.kappa_low < 0.25 < 0.55 < found.kappa_high < 0.7
    assert found == Agreement.of(first, second), "the bootstrap is drawn from a fixed seed"


def test_what_does_not_exist_is_none() -> None:
    nothing = Agreement.of([], [])
    assert (nothing.share, nothing.kappa) == (None, None)
    # Where both always say yes, chance alone agrees.
    always = Agreement.of([True] * 5, [True] * 5)
    assert (always.share, always.kappa, always.kappa_low) == (1.0, None, None)
    perfect = Agreement.of([True, False] * 5, [True, False] * 5)
    assert perfect.kappa == 1.0
