"""What planning did over the episodes of an evaluation, in numbers.

Pure but for reading the agents' states. Invariants: where agents were stuck is read off the recorded episodes, planned
or not, so that both can be compared; averages are over episodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from records.episodes import Trajectory
from replay.stuck import Stuck, stuck_events
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.settings import PlanningSettings


def planning_numbers(
    episodes: Sequence[Trajectory], folder: PlanFolder, settings: PlanningSettings
) -> dict[str, float]:
    """Return shares of episodes that were stuck at some point, events an episode, and seconds a decision.

    Of those that were planned, also re-plans, retries, questions and tokens an episode, and what all of it cost.
    """
    if not episodes:
        return {}
    events = [stuck_events(episode, epsilon=settings.epsilon, window=settings.window) for episode in episodes]
    kinds = [[how for _, how in found] for found in events]
    seconds = [step.policy_s for episode in episodes for step in episode.steps] or [0.0]
    numbers = {
        "stuck_share": _mean([bool(found) for found in kinds]),
        "cycle_share": _mean([Stuck.CYCLE in found for found in kinds]),
        "stalls": _mean([found.count(Stuck.STALL) for found in kinds]),
        "cycles": _mean([found.count(Stuck.CYCLE) for found in kinds]),
        "decision_s_p50": float(np.quantile(seconds, 0.5)),
        "decision_s_p95": float(np.quantile(seconds, 0.95)),
    }
    states = [state for episode in episodes if (state := folder.read(episode.episode_id)) is not None]
    return numbers | _of_states(states) if states else numbers


def _of_states(states: Sequence[PlanState]) -> dict[str, float]:
    numbers = {name: _mean([getattr(state, name) for state in states]) for name in ("replans", "retries")}
    if any(state.usage.questions for state in states):
        asked = ("questions", "thought", "input_tokens", "output_tokens")
        numbers |= {name: _mean([getattr(state.usage, name) for state in states]) for name in asked}
        numbers["cost_usd"] = sum(state.usage.cost_usd for state in states)
    return numbers


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
