"""Runs episodes on the rollout workers and accounts for every one of them.

Owns the driver's loop: lease, send, collect, retry, stop. Invariants: each episode ends as completed
(in a durable shard) or failed (with a typed reason) or, when a run stops early, was never sent; what a
lost worker was playing is played again, without counting as an attempt where its node went away; a lease is durable
before it is sent; a run stops with a clear error when its failure budget is used up or nothing happens any more, which
waiting for a node is not. Holds ids and summaries, never trajectories.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heapreplace

from environments.admission import Admission
from environments.browser.owned_processes import kill, orphans
from environments.environment import Grant
from records import failure_codes as codes
from records.episodes import Source
from records.failures import Failure, FailureCode, FailureKind
from records.roles import Role
from rollout_workers.ahead import Ending
from rollout_workers.budget import FailureBudget, FailureBudgetExceeded
from rollout_workers.gate import Gate
from rollout_workers.leases import EpisodeLedger, EpisodeState, Journal, Lease, no_journal
from rollout_workers.nodes import STEADY, Nodes
from rollout_workers.results import Completed, EpisodeSummary, RolloutCounts, RolloutResult
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from rollout_workers.worker_group import Answered, Lost, WorkerGroup
from telemetry import meter, table

logger = logging.getLogger(__name__)

SWEEP_GRACE_S = 2.0
"""Fixed: a dead worker's guard ends its browser within that time; what is left then is an orphan, and killed."""
_POLL_S = 0.05
"""Fixed: the pace of the driver's loop."""
_DRIVER = -1
"""Stands for the worker of an episode that is not admitted: the driver itself fails it."""

OnCounts = Callable[[RolloutCounts], None]
OnShard = Callable[[str], None]
"""Is told the path of the shard of each acknowledged episode, on its worker's node; must not take time."""


def tell_nobody(shard: str) -> None:
    """Nobody is told."""


class RolloutStopped(RuntimeError):
    """A run could not be finished; the text says why and what to do, ``result`` what was done until then."""

    def __init__(self, message: str, result: RolloutResult) -> None:
        super().__init__(message)
        self.result = result


class RolloutPool:
    """A pool of browser workers; needs a running Ray (``ray.init``). Use as a context manager, or ``close`` it."""

    def __init__(
        self,
        config: WorkerConfig,
        admission: Admission | None = None,
        nodes: Nodes = STEADY,
        on_shard: OnShard = tell_nobody,
    ) -> None:
        """Create the worker actors; they start their browsers in the background.

        ``admission`` is asked before an episode is sent (None: all may be); ``nodes`` knows who waits for a node.
        ``on_shard`` is told of a shard in the turn in which its episode is acknowledged, before anything else is; of a
        late answer's shard, too, because it is as durable as others.
        """
        self._config = config
        self._nodes = nodes
        self._gate = Gate(admission)
        self._settings = config.settings
        self._group = WorkerGroup(config, nodes)
        self._on_shard = on_shard
        self._runs = itertools.count()

    def __enter__(self) -> RolloutPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def process_ids(self) -> dict[int, int]:
        """Return the process id of each worker that is ready, by worker id."""
        return self._group.process_ids()

    def run(
        self,
        specs: Sequence[EpisodeSpec],
        on_counts: OnCounts | None = None,
        journal: Journal = no_journal,
        ending: Callable[[], Ending] | None = None,
    ) -> RolloutResult:
        """Play all episodes and return once each is accounted for; ``journal`` is told of every attempt.

        It is forced to the disk once for all the attempts that are sent together.

        ``ending`` may let the run end before: what was never sent, or waits for another attempt, is then neither
        completed nor failed.

        Raises:
            RolloutStopped: more failures than the settings allow, no worker in time, or no progress.
            ValueError: two specs have the same episode id.
        """
        run = _Run(
            f"run-{next(self._runs)}", specs, self._group, self._gate, self._nodes, self._settings, self._on_shard,
            on_counts, journal, ending,
        )  # fmt: skip
        if specs:
            self._group.resize(self._settings.workers)
        self._group.excuse()
        try:
            run.play()
        except FailureBudgetExceeded as error:
            raise RolloutStopped(str(error), run.stop(codes.FAILURE_BUDGET_EXCEEDED)) from error
        except _Stalled as error:
            raise RolloutStopped(str(error), run.stop(codes.STALLED)) from error
        finally:
            self._gate.leave()
        return run.played()

    def rest(self) -> None:
        """Let go of the workers beyond ``rollout.workers_min``, until the next run."""
        if self._settings.workers_min is not None:
            self._group.resize(self._settings.workers_min)

    def close(self) -> None:
        """Close all browsers and end all workers; safe to call twice."""
        self._group.close(self._config.browser.close_timeout_s)
        self._gate.lost()
        _sweep(SWEEP_GRACE_S)


class _Stalled(RuntimeError):
    """Nothing happens any more."""


