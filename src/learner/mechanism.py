"""Whether the shaping does what it is for: numbers that can fail, each beside what needs no critic.

Owns how ``learner.metrics.Mechanism`` is worked out, over a phase's own episodes. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from learner.advantages import Advantages
from learner.arrays import Array, joined
from learner.metrics import Mechanism
from learner.phase_batch import PhaseBatch
from learner.potentials import clock
from learner.statistics import auc, mean_or_none, spearman
from records.episodes import Trajectory
from replay.progress import reached_after


def mechanism_of(batch: PhaseBatch, potentials: Sequence[Array], advantages: Advantages) -> Mechanism:
    """Return the numbers for ``potentials``, an array for each of the batch's trajectories.

    It is (T,), or (T + 1,) where the final state is recorded; clock and milestones are looked at in the same states.
    """
    rollouts = batch.rollouts
    known = [np.asarray(p, dtype=np.float64) for _, p in zip(rollouts, potentials, strict=False)]
    own = [(t, p, clock(t)[: len(p)]) for t, p in zip(rollouts, known, strict=True)]
    outcomes = np.asarray([t.outcome for t in rollouts], dtype=np.float64)
    failures = [(t, p, c) for t, p, c in own if not t.success]
    reaches = joined([_reaching(t)[: len(p) - 1] for t, p, _ in failures])
    failed = batch.steps(batch.is_fresh & ~batch.succeeded)
    at_end = np.asarray([p[-1] for _, p, _ in own])
    return Mechanism(
        auc_outcome=auc(at_end, outcomes),
        auc_outcome_within=_auc_within(at_end, outcomes, [t.template for t in rollouts]),
        auc_outcome_clock=auc(np.asarray([c[-1] for _, _, c in own]), outcomes),
        auc_outcome_template=_auc_of_other_halves(rollouts, outcomes),
        auc_steps=auc(joined([_rises(p) for _, p, _ in failures]), reaches),
        auc_steps_clock=auc(joined([_rises(c) for _, _, c in failures]), reaches),
        clock_rank=mean_or_none(
            [spearman(p, np.arange(len(p), dtype=np.float64)) for _, p, _ in failures if len(p) > 1]
        ),
        positive_share_of_failures=float(np.mean(advantages.steps[failed] > 0)) if failed.any() else None,
        final_states=float(np.mean([len(p) > len(t.steps) for t, p, _ in own])) if own else None,
    )


def _auc_within(scores: Array, outcomes: Array, templates: Sequence[str]) -> float | None:
    """Return the AUC over pairs of one template each, of all pairs; None where no template has both outcomes.

    What tells templates apart alone, as their difficulty does, is worth nothing here.
    """
    names = np.asarray(templates, dtype=np.str_)
    return _auc_over_pairs((scores[names == name], outcomes[names == name]) for name in np.unique(names))


def _auc_over_pairs(parts: Iterable[tuple[Array, Array]]) -> float | None:
    """Return the AUC over pairs of a success and a failure of one part, of all; None where no part has both.

    A part is scores (N,) and outcomes (N,).
    """
    won, pairs = 0.0, 0
    for scores, outcomes in parts:
        found = auc(scores, outcomes)
        if found is not None:
            successes = int((outcomes > 0.5).sum())
            of_part = successes * (len(outcomes) - successes)
            won, pairs = won + found * of_part, pairs + of_part
    return won / pairs if pairs else None


def _rises(potentials: Array) -> Array:
    """Return the differences from state to state, without what rounding adds: a clock's are all the same."""
    return np.round(np.diff(potentials), 9)


def _reaching(trajectory: Trajectory) -> Array:
    """Return (T,) whether each action reached a milestone."""
    counts = reached_after(trajectory).sum(axis=1)
    return np.asarray(np.diff(counts) > 0, dtype=np.float64)


def _auc_of_other_halves(trajectories: Sequence[Trajectory], outcomes: Array) -> float | None:
    """Return the AUC of the mean outcome of that half of a template's episodes which each is not in.

    With its own outcome in it the mean would know the answer; with that alone left out it would be lower for a success
    than for a failure beside it, as it is where episodes of both halves are compared. So the pairs are those within a
    half, of all templates; None where no half has both outcomes. A template's only episode has the mean of the other
    half of all, or 0.
    """
    names = np.asarray([trajectory.template for trajectory in trajectories], dtype=np.str_)
    order = np.asarray([zlib.crc32(trajectory.episode_id.encode()) for trajectory in trajectories])
    second = np.zeros(len(outcomes), dtype=np.bool_)
    for name in np.unique(names):
        mine = np.flatnonzero(names == name)
        second[mine[np.argsort(order[mine], kind="stable")][1::2]] = True
    parts = []
    for half, other in ((~second, second), (second, ~second)):
        means = {name: outcomes[other & (names == name)] for name in np.unique(names)}
        known = [means[name] if len(means[name]) else outcomes[other] for name in names[half]]
        parts.append((np.asarray([one.mean() if len(one) else 0.0 for one in known]), outcomes[half]))
    return _auc_over_pairs(parts)
