"""Which weights may have decided an episode: those before a phase's rollouts, those after its publication."""

from __future__ import annotations

import pytest

from records.episodes import Source, newest_version


@pytest.mark.parametrize(("phase", "rollout", "evaluation"), [(0, 0, 0), (1, 0, 1), (2, 1, 2), (9, 8, 9)])
def test_rollouts_come_before_their_phases_publication_and_evaluations_after(
    phase: int, rollout: int, evaluation: int
) -> None:
    assert newest_version(Source.ROLLOUT, phase) == rollout
    assert newest_version(Source.EVALUATION, phase) == evaluation
