"""When an agent is stuck: no progress over a window of steps, or a cycle of actions and states.

Owns both rules; what a cycle is, ``records.cycles`` says. Pure: who watches a live episode and who reads a recorded one
find the same events. Invariants: after an event both rules begin anew; without milestones there is no progress to miss,
and only cycles count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from records.cycles import bare_action, cycle_at_end, state_hash
from records.episodes import Trajectory

EPSILON = 0.02
"""Progress below which a window of steps has brought nothing; 1 is the whole task."""
WINDOW = 3
"""Steps in which progress is expected."""

_CLOCKS = re.compile(
    r"\d{4}-\d\d-\d\dt\d\d:\d\d(:\d\d)?\S*|\b\d{1,2}:\d\d(:\d\d)?\b|\b\d+ (second|minute|hour)s? ago\b"
)
_ROUNDS = 2
"""Times in a row that the same moves make a cycle: whoever plays is told at the second, before more steps are lost."""


class Stuck(StrEnum):
    """How an agent is stuck."""

    STALL = "stall"
    CYCLE = "cycle"


@dataclass(frozen=True, slots=True)
class Move:
    """One decision: the ``state`` it was made in, the ``action``, and the progress in [0, 1] before it (None: unknown).

    State and action are what ``state_key`` and ``records.cycles.bare_action`` return.
    """

    state: str
    action: str
    progress: float | None


def state_key(url: str, observation: str) -> str:
    """Return a hash of a page; letter case, white space and what clocks say make no difference."""
    return state_hash(url, " ".join(_CLOCKS.sub("0:00", observation.casefold()).split()))


def stuck(
    moves: Sequence[Move], progress: float | None, *, epsilon: float = EPSILON, window: int = WINDOW
) -> Stuck | None:
    """Return how an agent is stuck after ``moves``, those since the last event; ``progress`` is what it has now."""
    if cycle_at_end([(move.state, move.action) for move in moves], _ROUNDS, longest=max(1, len(moves))):
        return Stuck.CYCLE
    before = moves[-window].progress if len(moves) >= window else None
    if before is None or progress is None:
        return None
    return Stuck.STALL if progress - before < epsilon else None


def share_reached(milestones: Sequence[bool]) -> float | None:
    """Return the share of milestones (K,) that are reached; None where there are none."""
    return sum(milestones) / len(milestones) if milestones else None


def stuck_events(episode: Trajectory, *, epsilon: float = EPSILON, window: int = WINDOW) -> list[tuple[int, Stuck]]:
    """Return where a recorded episode's agent was stuck: the index of the step that followed, and how.

    An episode that ended without an exit is looked at after its last step too.
    """
    moves = [Move(state_key(s.url, s.observation), bare_action(s.action_text), share_reached(s.milestones))
             for s in episode.steps]  # fmt: skip
    progress = [move.progress for move in moves] + [share_reached(episode.final_milestones)]
    last = len(moves) if episode.answer is not None else len(moves) + 1
    events: list[tuple[int, Stuck]] = []
    start = 0
    for index in range(1, last):
        found = stuck(moves[start:index], progress[index], epsilon=epsilon, window=window)
        if found:
            events.append((index, found))
            start = index
    return events
