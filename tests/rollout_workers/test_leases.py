"""The ledger accounts for each episode exactly once, whatever happens in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from records import failure_codes as codes
from records.failures import Failure, FailureCode, FailureKind
from rollout_workers.leases import TRANSITIONS, EpisodeLedger, EpisodeState, Event, Lease

INFRA = Failure(codes.BROWSER_CRASHED)
TASK = Failure(FailureCode("no_such_page", FailureKind.TASK))


def test_episodes_are_leased_in_order_and_to_one_holder_only() -> None:
    ledger = EpisodeLedger(["a", "b", "c"], max_attempts=2)
    assert [lease.episode_id for lease in ledger.lease(7, 2)] == ["a", "b"]
    assert [lease.episode_id for lease in ledger.lease(8, 5)] == ["c"]
    assert ledger.lease(9, 5) == []


def test_a_completed_episode_is_accounted_for_once() -> None:
    ledger = EpisodeLedger(["a"], max_attempts=2)
    (lease,) = ledger.lease(0, 1)
    assert ledger.complete(lease) is True
    assert ledger.complete(lease) is False
    assert ledger.fail(lease, INFRA) is None
    assert ledger.late_answers == 2
    assert ledger.counts()[EpisodeState.COMPLETED] == 1
    assert ledger.done


def test_an_answer_for_an_earlier_lease_is_ignored() -> None:
    ledger = EpisodeLedger(["a"], max_attempts=2)
    (first,) = ledger.lease(0, 1)
    ledger.release(0, INFRA)
    (second,) = ledger.lease(1, 1)
    assert ledger.complete(first) is False
    assert ledger.state("a") is EpisodeState.LEASED
    assert ledger.complete(second) is True


def test_attempts_are_limited_and_the_last_failure_is_kept() -> None:
    ledger = EpisodeLedger(["a"], max_attempts=2)
    assert ledger.fail(ledger.lease(0, 1)[0], Failure(FailureCode("first", FailureKind.INFRA))) is EpisodeState.PENDING
    assert ledger.fail(ledger.lease(0, 1)[0], Failure(FailureCode("second", FailureKind.INFRA))) is EpisodeState.FAILED
    assert ledger.failures()["a"].code.name == "second"
    assert ledger.lease(0, 1) == []
    assert ledger.done


def test_a_task_that_cannot_be_played_is_not_tried_again() -> None:
    ledger = EpisodeLedger(["a"], max_attempts=5)
    assert ledger.fail(ledger.lease(0, 1)[0], TASK) is EpisodeState.FAILED


def test_another_attempt_waits_and_waits_longer_each_time() -> None:
    ledger = EpisodeLedger(["a"], max_attempts=3, retry_delay_s=1.0)
    ledger.fail(ledger.lease(0, 1, now=10.0)[0], INFRA, now=10.0)
    assert ledger.lease(0, 1, now=10.9) == []
    ledger.fail(ledger.lease(0, 1, now=11.0)[0], INFRA, now=11.0)
    assert ledger.lease(0, 1, now=12.9) == []
    assert len(ledger.lease(0, 1, now=13.0)) == 1


def test_a_lost_worker_gives_back_its_own_leases_only() -> None:
    ledger = EpisodeLedger("abc", max_attempts=2)
    lost, kept = ledger.lease(0, 2), ledger.lease(1, 1)
    assert ledger.release(0, INFRA) == lost
    assert ledger.held_by(1) == kept
    assert ledger.held_by(0) == []
    assert ledger.counts()[EpisodeState.PENDING] == 2


def test_abandoning_fails_what_was_dispatched_and_leaves_the_rest_pending() -> None:
    ledger = EpisodeLedger("abcd", max_attempts=3)
    first, second = ledger.lease(0, 2)
    ledger.complete(first)
    ledger.fail(second, INFRA)
    ledger.abandon(Failure(FailureCode("run_stopped", FailureKind.INFRA)))
    assert [ledger.counts()[state] for state in EpisodeState] == [2, 0, 1, 1]
    assert ledger.dispatched == 2


def test_terminal_states_have_no_way_out() -> None:
    assert not [key for key in TRANSITIONS if key[0] in (EpisodeState.COMPLETED, EpisodeState.FAILED)]
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.parametrize(("attempts", "delay"), [(0, 0.0), (1, -1.0)])
def test_senseless_limits_are_refused(attempts: int, delay: float) -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        EpisodeLedger(["a"], max_attempts=attempts, retry_delay_s=delay)


def test_repeated_ids_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="repeated: b"):
        EpisodeLedger(["a", "b", "b"], max_attempts=1)


@given(failures=st.lists(st.booleans(), max_size=12), limit=st.integers(1, 4))
def test_an_episode_is_tried_until_it_succeeds_or_attempts_are_used_up(failures: list[bool], limit: int) -> None:
    ledger = EpisodeLedger(["a"], max_attempts=limit)
    outcomes = iter([*failures, False])
    while not ledger.done:
        (lease,) = ledger.lease(0, 1)
        if next(outcomes, False):
            ledger.fail(lease, INFRA)
        else:
            ledger.complete(lease)
    expected_failed = len(failures) >= limit and all(failures[:limit])
    assert (ledger.state("a") is EpisodeState.FAILED) == expected_failed
    assert ledger.attempts <= limit


class LedgerMachine(RuleBasedStateMachine):
    """Any interleaving of leases, answers (also late and repeated ones) and lost workers."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = [f"e{i}" for i in range(6)]
        self.ledger = EpisodeLedger(self.ids, max_attempts=3)
        self.handed_out: list[Lease] = []
        self.accepted: dict[str, int] = dict.fromkeys(self.ids, 0)
        self.final: dict[str, EpisodeState] = {}

    @rule(holder=st.integers(0, 2), count=st.integers(0, 4))
    def lease(self, holder: int, count: int) -> None:
        leases = self.ledger.lease(holder, count)
        assert len(leases) <= count
        self.handed_out += leases

    @precondition(lambda self: self.handed_out)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.handed_out))
        self.accepted[lease.episode_id] += self.ledger.complete(lease)

    @precondition(lambda self: self.handed_out)
    @rule(data=st.data(), failure=st.sampled_from([INFRA, TASK]))
    def fail(self, data: st.DataObject, failure: Failure) -> None:
        lease = data.draw(st.sampled_from(self.handed_out))
        if self.ledger.fail(lease, failure) is EpisodeState.FAILED:
            self.accepted[lease.episode_id] += 1

    @rule(holder=st.integers(0, 2))
    def lose(self, holder: int) -> None:
        for lease in self.ledger.release(holder, INFRA):
            self.accepted[lease.episode_id] += self.ledger.state(lease.episode_id) is EpisodeState.FAILED

    @invariant()
    def every_episode_is_counted_once(self) -> None:
        assert sum(self.ledger.counts().values()) == len(self.ids)
        assert max(self.accepted.values()) <= 1
        terminal = (EpisodeState.COMPLETED, EpisodeState.FAILED)
        for episode_id in self.ids:
            state = self.ledger.state(episode_id)
            assert self.final.get(episode_id, state) == state
            if state in terminal:
                self.final[episode_id] = state
            assert (state in terminal) == (self.accepted[episode_id] == 1)

    @invariant()
    def attempts_are_limited_and_leases_are_unique(self) -> None:
        assert len(set(self.handed_out)) == len(self.handed_out)
        assert all(lease.attempt <= 3 for lease in self.handed_out)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@given(st.lists(st.tuples(st.sampled_from(["lease", "complete", "fail", "lose"]), st.integers(0, 9)), max_size=60))
