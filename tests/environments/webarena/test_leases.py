"""The ledger of site leases: who may share, who waits, and that nothing is lost."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from environments.webarena.leases.ledger import NoUnit, SiteLedger
from environments.webarena.leases.units import Mode, SiteLease, UnitState

READ, WRITE = Mode.READ, Mode.WRITE


def ledger(*, fresh: bool = True, **units: str) -> SiteLedger:
    sites = {name: text.split() for name, text in units.items()}
    return SiteLedger(sites, resettable=sites, fresh=fresh)


def test_readers_share_a_unit_and_a_writer_waits_for_all_of_them() -> None:
    book = ledger(a="shop")
    numbers = [book.ask({"shop": READ}), book.ask({"shop": READ}), book.ask({"shop": WRITE})]
    first, second = book.grant()
    assert [first.lease_id, second.lease_id] == numbers[:2]
    book.release(first)
    assert book.grant() == []
    book.release(second)
    assert [lease.lease_id for lease in book.grant()] == numbers[2:]


def test_a_reader_that_came_after_a_waiting_writer_waits_for_it() -> None:
    book = ledger(a="shop")
    book.ask({"shop": READ})
    (reading,) = book.grant()
    writer, late = book.ask({"shop": WRITE}), book.ask({"shop": READ})
    assert book.grant() == []
    book.release(reading)
    (writing,) = book.grant()
    assert writing.lease_id == writer
    book.release(writing)
    book.begin_reset("a")
    book.end_reset("a", done=True)
    assert [lease.lease_id for lease in book.grant()] == [late]


def test_after_a_writer_nobody_gets_the_unit_until_it_was_reset() -> None:
    book = ledger(a="shop")
    book.ask({"shop": WRITE})
    book.release(book.grant()[0])
    assert book.to_reset() == [], "a reset that nobody waits for is not begun"
    book.ask({"shop": READ})
    assert book.grant() == []
    assert book.to_reset() == ["a"]
    book.begin_reset("a")
    assert book.grant() == []
    assert book.to_reset() == []
    assert book.end_reset("a", done=True) == []
    assert len(book.grant()) == 1
    assert book.resets == 1


def test_a_reader_that_wrote_leaves_the_unit_to_be_reset_when_the_other_readers_are_gone() -> None:
    book = ledger(a="shop forum")
    for _ in range(2):
        book.ask({"shop": READ})
    one, two = book.grant()
    book.release(one, wrote=["shop"])
    book.ask({"forum": READ})
    assert book.grant() == []
    assert book.to_reset() == [], "another reader is still there"
    book.release(two)
    assert book.to_reset() == ["a"]


def test_a_unit_in_an_unknown_state_is_reset_before_its_first_lease() -> None:
    book = ledger(fresh=False, a="shop")
    book.ask({"shop": READ})
    assert book.grant() == []
    assert book.to_reset() == ["a"]


def test_a_failed_reset_strands_those_that_have_no_other_unit() -> None:
    book = ledger(fresh=False, a="shop map", b="map")
    only_a = book.ask({"shop": READ})
    book.ask({"map": WRITE})
    assert sorted(book.to_reset()) == ["a", "b"]
    book.begin_reset("a")
    book.begin_reset("b")
    assert book.end_reset("a", done=False) == [only_a]
    book.withdraw(only_a)
    book.end_reset("b", done=True)
    assert [lease.units for lease in book.grant()] == [{"map": "b"}]


def test_a_writer_takes_the_unit_that_is_free() -> None:
    book = ledger(a="shop", b="shop")
    book.ask({"shop": READ})
    (reading,) = book.grant()
    book.ask({"shop": WRITE})
    (writing,) = book.grant()
    assert {reading.units["shop"], writing.units["shop"]} == {"a", "b"}


def test_all_sites_of_a_task_are_had_at_once_and_a_unit_of_two_sites_is_held_as_its_stronger_mode_says() -> None:
    book = ledger(a="shop forum", b="map")
    book.ask({"map": READ, "shop": WRITE, "forum": READ})
    (lease,) = book.grant()
    assert lease.units == {"map": "b", "shop": "a", "forum": "a"}
    assert lease.written == {"a"}
    book.ask({"forum": READ})
    assert book.grant() == []


def test_what_can_never_be_served_is_refused_at_once() -> None:
    book = SiteLedger({"a": ["shop"]}, resettable=[], fresh=False)
    with pytest.raises(NoUnit, match="no deployment has the site forum; there are: a \\(shop\\)"):
        book.ask({"forum": READ})
    with pytest.raises(NoUnit, match="the task changes shop, and no deployment of it can be reset"):
        book.ask({"shop": WRITE})
    book.ask({"shop": READ})
    (lease,) = book.grant()
    book.release(lease, wrote=["shop"])
    book.ask({"shop": READ})
    assert book.to_reset() == []
    assert len(book.grant()) == 1, "it is taken as it is"


def test_a_lease_is_released_once() -> None:
    book = ledger(a="shop")
    book.ask({"shop": WRITE})
    (lease,) = book.grant()
    assert book.release(lease)
    assert not book.release(lease)
    assert (book.granted, book.released) == (1, 1)


class Ledger(RuleBasedStateMachine):
    """Any sequence of requests, ends and resets, checked against a list of who holds what."""

    UNITS = {"a": ["shop", "forum"], "b": ["shop"], "c": ["map"]}

    def __init__(self) -> None:
        super().__init__()
        self.book = SiteLedger(self.UNITS, resettable=["a", "b", "c"], fresh=True)
        self.held: list[SiteLease] = []
        self.order: list[tuple[int, dict[str, Mode]]] = []
        self.dirty: set[str] = set()
        self.asked = self.withdrawn = 0

    def _grant(self) -> None:
        for lease in self.book.grant():
            assert not lease.names & self.dirty
            self.held.append(lease)
            self.order = [entry for entry in self.order if entry[0] != lease.lease_id]

    @rule(modes=st.dictionaries(st.sampled_from(["shop", "forum", "map"]), st.sampled_from(Mode), min_size=1))
    def ask(self, modes: dict[str, Mode]) -> None:
        self.asked += 1
        self.order.append((self.book.ask(modes), modes))
        self._grant()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        wrote = data.draw(st.lists(st.sampled_from(sorted(lease.units)), max_size=1))
        assert self.book.release(lease, wrote)
        self.dirty |= lease.written | {lease.units[site] for site in wrote}
        self._grant()

    @precondition(lambda self: self.order)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        number, _ = self.order.pop(data.draw(st.integers(0, len(self.order) - 1)))
        self.book.withdraw(number)
        self.withdrawn += 1
        self._grant()

    @rule(done=st.booleans())
    def reset(self, done: bool) -> None:
        for name in self.book.to_reset():
            assert not any(name in lease.names for lease in self.held)
            self.book.begin_reset(name)
            self.book.end_reset(name, done=done)
            if done:
                self.dirty.discard(name)
        self._grant()

    @invariant()
    def nobody_shares_a_unit_with_a_writer(self) -> None:
        for name in self.UNITS:
            holders = [lease for lease in self.held if name in lease.names]
            assert len(holders) <= 1 or not any(name in lease.written for lease in holders)

    @invariant()
    def every_request_is_accounted_for(self) -> None:
        book = self.book
        assert book.held == len(self.held)
        assert book.waiting == len(self.order)
        assert self.asked == book.waiting + self.withdrawn + book.granted
        assert book.granted == book.held + book.released

    def teardown(self) -> None:
        """Once everybody gives back and resets succeed, every request that waits is served."""
        for _ in range(200):
            while self.held:
                lease = self.held.pop()
                self.dirty |= lease.written
                self.book.release(lease)
            self.reset(done=True)
            if not self.order and not self.held:
                return
        raise AssertionError(f"still waiting: {self.order}")


TestAnySequence = Ledger.TestCase
TestAnySequence.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


def test_the_order_of_states_is_how_soon_a_unit_can_be_used() -> None:
    assert UnitState.READY < UnitState.RESETTING < UnitState.DIRTY
