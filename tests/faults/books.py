"""Who played what, when, and how it ended: kept by a test beside the pool's own account, and compared with it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from environments.browser.owned_processes import MarkedProcess, marked_processes, process_mark
from records.episodes import Trajectory
from records.failures import Failure
from replay.buffer import ReplayBuffer
from rollout_workers.leases import Event, Lease
from rollout_workers.pool import RolloutPool
from rollout_workers.results import RolloutCounts, RolloutResult
from rollout_workers.spec import EpisodeSpec


@dataclass
class Books:
    """Plays a set of episodes once, with one accident on the way, and keeps account of every attempt.

    ``accident`` happens once, when ``after`` episodes are completed and others were handed out ``pause_s`` seconds
    ago, so that these have begun. With ``until_felt`` it happens again where it cost nothing (an episode that counts as
    being played may just have ended, or not have asked for its first page), once one that began later is completed.
    """

    pool: RolloutPool
    accident: Callable[[], None]
    after: int = 3
    pause_s: float = 0.5
    until_felt: bool = False
    happened: float = 0.0
    playing: int = 0
    events: list[tuple[float, Event, Lease, Failure | None]] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)

    def play(self, specs: list[EpisodeSpec]) -> RolloutResult:
        """Play the episodes; the account must balance and the accident must have hit something."""
        result = self.pool.run(specs, self._watch, self)
        assert self.playing > 0, "the accident came too late to hit an episode"
        self.require_balance(result, len(specs))
        return result

    def require_balance(self, result: RolloutResult, total: int) -> None:
        """Every lease ended once, every episode ended at most once, and the report says the same."""
        told = Counter(event for _, event, _, _ in self.events)
        assert told[Event.LEASE] == told[Event.COMPLETE] + told[Event.REQUEUE] + told[Event.FAIL] == result.attempts
        ended = Counter(lease.episode_id for _, event, lease, _ in self.events if event in (Event.COMPLETE, Event.FAIL))
        assert set(ended.values()) <= {1}
        assert told[Event.COMPLETE] == result.counts["completed"]
        assert result.counts["completed"] + result.counts["failed"] == result.counts["dispatched"]
        assert result.counts["dispatched"] + result.counts["not_dispatched"] == total

    def left_behind(self) -> list[MarkedProcess]:
        """Processes of the pool's workers that are alive some seconds after it was closed."""
        ends = time.monotonic() + 20
        while (left := [p for owner in self.owners for p in marked_processes(owner)]) and time.monotonic() < ends:
            time.sleep(0.1)
        return left

    def player(self) -> int:
        """Return the id of the ready worker that has the most to play; one that is ready may have nothing yet."""
        held: Counter[int] = Counter()
        for _, event, lease, _ in self.events:
            held[lease.holder] += 1 if event is Event.LEASE else -1
        ready = {worker: held[worker] for worker in self.pool.process_ids()}
        assert any(ready.values()), "no worker that is ready has anything to play"
        return max(ready, key=ready.__getitem__)

    def playing_process(self) -> int:
        """Return the process id of that worker."""
        return self.pool.process_ids()[self.player()]

    def say(self, row: str) -> None:
        """Print the row of the recovery matrix as it was seen; shown by ``pytest -s``."""
        failed = [at for at, _, _, failure in self.events if failure is not None and at >= self.happened]
        noticed = min(failed, default=self.happened)
        held = {lease.episode_id for at, event, lease, _ in self.events if event is Event.LEASE and at <= self.happened}
        ends = [at for at, event, lease, _ in self.events if event is Event.COMPLETE and lease.episode_id in held]
        print(
            f"{row}: noticed after {noticed - self.happened:.1f} s, all that were being played complete after "
            f"{max(ends) - self.happened:.1f} s, {len(failed)} attempts lost, {self.playing} were being played"
        )

    def _watch(self, counts: RolloutCounts) -> None:
        self.owners |= {mark for pid in self.pool.process_ids().values() if (mark := process_mark(pid))}
        due = not self.playing or (self.until_felt and not counts.incidents)
        if due and counts.completed >= self.after and counts.running:
            time.sleep(self.pause_s)
            self.playing, self.happened = counts.running, time.monotonic()
            self.after = counts.completed + counts.running + 1
            self.accident()

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        """Note an event of a lease; a ``rollout_workers.leases.Journal``."""
        self.events.append((time.monotonic(), event, lease, failure))

    def force(self) -> None:
        """Nothing outlives a test."""


def judged(shard_dir: str, result: RolloutResult) -> list[Trajectory]:
    """All episodes in the shards, which must be exactly those that the report counts."""
    buffer = ReplayBuffer(shard_dir)
    assert buffer.ids() == tuple(sorted(result.located))
    assert not buffer.scan.skipped
    return list(buffer.trajectories(buffer.ids()))


def outcomes(shard_dir: str, result: RolloutResult) -> list[float | None]:
    """The outcomes of all episodes in the shards."""
    return [trajectory.outcome for trajectory in judged(shard_dir, result)]
