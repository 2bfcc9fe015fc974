"""Labels: what a judge says of an episode after it was played, as a record of its own.

Owns ``Label``, and ``misfit``, which holds one against its episode. Invariants: a label is immutable and names who
said it (judge, model, prompt); it never changes the episode, whose shard stays as it was written; several judges may
label the same episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from records.episodes import FloatArray, Trajectory

BoolArray = npt.NDArray[np.bool_]


class LabelSubject(StrEnum):
    """What a label is about."""

    OUTCOME = "outcome"
    MILESTONES = "milestones"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Label:
    """One judge's word on one episode of T steps.

    ``values`` are in [0, 1] and float32. For an outcome (1,): the probability of success; it counts as a success from
    ``decision_threshold`` on, that value included. The threshold is the judge's own and goes with the label: another
    one makes other labels. For milestones (T + 1, K): whether each of K milestones is reached before each
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
        values = np.asarray(self.values, dtype=np.float32)
        fits = values.shape == (1,) if self.subject is LabelSubject.OUTCOME else values.ndim == _AXES[self.subject]
        if not fits or not np.isfinite(values).all() or ((values < 0) | (values > 1)).any():
            raise ValueError(
                f"label of {self.episode_id} by {self.judge}: expected values in [0, 1] with {_AXES[self.subject]} "
                f"axes for {self.subject}, found shape {values.shape} and values {values.ravel()[:3].tolist()}"
            )
        if not 0 <= self.decision_threshold <= 1:
            raise ValueError(
                f"label of {self.episode_id} by {self.judge}: expected a decision threshold in [0, 1], found "
                f"{self.decision_threshold}"
            )
        object.__setattr__(self, "values", values)

    @property
    def decided(self) -> BoolArray:
        """Whether each of ``values`` reaches the threshold, in the same shape."""
        return np.asarray(self.values >= np.float32(self.decision_threshold))

    @property
    def outcome(self) -> float:
        """1.0 or 0.0, for a label of an outcome."""
        return float(self.decided[0])


_AXES = {LabelSubject.OUTCOME: 1, LabelSubject.MILESTONES: 2, LabelSubject.STEPS: 1}


def misfit(label: Label, episode: Trajectory, subject: LabelSubject) -> str:
    """Return why ``label`` is none of ``subject`` on ``episode``, or an empty text."""
    if label.episode_id != episode.episode_id or label.subject is not subject:
        return (
            f"expected a label of {subject} on {episode.episode_id}, found one of {label.subject} on {label.episode_id}"
        )
    count, found = len(episode.steps), label.values.shape
    if subject is LabelSubject.STEPS and found != (count,):
        return f"expected one value for each of {count} steps, found {found[0]}"
    if subject is LabelSubject.MILESTONES and found != (count + 1, len(label.descriptions)):
        return (
            f"expected {count + 1} rows for {count} steps and a column for each of {len(label.descriptions)} "
            f"descriptions, found {found}"
        )
    return ""
