"""Episodes are admitted in order, wait without keeping others, and give back what they were granted, once."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from environments.webarena.leases.admission import TAKE_BACK_S, SiteAdmission
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.leases.units import SiteLease
from records import failure_codes as codes
from records.episodes import Task
from records.failures import Failure
from rollout_workers.gate import Gate
from rollout_workers.leases import EpisodeLedger, EpisodeState, Lease

UNITS = {"blue": ["shopping", "reddit"], "green": ["shopping"], "grey": ["map"]}
DRIVER, WORKERS, HOLD_S, RUN = -1, (0, 1), 60.0, "run"
LOST = Failure(codes.WORKER_DIED)


def task(name: str, sites: tuple[str, ...], *, writes: bool = False) -> Task:
    evaluation = {"eval_types": ["program_html"] if writes else ["url_match"]}
    return Task(name, sites, "Look around", f"__{sites[0].upper()}__/", evaluation, "t")


@dataclass
class NoThread:
    """Resets that end when the test says so."""

    running: list[str] = field(default_factory=list)
    done: list[tuple[str, str]] = field(default_factory=list)

    def begin(self, unit: str) -> None:
        self.running.append(unit)

    def ended(self) -> list[tuple[str, str]]:
        done, self.done = self.done, []
        return done


def test_without_an_admission_episodes_pass_in_order_as_far_as_there_is_room() -> None:
    tasks = [(name, task(name, ("shopping",))) for name in "abc"]
    assert list(Gate(None).admit(RUN, tasks, 2)) == ["a", "b"]


def made(*, fresh: bool = True) -> tuple[Gate, SiteLedger, NoThread]:
    ledger, resets = SiteLedger({"a": ["shopping"], "b": ["map"]}, resettable=["a"], fresh=fresh), NoThread()
    return Gate(SiteAdmission(ledger, resets, hold_s=HOLD_S)), ledger, resets


def test_an_episode_whose_sites_are_not_free_does_not_keep_those_behind_it() -> None:
    gate, ledger, _ = made()
    tasks = [("w1", task("w1", ("shopping",), writes=True)), ("w2", task("w2", ("shopping",), writes=True)),
             ("m", task("m", ("map",)))]  # fmt: skip
    assert list(gate.admit(RUN, tasks, 3)) == ["w1", "m"]
    assert ledger.waiting == 1


def test_no_more_is_asked_for_than_there_is_room() -> None:
    gate, ledger, _ = made()
    tasks = [(name, task(name, ("shopping",))) for name in "abcdef"]
    assert list(gate.admit(RUN, tasks, 2)) == ["a", "b"]
    assert ledger.waiting == 0


def test_an_episode_that_can_never_be_played_fails_when_its_turn_comes() -> None:
    gate, _, _ = made()
    tasks = [("a", task("a", ("map",))), ("x", task("x", ("gitlab",))), ("y", task("y", ("gitlab",)))]
    decided = gate.admit(RUN, tasks, 2)
    assert isinstance(decided["a"], SiteLease)
    failure = decided["x"]
    assert isinstance(failure, Failure)
    assert failure.code == codes.NO_SITE
    assert "y" not in decided


def test_what_comes_back_with_an_answer_says_what_was_written() -> None:
    gate, ledger, resets = made()
    grant = gate.admit(RUN, [("a", task("a", ("shopping",)))], 1)["a"]
    assert isinstance(grant, SiteLease)
    lease = Lease("a", 1, 0)
    gate.sent(RUN, lease, grant)
    returned = SiteLease(grant.lease_id, grant.units, grant.written, grant.epochs, {"shopping"})
    gate.answered(RUN, lease, returned)
    gate.answered(RUN, lease, returned)
    assert (ledger.held, ledger.released) == (0, 1)
    gate.admit(RUN, [("b", task("b", ("shopping",)))], 1)
    assert resets.running == ["a"]


def test_an_answer_without_its_grant_and_a_lost_worker_leave_the_sites_to_be_reset() -> None:
    for lose in (lambda gate, lease: gate.answered(RUN, lease, None), lambda gate, lease: gate.lost(lease.holder)):
        gate, ledger, resets = made()
        grant = gate.admit(RUN, [("a", task("a", ("shopping",)))], 1)["a"]
        assert isinstance(grant, SiteLease)
        gate.sent(RUN, Lease("a", 1, 4), grant)
        lose(gate, Lease("a", 1, 4))
        gate.admit(RUN, [("b", task("b", ("shopping",)))], 1)
        assert (ledger.held, resets.running) == (0, ["a"])


def test_what_waits_is_taken_back_when_its_run_ends_and_what_is_played_is_not() -> None:
    gate, ledger, _ = made()
    tasks = [("w1", task("w1", ("shopping",), writes=True)), ("w2", task("w2", ("shopping",), writes=True))]
    grant = gate.admit(RUN, tasks, 2)["w1"]
    assert isinstance(grant, SiteLease)
    gate.sent(RUN, Lease("w1", 1, 0), grant)
    gate.leave()
    assert (ledger.waiting, ledger.held) == (0, 1)
    gate.answered(RUN, Lease("w1", 1, 0), grant)
    assert ledger.held == 0


class Playing(RuleBasedStateMachine):
    """Any sequence of turns, answers, losses and resets, as the pool makes them, over three deployments."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.resets = NoThread()
        self.sites = SiteLedger(UNITS, resettable=UNITS, fresh=False)
        self.admission = SiteAdmission(self.sites, self.resets, hold_s=HOLD_S, clock=lambda: self.now)
        self.gate = Gate(self.admission)
        self.tasks: dict[str, Task] = {}
        for number, (sites, writes) in enumerate(
            [(("shopping",), False), (("shopping",), True), (("reddit", "shopping"), True), (("map",), False),
             (("reddit",), False), (("shopping", "map"), False), (("reddit",), True), (("gitlab",), False)] * 2
        ):  # fmt: skip
            self.tasks[f"e{number}"] = task(f"e{number}", sites, writes=writes)
        self.ledger = EpisodeLedger(self.tasks, max_attempts=4)
        self.playing: dict[Lease, SiteLease] = {}
        self.written: set[str] = set()

    @rule(room=st.integers(0, 4), holder=st.sampled_from(WORKERS), sent=st.booleans())
    def turn(self, room: int, holder: int, sent: bool) -> None:
        waiting = ((name, self.tasks[name]) for name in self.ledger.pending(self.now))
        decided = self.gate.admit(RUN, waiting, room)
        assert sum(isinstance(what, SiteLease) for what in decided.values()) <= room
        for name, what in decided.items():
            if isinstance(what, Failure):
                self.ledger.fail(self.ledger.lease_one(DRIVER, name), what)
                continue
            assert isinstance(what, SiteLease)
            assert not what.names & self.written, "nobody gets what another has changed"
            if not sent:
                self.gate.keep(what)
                self.written |= what.written
                self.ledger.fail(self.ledger.lease_one(holder, name), LOST)
                continue
            lease = self.ledger.lease_one(holder, name)
            self.gate.sent(RUN, lease, what)
            self.playing[lease] = what

    @precondition(lambda self: self.playing)
    @rule(data=st.data(), ok=st.booleans(), wrote=st.booleans())
    def answer(self, data: st.DataObject, ok: bool, wrote: bool) -> None:
        lease = data.draw(st.sampled_from(sorted(self.playing, key=str)))
        grant = self.playing.pop(lease)
        if wrote:
            grant.wrote.update(grant.units)
        self.written |= grant.written | (grant.names if wrote else frozenset())
        self.gate.answered(RUN, lease, grant)
        assert self.ledger.complete(lease) if ok else self.ledger.fail(lease, LOST) is not None

    @rule(worker=st.sampled_from(WORKERS))
    def lose(self, worker: int) -> None:
        for lease in [lease for lease in self.playing if lease.holder == worker]:
            self.written |= self.playing.pop(lease).names
        self.gate.lost(worker)
        self.ledger.release(worker, LOST)

    @precondition(lambda self: self.resets.running)
    @rule(ok=st.booleans())
    def reset(self, ok: bool) -> None:
        unit = self.resets.running.pop(0)
        assert not any(unit in grant.names for grant in self.playing.values())
        self.resets.done.append((unit, "" if ok else "the disk is full"))
        if ok:
            self.written.discard(unit)

    @precondition(lambda self: self.playing)
    @rule()
    def time_passes(self) -> None:
        self.now += HOLD_S + TAKE_BACK_S
        for lease in list(self.playing):
            self.written |= self.playing.pop(lease).names
            self.ledger.fail(lease, LOST)
        self.turn(0, 0, True)

    @invariant()
    def nobody_shares_a_unit_with_a_writer(self) -> None:
        for unit in UNITS:
            holders = [grant for grant in self.playing.values() if unit in grant.names]
            assert len(holders) <= 1 or not any(unit in grant.written for grant in holders)

    @invariant()
    def every_lease_is_with_an_episode(self) -> None:
        assert self.sites.held == len(self.playing)
        assert self.sites.granted == self.sites.held + self.sites.released

    def teardown(self) -> None:
        """Where answers come and resets succeed, every episode ends and nothing is held."""
        for _ in range(400):
            self.turn(3, 0, True)
            for lease in list(self.playing):
                grant = self.playing.pop(lease)
                self.written |= grant.written
                self.gate.answered(RUN, lease, grant)
                self.ledger.complete(lease)
            while self.resets.running:
                self.reset(True)
            if self.ledger.done:
                break
        assert self.ledger.done, f"{self.ledger.counts()}"
        assert self.ledger.counts()[EpisodeState.PENDING] == 0
        self.gate.leave()
        assert (self.sites.held, self.sites.waiting) == (0, 0)


TestAnySequence = Playing.TestCase
TestAnySequence.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
