"""A whole phase of the learner, as a run asks for its two halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from learner.metrics import ActorMetrics, ActorUpdate, CriticMetrics
from learner.trainer import Learner
from records.episodes import Trajectory


class Phase(NamedTuple):
    critics: dict[str, CriticMetrics]
    actor: ActorMetrics
    update: ActorUpdate


def run_phase(
    learner: Learner,
    rollouts: Sequence[Trajectory],
    replayed: Sequence[Trajectory],
    phase_index: int,
    replayed_steps: Mapping[str, Sequence[int]] | None = None,
) -> Phase:
    """Train the critics and then the actor on the same data."""
    critics = learner.update_critics(rollouts, replayed, phase_index)
    update = learner.update_actor(rollouts, replayed, phase_index, replayed_steps=replayed_steps)
    return Phase(critics.critics, update.actor, update)
