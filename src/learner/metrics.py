"""What the parts of a phase report about themselves.

Owns these records. A number that does not exist is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from learner.arrays import Array
from learner.errors import NoBetterThanClock
from learner.statistics import Summary, pearson, summarise


@dataclass(frozen=True, slots=True)
class CriticMetrics:
    """One critic's training in a phase.

    ``loss`` is the mean of the last epoch. ``ratings`` (``auc`` of values against outcomes, ``kendall`` and
    ``spearman`` of potentials against progress labels, averaged over trajectories) rate answers that the critic gave
    in the first epoch before it had learned from the state in this phase (progressive validation). States of past
    phases, which ``replay.critic_phases`` brings, it learned from before: they flatter it a little.
    """

    states: int
    updates: int
    loss: float | None
    grad_norm: float | None
    tokens_per_s: float | None
    ratings: dict[str, float | None]

    @classmethod
    def of_parts(cls, parts: Sequence[CriticMetrics]) -> CriticMetrics:
        """Return the metrics of a critic of several parts: sums of what is counted, means over states of the rest."""
        if len(parts) == 1:
            return parts[0]

        def mean(of_part: Callable[[CriticMetrics], float | None]) -> float | None:
            found = [(value, part.states) for part in parts if (value := of_part(part)) is not None]
            return sum(value * count for value, count in found) / sum(n for _, n in found) if found else None

        names = dict.fromkeys(name for part in parts for name in part.ratings)
        return cls(
            states=sum(part.states for part in parts),
            updates=sum(part.updates for part in parts),
            loss=mean(lambda part: part.loss),
            grad_norm=mean(lambda part: part.grad_norm),
            tokens_per_s=mean(lambda part: part.tokens_per_s),
            ratings={name: mean(partial(_rating, name)) for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as a JSON-ready dict, the ratings beside the others."""
        own = asdict(self)
        ratings: dict[str, float | None] = own.pop("ratings")
        return own | ratings


def _rating(name: str, metrics: CriticMetrics) -> float | None:
    return metrics.ratings.get(name)


@dataclass(frozen=True, slots=True)
class RatioMetrics:
    """Asked against achieved: A / beta and log(pi / pi_ref) after the update, on a sample of the decisions.

    Of a loss with a clipped ratio pi_ref is the policy that the phase began with, whatever its penalty compares with.

    ``slope`` is that of the least-squares line of achieved on asked (1 = as asked, 0 = no relation) and ``r2`` the
    share of the achieved ratios' variance that this line explains,
    ``agreement`` the share of decisions whose log-ratio has the advantage's sign.
    """

    asked: Summary
    achieved: Summary
    slope: float | None
    correlation: float | None
    agreement: float | None
    achieved_positive: float | None
    achieved_negative: float | None
    r2: float | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Training against serving: |learner's - recorded| log-probability of sampled tokens, in nats.

    Both are at the temperature that the token was sampled at. The learner's are those of the phase's start, when its
    weights are the served ones, so that a gap is between the arithmetic of the two programs. ``reply`` is the mean over
    actions of |the gap summed over an action's tokens|: what a loss of whole actions takes for a change of the policy,
    and holds against its clip (None in records from before 2026-11-28).
    """

    mean: float
    max: float
    tokens: int
    reply: float | None = None

    @classmethod
    def between(
        cls, learners: Sequence[Array], recorded: Sequence[Array], chosen: npt.NDArray[np.bool_]
    ) -> Mismatch | None:
        """Compare the tokens (A,) of the ``chosen`` ones of N actions; None for no token."""
        pairs = [(learners[i], recorded[i]) for i in np.flatnonzero(chosen).tolist()]
        differences = [a.astype(np.float64) - b for a, b in pairs]
        gaps = np.abs(np.concatenate([np.zeros(0), *differences]))
        if not len(gaps):
            return None
        reply = float(np.mean([abs(of_action.sum()) for of_action in differences if len(of_action)]))
        return cls(float(gaps.mean()), float(gaps.max()), len(gaps), reply)


@dataclass(frozen=True, slots=True)
class ActorMetrics:
    """The policy update of a phase; ``entropy`` is the mean -log pi_ref per action token, in nats.

    ``mismatch`` is over the phase's own decisions among those learned from; ``negative_share_of_successes`` is the
    share of decisions in successful trajectories that are pushed down.
    """

    decisions: int
    updates: int
    loss: float | None
    first_loss: float | None
    grad_norm: float | None
    entropy: float | None
    mismatch: Mismatch | None
    advantage: Summary | None
    shaping: Summary | None
    negative_share: float | None
    negative_share_of_successes: float | None
    ratio: RatioMetrics | None
    tokens_per_s: float | None


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Groups of a phase: of ``groups``, ``equal`` earned the same throughout and are skipped with ``skipped`` steps.

    Of the equal ones ``single`` have one member left, its others having no verdict.
    """

    groups: int
    equal: int
    single: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The potential P of a phase's own episodes; None where a number does not exist.

    ``final_states``: share of episodes whose state after the last action is recorded. There it is the last state and
    the last action a step; elsewhere the last state is the one before that action, of which nothing is seen.
    ``auc_outcome``: AUC of P at the last state for success; ``auc_outcome_clock``: of the step number over the expert's
    there; ``auc_outcome_template``: of the mean outcome of that half of the template's which it is not in, over
    pairs within a half;
    ``auc_outcome_within``: of P at the last state, over pairs of episodes of the same template.
    ``auc_steps``: AUC of P(s_{t+1}) - P(s_t) for steps within failures that reach a milestone; ``auc_steps_clock``: of
    the clock's.
    ``clock_rank``: Spearman's correlation of P with the step number, the mean over failures.
    ``positive_share_of_failures``: share of decisions in failed episodes with a positive advantage.
    """

    auc_outcome: float | None
    auc_outcome_clock: float | None
    auc_outcome_template: float | None
    auc_steps: float | None
    auc_steps_clock: float | None
    clock_rank: float | None
    positive_share_of_failures: float | None
    final_states: float | None = None
    auc_outcome_within: float | None = None

    def require_better_than_clock(self) -> None:
        """Raise ``NoBetterThanClock`` where both AUCs of steps exist and the potential's is not the larger one."""
        if self.auc_steps is not None and self.auc_steps_clock is not None and self.auc_steps <= self.auc_steps_clock:
            raise NoBetterThanClock(
                "learner.better_than_clock: expected a potential whose rise tells steps that reach a milestone from "
                f"others better than a clock does (AUC {self.auc_steps_clock:.3f} in failures), found "
                f"{self.auc_steps:.3f}: let all episodes teach it (learner.potential_data.labels: all), take recorded "
                "milestones (learner.potential_source: milestones), or set this to false"
            )