class _Run:
    """One call of ``RolloutPool.run``."""

    def __init__(
        self,
        name: str,
        specs: Sequence[EpisodeSpec],
        group: WorkerGroup,
        gate: Gate,
        nodes: Nodes,
        settings: RolloutSettings,
        on_shard: OnShard,
        on_counts: OnCounts | None,
        journal: Journal,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        self._name = name
        self._specs: Mapping[str, EpisodeSpec] = {spec.episode_id: spec for spec in specs}
        self._group = group
        self._gate = gate
        self._nodes = nodes
        self._ending = ending or (lambda: Ending.WHEN_ALL_ARE_PLAYED)
        # A grant is not to lie with an episode that waits for a slot, nor is the end of a run to wait for one.
        self._capacity = settings.contexts_per_worker if gate.asks or ending else group.capacity
        self._settings = settings
        self._on_shard = on_shard
        self._on_counts = on_counts
        self._journal = journal
        self._ledger = EpisodeLedger(
            (spec.episode_id for spec in specs),
            max_attempts=settings.attempts,
            retry_delay_s=settings.retry_delay_s,
            journal=journal,
        )
        self._budget = FailureBudget.of_rollouts(len(specs), settings)
        self._summaries: dict[str, EpisodeSummary] = {}
        self._located: dict[str, str] = {}
        self._successes = self._steps = 0
        self._losses_before = group.losses
        self._orphans_before = group.orphans_killed
        group.loop_lag_s = 0.0
        self._asks_policy = any(spec.source is not Source.DEMONSTRATION for spec in specs)
        self._started = self._moved = time.monotonic()
        self._last_lost: Failure | None = None
        self._worker_seen = False

    def play(self) -> None:
        """Lease, send and collect until every episode is accounted for, or the run is to end before."""
        while not self._ledger.done and not self._ends():
            self.turn()

    def _ends(self) -> bool:
        ending = self._ending()
        idle = not self._ledger.counts()[EpisodeState.LEASED]
        return ending is Ending.NOW or (ending is Ending.WHEN_IDLE and idle)

    def turn(self) -> None:
        """Take what happened, send what may be sent, and stop where too much failed or nothing moves."""
        events = self._group.tend() + self._group.poll(_POLL_S)
        for event in events:
            self._account(event)
        self._see_off()
        if self._ending() is Ending.WHEN_ALL_ARE_PLAYED and not self._held_up():
            self._dispatch()
        if events:
            self._moved = time.monotonic()
            self._tell()
        self._budget.check()
        self._check_stalled()

    def _dispatch(self) -> None:
        """Fill the ready workers evenly with episodes that may be played."""
        now = time.monotonic()
        ready = {worker: self._ledger.held_count(worker) for worker in self._group.ready()}
        emptiest = [(held, worker) for worker, held in ready.items()]
        heapify(emptiest)
        self._worker_seen |= bool(ready)
        room = sum(max(0, self._capacity - held) for held in ready.values())
        leased: list[tuple[Lease, Grant | None]] = []
        waiting = ((episode_id, self._specs[episode_id].task) for episode_id in self._ledger.pending(now))
        for episode_id, decided in self._gate.admit(self._name, waiting, room).items():
            if isinstance(decided, Failure):
                self._fail(self._ledger.lease_one(_DRIVER, episode_id), decided, now)
                continue
            if not emptiest or emptiest[0][0] >= self._capacity:  # those that had room took nothing
                self._gate.keep(decided)
                continue
            held, worker = emptiest[0]
            leased.append((self._ledger.lease_one(worker, episode_id), decided))
            heapreplace(emptiest, (held + 1, worker))
        if leased:
            self._journal.force()
            self._send(leased, now)

    def _send(self, leased: Sequence[tuple[Lease, Grant | None]], now: float) -> None:
        """Send episodes with their grants; a worker that refuses one is sent no other of them."""
        refused: set[int] = set()
        for lease, grant in leased:
            worker, spec = lease.holder, self._specs[lease.episode_id]
            asked = worker not in refused
            if asked and self._group.send(worker, self._name, lease, replace(spec, grant=grant) if grant else spec):
                self._gate.sent(self._name, lease, grant)
                self._moved = now
                continue
            self._gate.keep(grant)
            refusal = Failure(codes.NOT_SENT, f"worker {worker} took no further episode")
            if asked:
                refused.add(worker)
                self._fail(lease, refusal, now)
            else:
                self._ledger.hand_back(lease, refusal)

    def _account(self, event: Answered | Lost) -> None:
        now = time.monotonic()
        if isinstance(event, Lost):
            if event.failure.code == codes.PREEMPTED:
                self._take_back(event.worker, event.failure)
                return
            self._last_lost = event.failure
            self._budget.record(event.failure)
            self._gate.lost(event.worker)
            self._ledger.release(event.worker, event.failure, now)
            return
        lease, end = event.answer.lease, event.answer.end
        self._gate.answered(event.run, lease, event.answer.grant)
        if isinstance(end, Completed):
            self._on_shard(end.shard)
        if event.run == self._name:  # an answer to an earlier run that was stopped concerns nobody
            if isinstance(end, Failure):
                self._fail(lease, end, now)
            elif self._ledger.complete(lease):
                self._summaries[lease.episode_id] = end.summary
                self._successes += end.summary.outcome == 1.0
                self._steps += end.summary.steps
                self._located[lease.episode_id] = end.shard
                self._budget.succeed()

    def _see_off(self) -> None:
        """End workers whose nodes leave: when they have finished, at the latest when their nodes go."""
        done = []
        for worker, until in self._group.leaving().items():
            if self._ledger.held_count(worker) and time.monotonic() < until:
                continue
            self._take_back(worker, Failure(codes.PREEMPTED, f"the node of worker {worker} goes away"))
            done.append(worker)
        if done:
            self._group.retire(done)
            self._moved = time.monotonic()

    def _take_back(self, worker: int, failure: Failure) -> None:
        """Take from a worker what it has, without counting an attempt."""
        self._gate.lost(worker)
        for lease in self._ledger.held_by(worker):
            logger.info("episode %s is handed back: %s", lease.episode_id, failure.detail)
            self._ledger.hand_back(lease, failure)

    def _held_up(self) -> bool:
        return self._asks_policy and bool(self._nodes.held_up())

    def _fail(self, lease: Lease, failure: Failure, now: float) -> None:
        if failure.kind is FailureKind.POLICY and self._held_up():
            self._ledger.hand_back(lease, failure)  # who should have answered waits for a node
            return
        if self._ledger.fail(lease, failure, now) is not None:
            logger.info("episode %s, attempt %d: %s", lease.episode_id, lease.attempt, failure)
            self._budget.record(failure)

    def _check_stalled(self) -> None:
        if self._waits_for_node():
            self._moved = time.monotonic()
            return
        settings, waited = self._settings, time.monotonic() - self._moved
        if not self._worker_seen and waited > settings.start_timeout_s:
            raise _Stalled(
                f"expected a rollout worker to be ready within {settings.start_timeout_s:g} s, found none; "
                f"Ray must have {settings.worker_cpus:g} free CPUs for each of {settings.workers} workers "
                f"(see `ray status`), and the workers' logs say whether a browser is missing"
                + (f"; the last that could not start: {self._last_lost}" if self._last_lost is not None else "")
            )
        if waited > settings.stall_timeout_s:
            raise _Stalled(
                f"nothing happened for {settings.stall_timeout_s:g} s: {self._ledger.counts()}, "
                f"{len(self._group.ready())} workers ready; look at the workers' logs"
            )

    def _waits_for_node(self) -> bool:
        """Whether nothing can move before a node comes; raise where it will not."""
        if self._held_up():
            self._nodes.check(Role.SERVER)
            return True
        if self._group.ready() or not self._nodes.waiting(Role.WORKER):
            return False
        self._nodes.check(Role.WORKER)
        return True

    def _tell(self) -> None:
        counts = self._ledger.counts()
        for state, count in counts.items():
            meter.record(table.QUEUE, count, state=state)
        meter.record(table.WORKERS, len(self._group.ready()))
        if self._on_counts is None:
            return
        self._on_counts(
            RolloutCounts(
                total=len(self._specs),
                completed=counts[EpisodeState.COMPLETED],
                failed=counts[EpisodeState.FAILED],
                running=counts[EpisodeState.LEASED],
                successes=self._successes,
                env_steps=self._steps,
                incidents=sum(self._budget.counts().values()),
                seconds=time.monotonic() - self._started,
            )
        )

    def stop(self, code: FailureCode) -> RolloutResult:
        """Account for what was sent and is unfinished, and return the result."""
        self._ledger.abandon(Failure(code, "the run stopped before this episode was finished"))
        return self.played()

    def played(self) -> RolloutResult:
        """Return what was done."""
        seconds = time.monotonic() - self._started
        return RolloutResult(
            summaries=tuple(self._summaries[i] for i in sorted(self._summaries)),
            located=self._located,
            failures=self._ledger.failures(),
            incidents=self._budget.counts(),
            total=len(self._specs),
            dispatched=self._ledger.dispatched,
            attempts=self._ledger.attempts,
            late_answers=self._ledger.late_answers,
            worker_losses=self._group.losses - self._losses_before,
            orphans=self._group.orphans_killed - self._orphans_before + _sweep(SWEEP_GRACE_S),
            seconds=seconds,
            loop_lag_s=self._group.loop_lag_s,
        )


def _sweep(grace_s: float) -> int:
    """Kill the browser processes on this machine whose worker is gone; return how many there were.

    Their guard is doing the same, so those that end within ``grace_s`` seconds do not count.
    """
    ends = time.monotonic() + grace_s
    while (left := orphans()) and time.monotonic() < ends:
        time.sleep(0.05)
    return kill(left)
