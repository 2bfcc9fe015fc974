"""Who is playing which episode: a pure ledger of leases, without clocks, tasks or clients.

Owns the life of an episode between being asked for and being accounted for. Invariants: an episode
is in exactly one state; it moves only along ``TRANSITIONS``; it is leased to one holder at a time
and at most ``max_attempts`` times, not counting those that were handed back; only the holder of the current lease
can complete or fail it, so a late or repeated answer changes nothing; a completed or failed episode never moves again.
Time is always an argument. A turn costs what happens in it: nothing here looks at every episode but ``failures`` and
``abandon``. Must not import ray or asyncio.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Protocol

from records.failures import Failure, FailureKind


class EpisodeState(StrEnum):
    """Where an episode is."""

    PENDING = "pending"
    LEASED = "leased"
    COMPLETED = "completed"
    FAILED = "failed"


class Event(StrEnum):
    """What can happen to an episode."""

    LEASE = "lease"
    COMPLETE = "complete"
    REQUEUE = "requeue"
    FAIL = "fail"


TRANSITIONS: Mapping[tuple[EpisodeState, Event], EpisodeState] = MappingProxyType(
    {
        (EpisodeState.PENDING, Event.LEASE): EpisodeState.LEASED,
        (EpisodeState.LEASED, Event.COMPLETE): EpisodeState.COMPLETED,
        (EpisodeState.LEASED, Event.REQUEUE): EpisodeState.PENDING,
        (EpisodeState.LEASED, Event.FAIL): EpisodeState.FAILED,
        # Only ``abandon`` does this, to an episode that waits for another attempt when the run stops.
        (EpisodeState.PENDING, Event.FAIL): EpisodeState.FAILED,
    }
)

RETRYABLE = frozenset({FailureKind.INFRA, FailureKind.POLICY, FailureKind.JUDGE})
"""A task that cannot be played stays so; the other kinds may pass."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to play one episode once: ``attempt`` counts from 1, ``holder`` is a worker's id."""

    episode_id: str
    attempt: int
    holder: int


OnEvent = Callable[[Event, Lease, Failure | None], None]
"""Is told of every event of a lease, in order, with the failure that ended an attempt."""


class Journal(Protocol):
    """Writes down every event of a lease; also an ``OnEvent``."""

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        """Write down an event."""
        ...

    def force(self) -> None:
        """Make what was written down durable: before a lease is sent, and before anything counts on its end."""
        ...


class NoJournal:
    """Nobody writes it down."""

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        """Nothing is written."""

    def force(self) -> None:
        """Nothing was written."""


no_journal = NoJournal()


@dataclass(slots=True)
class _Entry:
    place: int
    state: EpisodeState = EpisodeState.PENDING
    attempts: int = 0
    excused: int = 0
    lease: Lease | None = None
    failure: Failure | None = None

    def move(self, event: Event) -> None:
        target = TRANSITIONS.get((self.state, event))
        if target is None:
            raise ValueError(f"an episode in state {self.state!r} cannot {event!r}; see leases.TRANSITIONS")
        self.state = target
        if target is not EpisodeState.LEASED:
            self.lease = None


