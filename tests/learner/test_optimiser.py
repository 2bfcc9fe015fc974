"""The learning-rate schedule at points worked by hand."""

from __future__ import annotations

import pytest

from learner.optimiser import learning_rate_factor
from learner.settings import CloneSettings


@pytest.mark.parametrize(
    ("progress", "decay", "expected"),
    [
        (0.0, "cosine", 0.0),
        (0.05, "cosine", 0.5),
        (0.1, "cosine", 1.0),
        (0.55, "cosine", 0.5),
        (1.0, "cosine", 0.0),
        (0.325, "linear", 0.75),
        (1.0, "linear", 0.0),
        (0.7, "constant", 1.0),
    ],
)
def test_schedule(progress: float, decay: str, expected: float) -> None:
    assert learning_rate_factor(progress, 0.1, decay, 0.0) == pytest.approx(expected)


def test_schedule_ends_at_its_final_share() -> None:
    assert learning_rate_factor(1.0, 0.0, "cosine", 0.1) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="decay must be 'cosine' or 'linear' or 'constant', found 'staircase'"):
        CloneSettings(decay="staircase")
