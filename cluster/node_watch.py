"""Which of a run's processes wait for a node, start, or are lost, and which nodes leave or are gone.

Owns the thread that asks Ray, and what is said about waiting. Waiting for a node is a state of its own: an autoscaler
takes minutes for a machine, its image and its weights. It is shown and measured, and ends nothing before
``run.node_timeout_s``, unless the autoscaler says that none of its machines will ever do. Invariants: no call of
another thread waits for Ray but ``settled``, ``starting`` and ``require_one``; a node that has left once is known for
good.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import ray
from ray._private.state import state
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.core.generated.autoscaler_pb2 import GetClusterStatusReply
from ray.core.generated.common_pb2 import ActorDeathCause
from ray.core.generated.gcs_pb2 import WorkerTableData
from ray.exceptions import RayError, RaySystemError

from cluster.errors import ProcessLost, RunStopped
from cluster.placement import ROLES, Demand, has_room
from records.roles import Role
from telemetry import meter, table

_LOG = logging.getLogger(__name__)
_INTERVAL_S = 1.0
"""Fixed: a pace within ``run.node_timeout_s``."""
_ROOM_S = 20.0
"""Fixed: Ray starts a process where there is room within that time; who has no node then is said to wait for one."""
_JOIN_S = 10.0
"""Fixed: one look takes milliseconds; one at a head that is gone is left behind."""
_UP_S = 1.0
"""Fixed: Ray lists a process whose constructor failed as alive for some milliseconds before it lists it as dead."""
_ROLE = re.compile(rf"-({'|'.join(ROLES)})-\d+$")
_BY_SIGTERM = "SIGTERM"
"""In what Ray says of how a process ended."""
_UNSAID = "Ray does not say why"
_STARTING = ("PENDING_CREATION", "RESTARTING")
"""States of an actor whose constructor has not returned; with an address it has a node."""


class NodeWatch:
    """Watches until closed; needs a running Ray.

    ``say`` is called with what is waited for, and an empty text when it is over. ``demands`` says what one process of
    each role declares; ``limit_s`` is how long one may wait.
    """

    def __init__(self, demands: Mapping[Role, Demand], limit_s: float, say: Callable[[str], None]) -> None:
        self._demands, self._limit_s, self._say = demands, limit_s, say
        self._since: dict[str, float] = {}
        self._starting: frozenset[str] = frozenset()
        self._waiting: dict[str, Role] = {}
        self._groups: Counter[Role] = Counter()
        self._placed: Counter[Role] = Counter()
        self._alive_since: dict[str, float] = {}
        self._up: Counter[Role] = Counter()
        self._deaths: dict[Role, ActorDeathCause] = {}
        self._impossible: set[Role] = set()
        self._leaving: dict[str, float] = {}
        self._alive: dict[str, bool] = {}
        self._ends: dict[str, bool | None] = {}
        self._gcs = GcsClient(address=ray.get_runtime_context().gcs_address)
        self._here = ray.get_runtime_context().get_node_id()
        self._said = ""
        self._looking = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="node-watch", daemon=True)
        self._thread.start()

    def __enter__(self) -> NodeWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        self._thread.join(_JOIN_S)

    def leaves_at(self, node: str) -> float | None:
        """Return when a node that has notice will be gone; see ``Nodes``."""
        return self._leaving.get(node)

    def gone(self, node: str) -> bool | None:
        """Whether a node is gone, or soon will be; the driver's own never is, and of others silence tells nothing."""
        if node == self._here or not node:
            return False
        if node in self._leaving or self._alive.get(node) is False:
            return True
        return None

    def told_to_end(self, process: str) -> bool | None:
        """Whether a process that ended was told to, as Ray has recorded it; see ``Nodes``."""
        if not process:
            return False
        return self._ends.setdefault(process, None)

    def held_up(self) -> str:
        """Return that all policy servers wait for a node, where they do; see ``Nodes``."""
        waiting = self.waiting(Role.SERVER)
        return self._said if waiting and not self._placed[Role.SERVER] else ""

    def waiting(self, role: Role) -> int:
        """Return how many processes of a role wait for a node."""
        return sum(of == role for of in list(self._waiting.values())) + self._groups[role]

    def starting(self, labels: Iterable[str]) -> set[str]:
        """Return those ``labels``, the ends of actors' names, whose process is being started or waits for a node."""
        self._look()
        return {label for label in labels if any(name.endswith(f"-{label}") for name in self._starting)}

    def check(self, role: Role) -> None:
        """Raise ``RunStopped`` where processes of a role wait for what never comes, or have waited for too long."""
        if role in self._impossible:
            raise RunStopped(
                f"the autoscaler has no kind of node for a {ROLES[role]} ({self._demands[role]}): give it one with "
                "these resources, or let the recipe declare less (`waymark check` shows what each process declares)"
            )
        waited = [self._since[name] for name, of in list(self._waiting.items()) if of == role and name in self._since]
        if waited and time.monotonic() - min(waited) > self._limit_s:
            raise RunStopped(
                f"no node came within run.node_timeout_s ({self._limit_s:g} s) for {self.waiting(role)} of the run's "
                f"processes: a {ROLES[role]} declares {self._demands[role]}; see `ray status`, and start the same "
                "command again to go on"
            )

    def settled(self, role: Role, least: int = 1) -> None:
        """Wait until ``least`` processes of a role have a node, and each other one has one or is known to wait for one.

        Where fewer are left, as others died for good, nothing is waited for: who asks a dead one is told why it died.

        Raises:
            RunStopped: see ``check``.
        """
        while True:
            self._look()
            self.check(role)
            unplaced = [name for name in self._since if _role(name) == role]
            undecided = any(name not in self._waiting for name in unplaced)
            enough, left = self._placed[role] >= least, self._placed[role] + len(unplaced)
            if not undecided and (enough or left < least):
                return
            self._closing.wait(_INTERVAL_S / 4)

    def require_one(self, role: Role, limit_s: float) -> None:
        """Wait until a process of a role has come up; with a node that takes at most ``limit_s`` seconds.

        Raises:
            ProcessLost: none is left, as all died for good, or none came up in time.
            RunStopped: see ``check``.
        """
        for _ in range(math.ceil(limit_s / _INTERVAL_S) + 1):
            self.settled(role)
            if self._up[role]:
                return
            if not self._placed[role] and not self.waiting(role):
                why = _death(self._deaths[role]) if role in self._deaths else _UNSAID
                raise ProcessLost(f"no {ROLES[role]} is left, the last one died: {why}; see its log")
            self._closing.wait(_INTERVAL_S)
        raise ProcessLost(f"no {ROLES[role]} came up within {limit_s:g} s of having a node; see its log")

    def group_waits(self, role: Role, count: int) -> None:
        """Say that ``count`` processes of a role that are placed together wait for nodes; 0 where they wait no more."""
        self._groups[role] = count
        self._tell()

    def _watch(self) -> None:
        while not self._closing.wait(_INTERVAL_S):
            try:
                self._look()
            except (RayError, RaySystemError, RuntimeError, ValueError) as error:
                _LOG.debug("Ray says nothing of its nodes: %s", error)

    def _look(self) -> None:
        """Ask Ray once."""
        with self._looking:
            now = time.monotonic()
            nodes = {node["NodeID"]: node for node in ray.nodes()}
            self._alive = {name: bool(node["Alive"]) for name, node in nodes.items()}
            for name, deadline_ms in state.get_draining_nodes().items():
                if name not in self._leaving:
                    left_s = max(0.0, deadline_ms / 1000 - time.time()) if deadline_ms else float("inf")
                    self._leaving[name] = now + left_s
                    _LOG.warning("node %s leaves%s", name[:12], f" in {left_s:.0f} s" if deadline_ms else "")
            for process in [name for name, told in list(self._ends.items()) if told is None]:
                self._ends[process] = _told_to_end(process)
            self._look_at_actors(now, [node for node in nodes.values() if node["Alive"]])
            self._impossible = self._infeasible() if self._waiting else set()
        self._tell()

    def _look_at_actors(self, now: float, nodes: list[dict[str, Any]]) -> None:
        job = ray.get_runtime_context().get_job_id()
        listed = state.actor_table(None, job_id=ray.JobID.from_hex(job)).values()
        actors = [(actor, role) for actor in listed if (role := _role(actor["Name"]))]
        unplaced = {a["Name"]: role for a, role in actors if a["State"] in _STARTING and not a["Address"]["IPAddress"]}
        self._placed = Counter(role for a, role in actors if a["State"] != "DEAD" and a["Name"] not in unplaced)
        alive = {a["Name"]: role for a, role in actors if a["State"] == "ALIVE"}
        self._alive_since = {name: self._alive_since.get(name, now) for name in alive}
        self._up = Counter(role for name, role in alive.items() if now - self._alive_since[name] >= _UP_S)
        self._starting = frozenset(a["Name"] for a, _ in actors if a["State"] in _STARTING)
        dead = sorted((one for one in actors if one[0]["State"] == "DEAD"), key=lambda one: one[0]["EndTime"])
        self._deaths = {role: a["DeathCause"] for a, role in dead}
        self._since = {name: self._since.get(name, now) for name in unplaced}
        room = {role: any(has_room(demand, node) for node in nodes) for role, demand in self._demands.items()}
        self._waiting = {
            name: role for name, role in unplaced.items() if not room[role] or now - self._since[name] > _ROOM_S
        }

    def _infeasible(self) -> set[Role]:
        """Return the roles of which the autoscaler, if there is one, says that no node of its will do."""
        reply = GetClusterStatusReply.FromString(self._gcs.get_cluster_status())
        refused = [dict(request.resources_bundle) for request in reply.autoscaling_state.infeasible_resource_requests]
        return {role for role, demand in self._demands.items() if any(_same(demand.bundle, one) for one in refused)}

    def _tell(self) -> None:
        counts = {role: self.waiting(role) for role in ROLES}
        for role, count in counts.items():
            meter.record(table.AWAITED_NODES, count, role=role)
        said = "; ".join(f"{count} x {ROLES[role]} ({self._demands[role]})" for role, count in counts.items() if count)
        if said == self._said:
            return
        self._said = said
        if said:
            _LOG.warning("waiting for nodes: %s", said)
        else:
            _LOG.info("no process waits for a node any more")
        self._say(said)


def _told_to_end(process: str) -> bool | None:
    """Return whether Ray recorded the end of a process as one by SIGTERM; None where it has recorded none."""
    found = state._connect_and_get_accessor().get_worker_info(ray.WorkerID.from_hex(process))
    record = WorkerTableData.FromString(found) if found else None
    return None if record is None or record.is_alive else _BY_SIGTERM in record.exit_detail


def _death(cause: ActorDeathCause) -> str:
    """Return what Ray says of an actor's death in one line: of an error in its constructor what follows the trace."""
    context = cause.WhichOneof("context")
    if context is None:
        return _UNSAID
    told = getattr(cause, context)
    if context != "creation_task_failure_context":
        return " ".join(told.error_message.split()) or _UNSAID
    lines = told.formatted_exception_string.rstrip().splitlines()
    trace = max((number for number, line in enumerate(lines) if line.startswith(" ")), default=-1)
    return " ".join(lines[trace + 1 :]) or _UNSAID


def _role(name: str) -> Role | None:
    found = _ROLE.search(name)
    return Role(found[1]) if found else None


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(abs(one[name] - other[name]) <= 1e-4 * one[name] for name in one)
