"""Who is playing which episode: a pure ledger of leases, without clocks, tasks or clients.

Owns the life of an episode between being asked for and being accounted for. Invariants: an episode
is in exactly one state; it moves only along ``TRANSITIONS``; it is leased to one holder at a time
and at most ``max_attempts`` times; only the holder of the current lease can complete or fail it, so
a late or repeated answer changes nothing; a completed or failed episode never moves again. Time
is always an argument. Must not import ray or asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from types import MappingProxyType

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


Journal = Callable[[Event, Lease, Failure | None], None]
"""Is told of every event of a lease, in order, with the failure that ended an attempt."""


def no_journal(event: Event, lease: Lease, failure: Failure | None) -> None:
    """Nobody writes it down."""


@dataclass(slots=True)
class _Entry:
    state: EpisodeState = EpisodeState.PENDING
    attempts: int = 0
    ready_at: float = 0.0
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
        journal: Journal = no_journal,
    ) -> None:
        """Take episodes in the order in which they shall be handed out.

        A failed attempt waits ``retry_delay_s * 2**(attempt - 1)`` seconds for the next, so that an
        outage of some seconds does not use up all attempts at once. Raises ``ValueError`` on
        repeated ids, no attempts or a negative delay.
        """
        ids = list(episode_ids)
        self._entries = {episode_id: _Entry() for episode_id in ids}
        if len(self._entries) != len(ids):
            repeated = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"episode ids must be unique; repeated: {', '.join(repeated[:5])}")
        if max_attempts < 1 or retry_delay_s < 0:
            raise ValueError(f"need max_attempts >= 1 and retry_delay_s >= 0, found {max_attempts}, {retry_delay_s}")
        self._max_attempts = max_attempts
        self._retry_delay_s = retry_delay_s
        self._journal = journal
        self._late_answers = 0

    def pending(self, now: float = 0.0) -> Iterator[str]:
        """Yield the episodes that are pending and whose retry delay is over, in order."""
        for episode_id, entry in self._entries.items():
            if entry.state is EpisodeState.PENDING and entry.ready_at <= now:
                yield episode_id

    def lease(self, holder: int, count: int, now: float = 0.0) -> list[Lease]:
        """Hand out up to ``count`` episodes that are pending and whose retry delay is over."""
        return [self.lease_one(holder, episode_id) for episode_id in list(islice(self.pending(now), count))]

    def lease_one(self, holder: int, episode_id: str) -> Lease:
        """Hand out one episode; raise ``ValueError`` where it is not pending."""
        entry = self._entries[episode_id]
        entry.move(Event.LEASE)
        entry.attempts += 1
        entry.lease = Lease(episode_id, entry.attempts, holder)
        self._journal(Event.LEASE, entry.lease, None)
        return entry.lease

    def complete(self, lease: Lease) -> bool:
        """Record that the episode is durable; False (and no change) when the lease is not current."""
        entry = self._current(lease)
        if entry is None:
            return False
        entry.move(Event.COMPLETE)
        self._journal(Event.COMPLETE, lease, None)
        return True

    def fail(self, lease: Lease, failure: Failure, now: float = 0.0) -> EpisodeState | None:
        """Record a failed attempt; return ``PENDING`` (another try), ``FAILED`` (final) or None (late answer)."""
        entry = self._current(lease)
        if entry is None:
            return None
        entry.failure = failure
        again = failure.kind in RETRYABLE and entry.attempts < self._max_attempts
        event = Event.REQUEUE if again else Event.FAIL
        entry.move(event)
        self._journal(event, lease, failure)
        if again:
            entry.ready_at = now + self._retry_delay_s * 2 ** (entry.attempts - 1)
        return entry.state

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
                entry.failure = failure
                entry.move(Event.FAIL)

    def held_by(self, holder: int) -> list[Lease]:
        """Return the current leases of one holder."""
        return [e.lease for e in self._entries.values() if e.lease is not None and e.lease.holder == holder]

    def state(self, episode_id: str) -> EpisodeState:
        """Return one episode's state; raise ``KeyError`` for an id that is not of this run."""
        return self._entries[episode_id].state

    def counts(self) -> dict[EpisodeState, int]:
        """Return how many episodes are in each state; they sum to the number of episodes."""
        counts = dict.fromkeys(EpisodeState, 0)
        for entry in self._entries.values():
            counts[entry.state] += 1
        return counts

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
        return sum(entry.attempts > 0 for entry in self._entries.values())

    @property
    def attempts(self) -> int:
        """How many leases were handed out."""
        return sum(entry.attempts for entry in self._entries.values())

    @property
    def late_answers(self) -> int:
        """How many answers came for a lease that was no longer current."""
        return self._late_answers

    @property
    def done(self) -> bool:
        """Whether every episode is completed or failed."""
        return all(e.state in (EpisodeState.COMPLETED, EpisodeState.FAILED) for e in self._entries.values())

    def _current(self, lease: Lease) -> _Entry | None:
        entry = self._entries[lease.episode_id]
        if entry.lease != lease:
            self._late_answers += 1
            return None
        return entry
