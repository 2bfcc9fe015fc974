"""The rollout workers as Ray actors: started, asked for signs of life, killed when hung, replaced when dead or leaving.

Owns the actors through RLlib's ``FaultTolerantActorManager`` and reports what happens as events.
Invariants: a worker's loss is reported once, before anything else is sent to it; a worker that came
back is started again, on what its node runs, before it gets an episode; calls name their worker, and one that was not
sent is noticed. Every wait has a timeout. What is sent must be importable without RLlib (and so without torch)
in the worker: method names and plain records only.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import ray
from ray.exceptions import ActorDiedError

from environments.kinds import KINDS
from records import failure_codes as codes
from records.failures import Failure
from rollout_workers.actor_manager import CallResult, FaultTolerantActorManager
from rollout_workers.leases import Lease
from rollout_workers.members import Care, Member, MemberState
from rollout_workers.node_services import NodeServices
from rollout_workers.nodes import STEADY, Nodes
from rollout_workers.results import EpisodeAnswer
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from rollout_workers.worker import RolloutWorker
from telemetry import meter, table

logger = logging.getLogger(__name__)

_PLACE, _START, _HEARTBEAT = "place", "start", "heartbeat"
_MAX_CONCURRENCY = 1000
_PROBE_AGAIN_S = 0.5
"""Fixed: a pace within ``rollout.replace_after_s``."""
_PROBE_S = 0.3
"""Fixed: a worker that does not answer by then is asked again."""
_NODE_LOST_S = 30.0
"""Fixed: Ray takes a silent node for dead after some 15 s; whoever was lost on one that is still there by then died."""
_HAND_BACK_S = 5.0
"""Fixed: so long before its node goes, a worker has handed back what it could not finish."""
_LAG_TOLD_S = 2.0
"""Fixed: only a line in the log; what counts is ``rollout.loop_lag_limit_s``."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A worker answered a lease in the named run."""

    run: str
    answer: EpisodeAnswer


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker died, hung or could not be built; whatever it was playing is lost.

    A failure ``infra/preempted`` says that its node went away.
    """

    worker: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class _Undecided:
    """A loss of which is not known yet whether its node went away, or whether it was told to end."""

    node: str
    process: str
    failure: Failure
    since: float


def _lost(worker: int, failure: Failure, *, preempted: bool) -> Lost:
    """Return the loss; a node that goes away and a process that is told to end are nobody's failure."""
    return Lost(worker, Failure(codes.PREEMPTED, failure.detail) if preempted else failure)


