"""Rewards of single steps that are wholes of their own, the outcome in each: what step-level groups compare.

Owns ADMIRE's asymmetric credit (ADMIRE eq. 10 and 11, section 3.3) and its two baselines. Pure; one row per action.
"""

from __future__ import annotations

import numpy as np

from learner.arrays import Array
from learner.settings import LearnerSettings
from records.episodes import Trajectory
from replay.progress import hit_in_order, reached_after


def outcome_totals(trajectory: Trajectory, signal: Array, settings: LearnerSettings, phase: int) -> Array:
    """Return (T,) outcome + eta * format_t, with format_t = -1 where the step was no action."""
    unparsed = np.asarray([step.parse_error is not None for step in trajectory.steps], dtype=np.float64)
    return np.asarray(float(trajectory.outcome or 0.0) - settings.rewards.format_weight * unparsed, dtype=np.float64)


def process_totals(trajectory: Trajectory, signal: Array, settings: LearnerSettings, phase: int) -> Array:
    """Return (T,) ``outcome_totals`` + the judged weight * ``signal`` (T,), a judge's word on each step."""
    judged = settings.rewards.judged_weight * np.asarray(signal, dtype=np.float64)
    return np.asarray(outcome_totals(trajectory, signal, settings, phase) + judged, dtype=np.float64)


def admire_totals(trajectory: Trajectory, signal: Array, settings: LearnerSettings, phase: int) -> Array:
    """Return (T,) ``outcome_totals`` + lambda_0 * decay^phase * R_mil (ADMIRE section 3.3)."""
    own = settings.rewards.admire
    weight = own.weight * own.decay**phase
    return np.asarray(
        outcome_totals(trajectory, signal, settings, phase) + weight * milestone_rewards(trajectory, settings),
        dtype=np.float64,
    )


def milestone_rewards(trajectory: Trajectory, settings: LearnerSettings) -> Array:
    """Return R_mil (T,): r_mil at the hits of a success (eq. 10), k / K and zeta r_mil more in a failure (eq. 11).

    r_mil is ``Step.similarity``. A trajectory without milestones has none to reach: 0.
    """
    own = settings.rewards.admire
    reached = reached_after(trajectory)
    if reached.shape[1] == 0:
        return np.zeros(len(trajectory.steps))
    counts = hit_in_order(reached)
    hits = np.where(np.diff(counts) > 0, [step.similarity for step in trajectory.steps], 0.0)
    held = counts[1:] if own.base == "so_far" else np.full(len(hits), counts[-1])
    base = held / reached.shape[1]
    if trajectory.success:
        return np.asarray(hits + (base if own.base_of_successes else 0.0), dtype=np.float64)
    return np.asarray(own.hit_bonus * hits + (base if own.base_of_failures else 0.0), dtype=np.float64)
