"""What one phase learns from: its judged trajectories, and what the critics said of them.

Owns ``PhaseBatch``, over which credit is assigned and data are chosen. Invariants: every trajectory has a verdict and
at least one step; each episode is there once, the phase's own before the replayed ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from learner.dataset import with_verdict
from records.episodes import FloatArray, Trajectory

_Number = TypeVar("_Number", bound=np.generic)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PhaseBatch:
    """K trajectories with N steps: the first ``fresh`` were played in phase number ``phase``, the others are replayed.

    ``replayed_steps`` says, for a filter per step, which step indices of a replayed episode may be learned from;
    episodes not named are used whole. ``answers`` holds by critic one array per trajectory, a number a state: (T,),
    or (T + 1,) where its final state is recorded and a critic learns it.
    """

    trajectories: tuple[Trajectory, ...]
    fresh: int
    phase: int
    replayed_steps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    answers: Mapping[str, Sequence[FloatArray]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rollouts: Sequence[Trajectory],
        replayed: Sequence[Trajectory],
        phase: int,
        replayed_steps: Mapping[str, Sequence[int]] | None = None,
    ) -> PhaseBatch:
        """Return the judged rollouts and, of the judged replayed trajectories, those that are not among them."""
        own = with_verdict(rollouts)
        ids = {trajectory.episode_id for trajectory in own}
        others = [trajectory for trajectory in with_verdict(replayed) if trajectory.episode_id not in ids]
        return cls((*own, *others), len(own), phase, replayed_steps or {})

    @property
    def rollouts(self) -> tuple[Trajectory, ...]:
        """The trajectories of the phase itself."""
        return self.trajectories[: self.fresh]

    @property
    def is_fresh(self) -> Mask:
        """Whether each trajectory (K,) is of the phase itself."""
        return np.arange(len(self.trajectories)) < self.fresh

    @property
    def succeeded(self) -> Mask:
        """Whether each trajectory (K,) solved its task."""
        return np.asarray([trajectory.success for trajectory in self.trajectories], dtype=np.bool_)

    @property
    def judged_steps(self) -> list[FloatArray]:
        """What a judge says of the steps: one array (T,) per trajectory; raise ``ValueError`` where one is missing."""
        for trajectory in self.trajectories:
            if any(step.reward is None for step in trajectory.steps):
                raise ValueError(
                    f"episode {trajectory.episode_id}: expected a judge's word on each step, found none; name the "
                    "judge in replay.step_rewards"
                )
        return [np.asarray([step.reward for step in t.steps], dtype=np.float32) for t in self.trajectories]

    @property
    def released(self) -> Mask:
        """Whether the replay filter lets each step (N,) be learned from."""
        kept: list[bool] = []
        for trajectory in self.trajectories:
            wanted = self.replayed_steps.get(trajectory.episode_id)
            kept.extend(wanted is None or t in wanted for t in range(len(trajectory.steps)))
        return np.asarray(kept, dtype=np.bool_)

    def steps(self, per_trajectory: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return for each step (N,) what is said of its trajectory (K,)."""
        lengths = np.asarray([len(trajectory.steps) for trajectory in self.trajectories], dtype=np.int64)
        return np.repeat(per_trajectory, lengths)

    def with_answers(self, answers: Mapping[str, Sequence[FloatArray]]) -> PhaseBatch:
        """Return the same batch with the critics' answers."""
        return replace(self, answers=answers)
