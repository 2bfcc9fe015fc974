"""What a phase costs the learner: tokens through its models, operations, and hours at a rate.

Owns the arithmetic; it follows ``learner.trainer``. Imports no torch. A forward pass takes two operations a token for
each parameter but the embedding's and the output layer's, and two for each query's number and token looked back on. A
training pass counts as three forward passes, as one more with ``learner.recompute``, as one less with
``learner.adapters``: frozen weights have no gradient. Everything is counted at its most:
every episode with all its steps, every prompt at its limit, no head shared.
"""

from __future__ import annotations

from dataclasses import dataclass

from learner.algorithms import resolve
from learner.settings import LearnerSettings
from policy.model_size import ModelSize

ACHIEVED = 0.4
"""Share of a device's rate of plain matrix products that a phase reaches; ``benchmarks.learner`` measures it."""


@dataclass(frozen=True, slots=True)
class PhaseData:
    """Episodes of a phase at most: played in it, replayed from earlier ones, scored for that; ``steps`` of each.

    ``final_states``: whether the states after their last actions are recorded.
    """

    played: int
    replayed: int
    scored: int
    steps: int
    final_states: bool = False


@dataclass(frozen=True, slots=True)
class PhaseWork:
    """``tokens`` that models read in a phase, ``passes`` of them counted as forward passes, and ``operations``."""

    tokens: int
    passes: int
    operations: float

    def hours(self, rate: float) -> float:
        """Return the hours on a device that does ``rate`` operations a second in plain matrix products."""
        return self.operations / (rate * ACHIEVED) / 3600


def phase_work(settings: LearnerSettings, size: ModelSize, data: PhaseData, longest: int) -> PhaseWork:
    """Return the work of a phase whose samples, prompt and action together, have ``longest`` tokens."""
    algorithm = resolve(settings)
    training = 3 + settings.recompute - (settings.adapters.rank > 0)
    both = data.played + data.replayed
    read = data.steps * (data.scored + both * (2 if algorithm.reference == "warm_start" else 1))
    trained = data.steps * settings.actor.epochs * both
    asked = data.steps + (data.final_states and "potential" in algorithm.critics)
    for name in algorithm.critics:
        critic = settings.value if name == "value" else settings.potential
        read += asked * both
        learned = data.steps if name == "value" else asked
        trained += learned * critic.epochs * (both if critic.use_replay else data.played)
    passes = (read + training * trained) * longest
    inner = size.parameters - size.own_head - size.vocabulary * size.width
    return PhaseWork((read + trained) * longest, passes, passes * 2.0 * (inner + longest * size.queries))
