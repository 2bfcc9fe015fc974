"""Pairs of an action and the milestone that was next, labelled by the milestones' own checks (ADMIRE, appendix B.4.2).

Owns ``LabelledPairs``, ``labelled_pairs`` and the threshold that tells them apart best. Invariant: pure; an episode
gives a pair for each action up to the one that reaches its last milestone, and none for a step that was no action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judges.of_milestones.actions import action_sentence
from judges.of_milestones.checker import Known
from judges.of_milestones.encoder import Remembering, SentenceEncoder
from judges.of_milestones.matching import similarity_of

CANDIDATES = tuple(round(0.01 * number, 2) for number in range(1, 100))
"""Thresholds that are tried."""


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """N pairs: ``similarity``, whether the action ``reached`` the milestone, and their ``templates``, each (N,)."""

    similarity: npt.NDArray[np.float64]
    reached: npt.NDArray[np.bool_]
    templates: npt.NDArray[np.str_]

    def accuracy(self, threshold: float) -> float:
        """Return the mean of the shares of both kinds that a threshold tells right; nan where one kind is missing.

        The paper's 500 pairs are half of each kind, so its accuracy is this one. Of an episode's own pairs most are
        of the kind that reaches nothing, and to say no always would be right nearly always.
        """
        said = self.similarity > threshold
        if self.reached.all() or not self.reached.any():
            return float("nan")
        return float((said[self.reached].mean() + (~said)[~self.reached].mean()) / 2)

    def best_threshold(self) -> float:
        """Return the candidate of the highest accuracy, of several the middle one.

        Raises:
            ValueError: all pairs are of one kind.
        """
        found = np.array([self.accuracy(at) for at in CANDIDATES])
        if np.isnan(found).any():
            raise ValueError(f"expected actions that reach their milestone and others, found {len(self.reached)} alike")
        best = np.flatnonzero(found >= found.max() - 1e-12)
        return CANDIDATES[int(best[len(best) // 2])]

    def where(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> LabelledPairs:
        """Return the pairs that ``chosen`` says: a mask (N,), or indices."""
        return LabelledPairs(self.similarity[chosen], self.reached[chosen], self.templates[chosen])


def labelled_pairs(known: Sequence[Known], encoder: SentenceEncoder, *, strangers: int | None = None) -> LabelledPairs:
    """Return the pairs of episodes whose milestones have checks.

    With ``strangers``, a seed, each episode's actions are held against the milestones of another one, under the labels
    of its own: what is still told apart then is the kind of action, not the milestone.
    """
    encoder = Remembering(encoder)
    similarity: list[float] = []
    reached: list[bool] = []
    templates: list[str] = []
    order = np.arange(len(known)) if strangers is None else np.random.default_rng(strangers).permutation(len(known))
    for one, other in zip(known, order.tolist(), strict=True):
        held_against = known[other].milestones
        alike = similarity_of(one.episode, held_against, encoder)
        for t, step in enumerate(one.episode.steps):
            left = np.flatnonzero(~one.reached[t])
            if not left.size:
                break
            if action_sentence(step):
                similarity.append(float(alike[t, min(left[0], len(held_against) - 1)]))
                reached.append(bool(one.reached[t + 1, left[0]]))
                templates.append(one.episode.template)
    return LabelledPairs(np.array(similarity), np.array(reached, dtype=np.bool_), np.array(templates, dtype=np.str_))
