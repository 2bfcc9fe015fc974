"""Labels: what a judge says of an episode after it was played, as a record of its own.

Owns ``Label``. Invariants: a label is immutable and names who said it (judge, model, prompt); it never changes the
episode, whose shard stays as it was written; several judges may label the same episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from records.episodes import FloatArray


class LabelSubject(StrEnum):
    """What a label is about."""

    OUTCOME = "outcome"
    MILESTONES = "milestones"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Label:
    """One judge's word on one episode of T steps.

    ``values`` are in [0, 1] and float32. For an outcome (1,): the probability of success, of which
    ``decision_threshold`` makes 0 or 1. For milestones (T + 1, K): whether each of K milestones is reached before each
    step and after the last; ``descriptions`` (K) say what they are. For steps (T,): whether the step was right.
    ``prompt`` is the wording or the trained judge's checksum, ``evidence`` the judge's reasons. ``cost_usd`` is what
    was paid for it.
    """

    episode_id: str
    subject: LabelSubject
    judge: str
    model: str
    prompt: str
    values: FloatArray
    decision_threshold: float = 0.5
    descriptions: tuple[str, ...] = ()
    evidence: str = ""
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        axes = {LabelSubject.OUTCOME: 1, LabelSubject.MILESTONES: 2, LabelSubject.STEPS: 1}[self.subject]
        values = np.asarray(self.values, dtype=np.float32)
        if values.ndim != axes or not np.isfinite(values).all() or ((values < 0) | (values > 1)).any():
            raise ValueError(
                f"label of {self.episode_id} by {self.judge}: expected values in [0, 1] with {axes} axes for "
                f"{self.subject}, found shape {values.shape}"
            )
        object.__setattr__(self, "values", values)

    @property
    def outcome(self) -> float:
        """1.0 or 0.0, for a label of an outcome."""
        return float(self.values[0] >= self.decision_threshold)