class EpisodeLedger:
    """Accounts for every episode of one run exactly once."""

    def __init__(
        self,
        episode_ids: Iterable[str],
        *,
        max_attempts: int,
        retry_delay_s: float = 0.0,
        journal: OnEvent = no_journal,
    ) -> None:
        """Take episodes in the order in which they shall be handed out.

        A failed attempt waits ``retry_delay_s * 2**(attempt - 1)`` seconds for the next, so that an
        outage of some seconds does not use up all attempts at once. Raises ``ValueError`` on
        repeated ids, no attempts or a negative delay.
        """
        ids = list(episode_ids)
        self._entries = {episode_id: _Entry(place) for place, episode_id in enumerate(ids)}
        if len(self._entries) != len(ids):
            repeated = sorted(episode_id for episode_id, times in Counter(ids).items() if times > 1)
            raise ValueError(f"episode ids must be unique; repeated: {', '.join(repeated[:5])}")
        if max_attempts < 1 or retry_delay_s < 0:
            raise ValueError(f"need max_attempts >= 1 and retry_delay_s >= 0, found {max_attempts}, {retry_delay_s}")
        self._max_attempts = max_attempts
        self._retry_delay_s = retry_delay_s
        self._journal = journal
        self._ids = ids
        # Places of the episodes that are ready, the first one last: it is taken from the end.
        self._ready = list(range(len(ids) - 1, -1, -1))
        self._delayed: list[tuple[float, int]] = []
        self._held: dict[int, dict[str, Lease]] = {}
        self._counts = dict.fromkeys(EpisodeState, 0) | {EpisodeState.PENDING: len(ids)}
        self._dispatched = self._attempts = self._late_answers = 0

    def pending(self, now: float = 0.0) -> Iterator[str]:
        """Yield the episodes that are pending and whose retry delay is over, in order.

        Those that were yielded may be leased meanwhile.
        """
        while self._delayed and self._delayed[0][0] <= now:
            insort(self._ready, heapq.heappop(self._delayed)[1], key=_backwards)
        for place in reversed(self._ready):
            yield self._ids[place]

    def lease(self, holder: int, count: int, now: float = 0.0) -> list[Lease]:
        """Hand out up to ``count`` episodes that are pending and whose retry delay is over."""
        return [self.lease_one(holder, episode_id) for episode_id in list(islice(self.pending(now), count))]

    def lease_one(self, holder: int, episode_id: str) -> Lease:
        """Hand out one episode; raise ``ValueError`` where it is not pending."""
        entry = self._entries[episode_id]
        self._move(entry, Event.LEASE)
        self._wait_no_more(entry.place)
        self._dispatched += not entry.attempts
        self._attempts += 1
        entry.attempts += 1
        entry.lease = Lease(episode_id, entry.attempts, holder)
        self._held.setdefault(holder, {})[episode_id] = entry.lease
        self._journal(Event.LEASE, entry.lease, None)
        return entry.lease

    def complete(self, lease: Lease) -> bool:
        """Record that the episode is durable; False (and no change) when the lease is not current."""
        entry = self._current(lease)
        if entry is None:
            return False
        self._give_back(lease)
        self._move(entry, Event.COMPLETE)
        self._journal(Event.COMPLETE, lease, None)
        return True

    def fail(self, lease: Lease, failure: Failure, now: float = 0.0) -> EpisodeState | None:
        """Record a failed attempt; return ``PENDING`` (another try), ``FAILED`` (final) or None (late answer)."""
        entry = self._current(lease)
        if entry is None:
            return None
        entry.failure = failure
        counted = entry.attempts - entry.excused
        again = failure.kind in RETRYABLE and counted < self._max_attempts
        event = Event.REQUEUE if again else Event.FAIL
        self._give_back(lease)
        self._move(entry, event)
        self._journal(event, lease, failure)
        if again:
            ready_at = now + self._retry_delay_s * 2 ** (counted - 1)
            heapq.heappush(self._delayed, (ready_at, entry.place))
        return entry.state

    def hand_back(self, lease: Lease, failure: Failure) -> bool:
        """Put back an episode that ``failure`` kept from its end through no fault of its own: no attempt is counted.

        False (and no change) when the lease is not current.
        """
        entry = self._current(lease)
        if entry is None:
            return False
        entry.failure = failure
        entry.excused += 1
        self._give_back(lease)
        self._move(entry, Event.REQUEUE)
        self._journal(Event.REQUEUE, lease, failure)
        insort(self._ready, entry.place, key=_backwards)
        return True

    def release(self, holder: int, failure: Failure, now: float = 0.0) -> list[Lease]:
        """Fail every lease of a holder that is gone and return them."""
        leases = self.held_by(holder)
        for lease in leases:
            self.fail(lease, failure, now)
        return leases

    def abandon(self, failure: Failure) -> None:
        """Stop: what was dispatched and is unfinished becomes failed; what never was stays pending."""
        for entry in self._entries.values():
            if entry.state is EpisodeState.LEASED or (entry.state is EpisodeState.PENDING and entry.attempts):
                if entry.lease is not None:
                    self._journal(Event.FAIL, entry.lease, failure)
                    self._give_back(entry.lease)
                else:
                    self._wait_no_more(entry.place)
                entry.failure = failure
                self._move(entry, Event.FAIL)

    def held_by(self, holder: int) -> list[Lease]:
        """Return the current leases of one holder."""
        return list(self._held.get(holder, {}).values())

    def held_count(self, holder: int) -> int:
        """Return how many leases one holder has."""
        return len(self._held.get(holder, ()))

    def state(self, episode_id: str) -> EpisodeState:
        """Return one episode's state; raise ``KeyError`` for an id that is not of this run."""
        return self._entries[episode_id].state

    def counts(self) -> dict[EpisodeState, int]:
        """Return how many episodes are in each state; they sum to the number of episodes."""
        return dict(self._counts)

    def failures(self) -> dict[str, Failure]:
        """Return the failed episodes with the failure of their last attempt."""
        return {
            episode_id: entry.failure
            for episode_id, entry in self._entries.items()
            if entry.state is EpisodeState.FAILED and entry.failure is not None
        }

    @property
    def dispatched(self) -> int:
        """How many episodes were leased at least once."""
        return self._dispatched

    @property
    def attempts(self) -> int:
        """How many leases were handed out."""
        return self._attempts

    @property
    def late_answers(self) -> int:
        """How many answers came for a lease that was no longer current."""
        return self._late_answers

    @property
    def done(self) -> bool:
        """Whether every episode is completed or failed."""
        return not (self._counts[EpisodeState.PENDING] or self._counts[EpisodeState.LEASED])

    def _move(self, entry: _Entry, event: Event) -> None:
        before = entry.state
        entry.move(event)
        self._counts[before] -= 1
        self._counts[entry.state] += 1

    def _give_back(self, lease: Lease) -> None:
        del self._held[lease.holder][lease.episode_id]

    def _wait_no_more(self, place: int) -> None:
        """Take an episode off those that are ready, or off those that are delayed."""
        at = bisect_left(self._ready, -place, key=_backwards)
        if at < len(self._ready) and self._ready[at] == place:
            del self._ready[at]
            return
        self._delayed = [waiting for waiting in self._delayed if waiting[1] != place]
        heapq.heapify(self._delayed)

    def _current(self, lease: Lease) -> _Entry | None:
        entry = self._entries[lease.episode_id]
        if entry.lease != lease:
            self._late_answers += 1
            return None
        return entry


def _backwards(place: int) -> int:
    return -place
