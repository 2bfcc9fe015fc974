"""What the learner raises to whoever called it; free of torch, so that the driver can tell it."""

from __future__ import annotations


class CheckpointError(Exception):
    """A checkpoint is absent, incomplete, damaged, or of another model."""


class RankError(Exception):
    """Another rank of the learner failed; the message says which, and how."""


class NoBetterThanClock(ValueError):
    """The potential tells no better than a clock which steps reach a milestone."""