@dataclass(frozen=True, slots=True)
class CloneUpdate:
    """What cloning reports; ``epochs`` may be a fraction.

    ``loss`` is that of the last tenth, in nats per action token; None where there were no updates.
    """

    loss: float | None
    updates: int
    epochs: float
    seconds: float


@dataclass(frozen=True, slots=True)
class CriticsUpdate:
    """What ``Learner.update_critics`` reports: each critic's metrics, and the seconds each one took."""

    critics: dict[str, CriticMetrics]
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON-ready nested dicts, by critic."""
        return {**{name: metrics.to_dict() for name, metrics in self.critics.items()}, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class ActorUpdate:
    """What ``Learner.update_actor`` reports, with the phase's data. ``seconds`` maps parts of it to seconds.

    ``groups`` are None where the algorithm compares none, ``mechanism`` where no potential shapes its rewards.
    """

    phase: int
    algorithm: str
    rollouts: int
    replayed: int
    left_out: int
    success_rate: float | None
    actor: ActorMetrics
    seconds: dict[str, float]
    groups: GroupCounts | None = None
    mechanism: Mechanism | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON-ready nested dicts."""
        return asdict(self)


def ratio_metrics(asked: Array, achieved: Array) -> RatioMetrics | None:
    """Compare A / beta (N,) with the achieved log-ratios (N,); None for no decisions."""
    asked_summary, achieved_summary = summarise(asked), summarise(achieved)
    if asked_summary is None or achieved_summary is None:
        return None
    x = np.asarray(asked, dtype=np.float64) - np.mean(asked, dtype=np.float64)
    spread = float((x**2).sum()) if np.ptp(asked) else 0.0
    up, down = asked > 0, asked < 0
    signed = up | down
    correlation = pearson(asked, achieved)
    return RatioMetrics(
        asked=asked_summary,
        achieved=achieved_summary,
        slope=float((x * achieved).sum() / spread) if spread > 0 else None,
        correlation=correlation,
        agreement=float(np.mean(np.sign(achieved[signed]) == np.sign(asked[signed]))) if signed.any() else None,
        achieved_positive=float(np.mean(achieved[up])) if up.any() else None,
        achieved_negative=float(np.mean(achieved[down])) if down.any() else None,
        r2=None if correlation is None else correlation**2,
    )
