"""What the pool believes about each worker: a pure state with times as arguments.

Owns ``Member``. Invariants: only a ready member gets episodes; a member that was never ready may
just be waiting for resources and is not taken for hung. Must not import ray.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rollout_workers.settings import RolloutSettings

_HEARTBEAT_S = 1.0
"""Fixed: a pace within ``rollout.hang_timeout_s``."""


class MemberState(StrEnum):
    """Where a worker is: being built, playing, or dead until Ray or the pool brings it back."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"


class Care(StrEnum):
    """What a member needs now."""

    NOTHING = "nothing"
    HEARTBEAT = "heartbeat"
    START = "start"
    KILL = "kill"
    REPLACE = "replace"


@dataclass(slots=True)
class Member:
    """One worker as seen from the driver; times are monotonic seconds. A ``gone`` one will not be brought back.

    ``node`` and ``process`` are Ray's ids of the node that it was last started on, and of its process there.
    """

    name: str
    since: float
    state: MemberState = MemberState.STARTING
    last_seen: float = 0.0
    last_asked: float = 0.0
    asked_to_start: bool = False
    was_ready: bool = False
    gone: bool = False
    pid: int = 0
    node: str = ""
    process: str = ""

    def enter(self, state: MemberState, now: float) -> None:
        """Move to ``state``."""
        self.state, self.since, self.asked_to_start = state, now, False
        if state is MemberState.READY:
            self.was_ready = True
            self.last_seen = self.last_asked = now

    def care(self, now: float, settings: RolloutSettings) -> Care:
        """Say what to do for this member now."""
        waited = now - self.since
        if self.state is MemberState.DOWN:
            return Care.REPLACE if self.gone or waited > settings.replace_after_s else Care.NOTHING
        if self.state is MemberState.STARTING:
            if not self.asked_to_start:
                return Care.START if waited >= 0 else Care.NOTHING
            hung = self.was_ready and waited > settings.start_timeout_s
            return Care.KILL if hung else Care.NOTHING
        if now - self.last_seen > settings.hang_timeout_s:
            return Care.KILL
        return Care.HEARTBEAT if now - self.last_asked >= _HEARTBEAT_S else Care.NOTHING