def test_what_is_kept_beside_the_episodes_is_what_looking_at_all_of_them_finds(moves: list[tuple[str, int]]) -> None:
    ledger = EpisodeLedger([f"e{i}" for i in range(6)], max_attempts=3, retry_delay_s=1.0)
    given: list[Lease] = []
    ready_at: dict[str, float] = {}
    for now, (move, which) in enumerate(moves):
        if move == "lease":
            given += ledger.lease(which % 3, 1 + which % 2, now)
        elif move == "lose":
            for lease in ledger.release(which % 3, INFRA, now):
                ready_at[lease.episode_id] = now + 2.0 ** (lease.attempt - 1)
        elif given:
            lease = given[which % len(given)]
            if move == "complete":
                ledger.complete(lease)
            elif ledger.fail(lease, INFRA, now) is EpisodeState.PENDING:
                ready_at[lease.episode_id] = now + 2.0 ** (lease.attempt - 1)
        states = {f"e{i}": ledger.state(f"e{i}") for i in range(6)}
        waiting = [i for i, state in states.items() if state is EpisodeState.PENDING and ready_at.get(i, 0.0) <= now]
        assert list(ledger.pending(now)) == waiting
        assert ledger.counts() == {state: list(states.values()).count(state) for state in EpisodeState}
        assert ledger.done == all(state in (EpisodeState.COMPLETED, EpisodeState.FAILED) for state in states.values())
        held = [lease for holder in range(3) for lease in ledger.held_by(holder)]
        assert {lease.episode_id for lease in held} == {i for i, s in states.items() if s is EpisodeState.LEASED}
        assert [ledger.held_count(holder) for holder in range(3)] == [len(ledger.held_by(h)) for h in range(3)]
        assert ledger.attempts == len(given)
