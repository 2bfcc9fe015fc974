"""Whether the shaping does what it is for: numbers that can fail, each beside what needs no critic.

Owns how ``learner.metrics.Mechanism`` is worked out, over a phase's own episodes. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from learner.advantages import Advantages, Array
from learner.metrics import Mechanism
from learner.phase_batch import PhaseBatch
from learner.potentials import clock
from learner.statistics import auc, mean_or_none, spearman
from learner.step_totals import reached_after
from records.episodes import Trajectory


def mechanism_of(batch: PhaseBatch, potentials: Sequence[Array], advantages: Advantages) -> Mechanism:
    """Return the numbers for ``potentials``, an array (T,) for each of the batch's trajectories."""
    own = [(t, np.asarray(p, dtype=np.float64)) for t, p in zip(batch.rollouts, potentials, strict=False)]
    outcomes = np.asarray([t.outcome for t, _ in own], dtype=np.float64)
    failures = [(t, p) for t, p in own if not t.success]
    reaches = _joined([_reaching(t) for t, _ in failures])
    failed = batch.steps(batch.is_fresh & ~batch.succeeded)
    return Mechanism(
        auc_outcome=auc(np.asarray([p[-1] for _, p in own]), outcomes),
        auc_outcome_clock=auc(np.asarray([clock(t)[-1] for t, _ in own]), outcomes),
        auc_outcome_template=auc(_means_of_others([t for t, _ in own], outcomes), outcomes),
        auc_steps=auc(_joined([np.diff(p) for _, p in failures]), reaches),
        auc_steps_clock=auc(_joined([np.diff(clock(t)) for t, _ in failures]), reaches),
        clock_rank=mean_or_none([spearman(p, np.arange(len(p), dtype=np.float64)) for _, p in failures if len(p) > 1]),
        positive_share_of_failures=float(np.mean(advantages.steps[failed] > 0)) if failed.any() else None,
    )


def _reaching(trajectory: Trajectory) -> Array:
    """Return (T - 1,) whether each action but the last reached a milestone: what came of that one, P does not see."""
    counts = reached_after(trajectory)[:-1].sum(axis=1)
    return np.asarray(np.diff(counts) > 0, dtype=np.float64)


def _means_of_others(trajectories: Sequence[Trajectory], outcomes: Array) -> Array:
    """Return for each trajectory the mean outcome of its template's others; of all others where it has none."""
    names = np.asarray([trajectory.template for trajectory in trajectories], dtype=np.str_)
    means = np.zeros(len(outcomes), dtype=np.float64)
    for i, name in enumerate(names):
        others = (names == name) & (np.arange(len(names)) != i)
        if not others.any():
            others = np.arange(len(names)) != i
        means[i] = outcomes[others].mean() if others.any() else 0.0
    return means


def _joined(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.zeros(0), *arrays])