class WorkerGroup:
    """All workers of one pool."""

    def __init__(self, config: WorkerConfig, nodes: Nodes = STEADY) -> None:
        self._config = config
        self._nodes = nodes
        self._undecided: dict[int, _Undecided] = {}
        self._settings = config.settings
        self._capacity = self._settings.contexts_per_worker + self._settings.prefetch_per_worker
        self._manager = FaultTolerantActorManager(max_remote_requests_in_flight_per_actor=self._capacity)
        self._members: dict[int, Member] = {}
        self._made = 0
        # Names of actors are shared by all runs on a cluster, and by a run's pools one after the other.
        self._prefix = f"waymark-{config.run}-{config.environment}-{secrets.token_hex(3)}"
        self._probed_at = 0.0
        self.losses = 0
        self.orphans_killed = 0
        self.loop_lag_s = 0.0
        each_node = config.connection is None and KINDS.find(config.environment).each_node
        self._services = NodeServices(config.environment, config.options, config.run) if each_node else None
        self.resize(self._settings.workers)

    @property
    def capacity(self) -> int:
        """How many leases one worker may hold."""
        return self._capacity

    def ready(self) -> list[int]:
        """Return the ids of the workers that may be given episodes."""
        return [i for i, m in self._members.items() if self._stays(m) and self._healthy(i)]

    def leaving(self) -> dict[int, float]:
        """Return the workers whose nodes have notice, with when they must have handed back what they play."""
        leaving = {i: self._nodes.leaves_at(m.node) for i, m in self._members.items() if m.state is MemberState.READY}
        return {worker: at - _HAND_BACK_S for worker, at in leaving.items() if at is not None}

    def retire(self, workers: Sequence[int]) -> None:
        """End workers that play nothing any more; others take their place, on nodes that stay."""
        for worker in workers:
            logger.info("%s ends: its node leaves", self._members[worker].name)
        self._end(workers)
        for _ in workers:
            self._add()

    def resize(self, count: int) -> None:
        """Have ``count`` workers; those that are not ready, then the newest, go first."""
        for _ in range(count - len(self._members)):
            self._add()
        spare = max(0, len(self._members) - count)
        ready = set(self.ready())
        self._end(sorted(self._members, key=lambda worker: (worker in ready, -worker))[:spare])

    def process_ids(self) -> dict[int, int]:
        """Return the process id of each ready worker."""
        return {i: self._members[i].pid for i in self.ready()}

    def send(self, worker: int, run: str, lease: Lease, spec: EpisodeSpec) -> bool:
        """Give a worker one lease; False when the call was not sent (the worker is full or gone)."""
        return self._call(worker, methodcaller("play", lease, spec), run)

    def excuse(self) -> None:
        """Count silence from now on: between two runs nobody asked for signs of life."""
        now = time.monotonic()
        for member in self._members.values():
            member.last_seen = member.last_asked = now

    def poll(self, timeout_s: float) -> list[Answered | Lost]:
        """Wait up to ``timeout_s`` seconds and return what happened."""
        if self._manager.num_outstanding_async_reqs() == 0:
            time.sleep(timeout_s)
            return []
        events: list[Answered | Lost] = []
        for result in self._manager.fetch_ready_async_reqs(timeout_seconds=timeout_s).result_or_errors:
            events += self._event(result)
        return events

    def tend(self) -> list[Answered | Lost]:
        """Ask for signs of life, kill the hung, start the new, bring back or replace the dead."""
        now = time.monotonic()
        events: list[Answered | Lost] = [*self._decided(now)]
        for worker, member in list(self._members.items()):
            care = member.care(now, self._settings)
            if care is Care.START:
                member.asked_to_start = self._call(worker, methodcaller("place"), _PLACE)
            elif care is Care.HEARTBEAT:
                member.last_asked = now
                self._call(worker, methodcaller("heartbeat"), _HEARTBEAT)
            elif care is Care.KILL:
                silent = f"{member.name} gave no sign of life for {self._settings.hang_timeout_s:g} s; it was killed"
                events += self._lose(worker, Failure(codes.WORKER_HUNG, silent))
                ray.kill(self._manager.actors()[worker], no_restart=False)
            elif care is Care.REPLACE:
                self._replace(worker)
        if now - self._probed_at >= _PROBE_AGAIN_S:
            self._probed_at = now
            self._restore()
        return events

    def close(self, timeout_s: float) -> None:
        """Let the workers close their browsers within ``timeout_s`` seconds, then kill them."""
        if self._members and self.ready():
            self._manager.foreach_actor(methodcaller("stop"), remote_actor_ids=self.ready(), timeout_seconds=timeout_s)
        self._manager.clear()
        self._members.clear()
        if self._services is not None:
            self._services.close()

    def _stays(self, member: Member) -> bool:
        return member.state is MemberState.READY and self._nodes.leaves_at(member.node) is None

    def _end(self, workers: Sequence[int]) -> None:
        """Let workers close their browsers, and kill them."""
        can_stop = [i for i in workers if self._members[i].state is MemberState.READY and self._healthy(i)]
        if can_stop:
            limit_s = self._config.browser.close_timeout_s
            self._manager.foreach_actor(methodcaller("stop"), remote_actor_ids=can_stop, timeout_seconds=limit_s)
        for worker in workers:
            del self._members[worker]
            ray.kill(self._manager.remove_actor(worker), no_restart=True)
        self._end_unused_services()

    def _add(self) -> None:
        name = f"worker-{self._made}"
        self._made += 1
        self._manager.add_actors([self._new_actor(name)])
        self._members[self._manager.actor_ids()[-1]] = Member(name, since=time.monotonic())

    def _new_actor(self, name: str) -> Any:
        settings = self._settings
        options: dict[str, Any] = {
            "name": f"{self._prefix}-{name}",
            "num_cpus": settings.worker_cpus,
            "memory": self._config.memory_mb * 2**20,
            "resources": dict(self._config.resources),
            "max_restarts": -1,
            "max_task_retries": 0,  # a browser step is not idempotent: the episode is the unit of retry
            "max_concurrency": _MAX_CONCURRENCY,
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1"}},
        }
        return ray.remote(RolloutWorker).options(**options).remote(self._config, name)

    def _service_of(self, member: Member) -> Any:
        """Return the actor that a worker's hosts connect to, None where its kind has none on each node."""
        return self._services.on(member.node) if self._services is not None else None

    def _end_unused_services(self) -> None:
        if self._services is not None:
            self._services.keep({member.node for member in self._members.values()})

    def _call(self, worker: int, method: Any, tag: str) -> bool:
        sent: int = self._manager.foreach_actor_async(method, tag=tag, remote_actor_ids=[worker])
        return sent == 1

    def _healthy(self, worker: int) -> bool:
        healthy: bool = self._manager.is_actor_healthy(worker)
        return healthy

    def _event(self, result: CallResult) -> list[Answered | Lost]:
        worker, value, now = result.actor_id, result.get(), time.monotonic()
        member = self._members.get(worker)
        if member is None:
            return []
        if not result.ok:
            detail = f"{member.name} (process {member.pid}): {str(value).strip().splitlines()[0]}"
            member.gone |= isinstance(value, ActorDiedError)  # others are away until Ray has restarted them
            return self._lose(worker, Failure(codes.WORKER_DIED, detail))
        member.last_seen = now
        if result.tag == _PLACE:
            member.node, member.process = value
            member.asked_to_start = self._call(worker, methodcaller("start", self._service_of(member)), _START)
            self._end_unused_services()
            return []
        if result.tag == _START:
            return self._started(worker, member, value, now)
        if result.tag == _HEARTBEAT:
            self._note_lag(member, value.loop_lag_s)
            return []
        return [Answered(result.tag, value)]

    def _note_lag(self, member: Member, lag_s: float) -> None:
        self.loop_lag_s = max(self.loop_lag_s, lag_s)
        if lag_s > _LAG_TOLD_S:
            logger.warning(
                "the event loop of %s ran %.1f s late: its machine is short of CPU or memory; lower "
                "rollout.contexts_per_worker",
                member.name,
                lag_s,
            )

    def _started(self, worker: int, member: Member, health: Any, now: float) -> list[Answered | Lost]:
        member.pid = health.pid
        self.orphans_killed += health.orphans_killed
        if health.failure is None:
            member.enter(MemberState.READY, now)
            return []
        logger.error("%s could not start: %s", member.name, health.failure)
        # Another try, after a pause, in the same process: what was built already stays.
        member.enter(MemberState.STARTING, now + _PROBE_AGAIN_S)
        return [Lost(worker, health.failure)]

    def _lose(self, worker: int, failure: Failure) -> list[Answered | Lost]:
        """Take a worker out of service; several calls may fail with it, but it is lost once."""
        member = self._members[worker]
        if self._healthy(worker):
            self._manager.set_actor_state(worker, healthy=False)
        if member.state is MemberState.DOWN:
            return []
        logger.warning("lost a worker: %s", failure.detail)
        member.enter(MemberState.DOWN, time.monotonic())
        self.losses += 1
        meter.record(table.WORKER_LOSSES)
        now = time.monotonic()
        self._undecided[worker] = _Undecided(member.node, member.process, failure, now)
        return [*self._decided(now)]

    def _decided(self, now: float) -> Iterator[Lost]:
        """Yield the losses of which is known by now whether the node went away, or the process was told to end."""
        for worker, lost in list(self._undecided.items()):
            gone, told = self._nodes.gone(lost.node), self._nodes.told_to_end(lost.process)
            member = self._members.get(worker)
            stays = gone is False or (member is not None and member.state is not MemberState.DOWN)
            if gone or told or (stays and told is False) or now - lost.since > _NODE_LOST_S:
                del self._undecided[worker]
                yield _lost(worker, lost.failure, preempted=bool(gone or told))

    def _restore(self) -> None:
        """Find out which dead workers Ray has restarted; they are started again before they play."""
        if len(self._manager.healthy_actor_ids()) == self._manager.num_actors():
            return
        restored = self._manager.probe_unhealthy_actors(timeout_seconds=_PROBE_S, mark_healthy=True)
        for worker in restored:
            self._members[worker].enter(MemberState.STARTING, time.monotonic())

    def _replace(self, worker: int) -> None:
        member = self._members.pop(worker)
        logger.warning("%s did not come back; replacing it", member.name)
        ray.kill(self._manager.remove_actor(worker), no_restart=True)
        self._end_unused_services()
        self._add()
