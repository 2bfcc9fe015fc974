"""How well a run's critics rank held-out states: progress for the potential critic, outcome for the value critic.

Owns the two measures of a finished run's last checkpoint on the episodes of its last evaluation, none of
which any critic was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.runs import RecordedRun
from learner.statistics import Array, auc, kendall, spearman
from learner.trainer import Learner
from records.episodes import FloatArray, Trajectory
from replay.progress import trajectory_progress


def critic_quality(run: RecordedRun) -> dict[str, dict[str, Any]]:
    """Return ``{"potential": …, "value": …}`` of the run's last checkpoint, as far as its algorithm has them."""
    learner = Learner(run.recipe.learner, run.model)
    learner.load(run.last_checkpoint)
    episodes = [t for t in run.evaluation(run.phases) if t.outcome is not None]
    successes = [t for t in episodes if t.success]
    quality = {}
    if "potential" in learner.critics:
        quality["potential"] = potential_quality(successes, learner.ask("potential", successes))
    if "value" in learner.critics:
        quality["value"] = value_quality(episodes, learner.ask("value", episodes))
    return quality


def potential_quality(successes: Sequence[Trajectory], potentials: Sequence[FloatArray]) -> dict[str, Any]:
    """Return rank correlations of P with true progress, averaged over successes of two states or more.

    A success over which P is constant counts as 0, not as missing; ``constant`` says how many there were.
    ``pooled`` is over all states of all successes at once.
    """
    labels = [trajectory_progress(trajectory)[:-1] for trajectory in successes]
    pairs = [(p, t) for p, t in zip(potentials, labels, strict=True) if len(t) > 1]
    kendalls = [kendall(p, t) for p, t in pairs]
    predicted, true = _joined(potentials), _joined(labels)
    return {
        "successes": len(pairs),
        "constant": sum(k is None for k in kendalls),
        "kendall": _mean_with_zeros(kendalls),
        "spearman": _mean_with_zeros([spearman(p, t) for p, t in pairs]),
        "pooled_spearman": spearman(predicted, true) if labels else None,
        "mean_absolute_error": float(np.abs(predicted - true).mean()) if labels else math.nan,
    }


def value_quality(episodes: Sequence[Trajectory], values: Sequence[FloatArray]) -> dict[str, Any]:
    """Return how well V separates later success from failure: over all states, over first and over last states."""
    solved = np.asarray([trajectory.success for trajectory in episodes], dtype=np.float64)
    of_states = np.repeat(solved, [len(v) for v in values])
    return {
        "episodes": len(episodes),
        "solved": int(solved.sum()),
        "auc": auc(_joined(values), of_states),
        "auc_first_state": auc(np.asarray([v[0] for v in values]), solved),
        "auc_last_state": auc(np.asarray([v[-1] for v in values]), solved),
    }


def _mean_with_zeros(correlations: Sequence[float | None]) -> float:
    return float(np.mean([found or 0.0 for found in correlations])) if correlations else math.nan


def _joined(arrays: Sequence[Any]) -> Array:
    return np.concatenate([np.asarray(array, dtype=np.float64) for array in arrays]) if arrays else np.zeros(0)
