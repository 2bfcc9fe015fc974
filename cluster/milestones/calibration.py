"""The similarity above which actions reach milestones, calibrated on a run whose milestones have checks.

Owns ``calibrate_matching``, which ``waymark milestones calibrate`` prints. Invariant: the accuracy that is told is of
templates that the threshold was not chosen on; where a run has too few of them none is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.discrimination import over_groups
from analysis.intervals import Interval
from cluster.milestones.validation import left_out
from judges.of_milestones.checker import Known
from judges.of_milestones.encoder import Remembering, SentenceEncoder
from judges.of_milestones.labelled_pairs import LabelledPairs, labelled_pairs
from judges.of_milestones.matching import THRESHOLD

SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
"""Thresholds whose accuracy is told, of the paper's figure 9 and below."""


@dataclass(frozen=True, slots=True)
class MatchingCalibration:
    """What a run's pairs say of the threshold: accuracies are means over both kinds of pair, chance is 0.5.

    ``threshold`` is chosen on ``taught`` of the ``pairs``, of which ``reached`` reach their milestone. ``held_out`` is
    its accuracy on the others with a 95 % interval (bootstrap over templates), ``of_paper`` that of the paper's
    threshold there, ``control`` that of a threshold chosen and measured where each episode's actions are held against
    another one's milestones; None where no templates are left out. ``by_threshold`` is of all pairs.
    """

    pairs: int
    reached: int
    taught: int
    threshold: float
    taught_accuracy: float
    held_out: Interval | None
    of_paper: Interval | None
    control: Interval | None
    by_threshold: dict[float, float]


def calibrate_matching(
    known: Sequence[Known], encoder: SentenceEncoder, folds: int = 5, seed: int = 0, *, part: int = 0
) -> MatchingCalibration:
    """Return the threshold that tells best which actions reach a milestone, and how well it does on other templates.

    One template in ``folds`` is left out, those of one ``part`` of as many; with 0 it is chosen on all of them.

    Raises:
        ValueError: among the episodes that it is chosen on, no action or every action reaches its milestone.
    """
    encoder = Remembering(encoder)  # the pairs of the control have the same texts
    pairs, others = labelled_pairs(known, encoder), labelled_pairs(known, encoder, strangers=seed)
    held = np.array(
        [bool(folds) and left_out(name, folds) == part for name in pairs.templates.tolist()], dtype=np.bool_
    )
    taught, asked = pairs.where(~held), pairs.where(held)
    threshold = taught.best_threshold()
    return MatchingCalibration(
        len(pairs.reached),
        int(pairs.reached.sum()),
        len(taught.reached),
        threshold,
        taught.accuracy(threshold),
        _accuracy(asked, threshold),
        _accuracy(asked, THRESHOLD),
        _accuracy(others.where(held), others.where(~held).best_threshold()),
        {at: pairs.accuracy(at) for at in SHOWN},
    )


def _accuracy(pairs: LabelledPairs, threshold: float) -> Interval | None:
    """Return a threshold's accuracy; None where there are not two templates, or one kind of pair is missing."""
    if len(set(pairs.templates)) < 2 or np.isnan(pairs.accuracy(threshold)):
        return None
    return over_groups(lambda chosen: pairs.where(chosen).accuracy(threshold), pairs.templates.tolist())
