"""Agreement of two judges, with numbers worked by hand."""

from collections.abc import Sequence

import pytest

from analysis.agreement import Agreement
from analysis.intervals import wilson


def of(first: Sequence[bool], second: Sequence[bool], passes: int = 1) -> Agreement:
    """Return the agreement on episodes of which so many in turn are of one task."""
    return Agreement.of(first, second, [str(i // passes) for i in range(len(first))])


def width(found: Agreement) -> float:
    """Return the width of kappa's interval."""
    assert found.kappa_low is not None
    assert found.kappa_high is not None
    return found.kappa_high - found.kappa_low


def test_agreement_by_hand() -> None:
    # 20 both yes, 15 both no, 5 only the first, 10 only the second (Cohen's textbook table): p_o = 0.7,
    # p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4.
    first = [True] * 20 + [False] * 15 + [True] * 5 + [False] * 10
    second = [True] * 20 + [False] * 15 + [False] * 5 + [True] * 10
    found = of(first, second)
    assert (found.both, found.neither, found.only_first, found.only_second, found.n) == (20, 15, 5, 10, 50)
    assert found.share == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.kappa_low is not None
    assert found.kappa_high is not None
    assert 0.1 < found.kappa_low < 0.25 < 0.55 < found.kappa_high < 0.7
    assert found == of(first, second), "the bootstrap is drawn from a fixed seed"


def test_what_does_not_exist_is_none() -> None:
    nothing = of([], [])
    assert (nothing.share, nothing.kappa) == (None, None)
    # Where both always say yes, chance alone agrees.
    always = of([True] * 5, [True] * 5)
    assert (always.share, always.kappa, always.kappa_low) == (1.0, None, None)
    perfect = of([True, False] * 5, [True, False] * 5)
    assert perfect.kappa == 1.0


def test_episodes_of_one_task_count_as_what_they_are_worth() -> None:
    """Judges that agree on each episode of five tasks and on none of five others: ten answers, not eighty."""
    first, second = [True] * 80, [True] * 40 + [False] * 40
    found = of(first, second, passes=8)
    once = wilson(5, 10)
    assert (found.share, found.low, found.high) == pytest.approx((0.5, once.low, once.high), abs=0.03)
    mixed = [i % 2 == 0 for i in range(80)]
    alone, together = (of(mixed, [a == b for a, b in zip(mixed, second, strict=True)], passes=n) for n in (1, 8))
    assert alone.kappa == together.kappa
    assert width(together) > 2 * width(alone)


@pytest.mark.parametrize("n", [2, 4, 10])
def test_kappa_of_a_few_episodes_is_never_sure(n: int) -> None:
    found = of([True, False] * (n // 2), [True, False] * (n // 2))
    assert found.kappa == found.kappa_high == 1.0
    assert found.kappa_low is not None
    assert found.kappa_low < 0.75
