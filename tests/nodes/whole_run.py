"""Whole runs handed to a cluster whose nodes share nothing but the network and an object store.

Each node is confined to a root of its own (``tests.nodes.confined``); one that is lost is replaced by a new one with an
empty root, as a pod is. The run is looked at from outside, in the working copy of its driver's node.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import yaml
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient  # type: ignore[attr-defined]

from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import Published, WithEpisodes
from cluster.run_folder.stored_run import copied_run
from cluster.run_folder.summary import read_summary
from tests.cluster.made_results import every_stage
from tests.e2e.command import Run
from tests.e2e.test_submit import free_port, wait_for
from tests.e2e.test_train import TINY, assert_done, recipe
from tests.nodes.machines import CONFINED, HEAD, ROOT, Node, start_node
from tests.rollout_workers.ray_cluster import ENVIRONMENT

RUN_S = 1800.0
"""The longest that a run may take, several lost nodes included."""
RUNS = ".cache/waymark/runs"
"""Where a node has its working copies, below its home."""
_LOOK_S = 0.05
_SOURCES = [ROOT / "src", ROOT / "cluster"]
_RAY = {
    "RAY_worker_niceness": "0",
    "RAY_raylet_start_wait_time_s": "110",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "240",
    # A node's end is noticed after five looks that are refused; these come every 3 s unless told.
    "RAY_health_check_period_ms": "1000",
}
ROLES = ("browser", "policy", "learner")
RUN = recipe(
    policy={**TINY["policy"], "options": {"batch_invariant": True, "cpus": 0.5}},
    run={
        **TINY["run"],
        "phases": 2,
        "evaluation": {"tasks_per_split": 2, "screenshots": 1},
        "resources": {"rollout_nodes": "browser", "policy_nodes": "policy", "learner_nodes": "learner"},
    },
    warm_start={
        "tokenizer_demonstrations": 30,
        "demonstrations": 12,
        "potential_demonstrations": 4,
        "value_demonstrations": 4,
    },
    curriculum={"tasks_per_phase": 8},
)
"""A recipe that repeats bit for bit."""


@dataclass
class Cluster:
    """A head, and nodes by role; ``folder`` holds their roots, ``environment`` is what each has."""

    folder: Path
    environment: Mapping[str, str]
    of_head: Mapping[str, str]
    roles_of_head: tuple[str, ...]
    port: int
    dashboard: int
    head: Node
    nodes: dict[str, Node] = field(default_factory=dict)
    started: list[Node] = field(default_factory=list)

    def add(self, role: str) -> Node:
        """Start a node for a role, in place of the one that it had; it joins by itself."""
        address = f"127.0.0.{10 + len(self.started)}"
        self.nodes[role] = start_node(
            address, self.environment, 1, {role: 1}, gcs=f"{HEAD}:{self.port}", within=self.folder,
            forbidden=[self.folder, *_SOURCES],
        )  # fmt: skip
        self.started.append(self.nodes[role])
        return self.nodes[role]

    def joined(self) -> None:
        """Wait until every node is part of the cluster."""
        ends = time.monotonic() + RUN_S
        while missing := {role: node for role, node in self.nodes.items() if self.id(node) is None}:
            assert time.monotonic() < ends, {role: (node.root / "said").read_text() for role, node in missing.items()}
            self.raise_fallen()
            time.sleep(0.5)

    def raise_fallen(self) -> None:
        """Start nodes again that ended by themselves, because a busy machine let them start too slowly."""
        for role, node in self.nodes.items():
            if node.process.poll() is not None:
                self.add(role)

    def id(self, node: Node) -> str | None:
        """Return Ray's id of a node that lives."""
        return next(
            (key.hex() for key, found in self._table().items() if found.node_manager_address == node.address), None
        )

    def _table(self) -> dict[Any, Any]:
        try:
            found = GcsClient(address=f"{HEAD}:{self.port}").get_all_node_info(timeout=10)
        except Exception as error:  # noqa: BLE001 - of a head that starts, Ray raises what it likes
            sys.stderr.write(f"{error}\n")
            return {}
        return {key: node for key, node in found.items() if node.state == 0}

    def replace(self, role: str) -> None:
        """Kill a node with its root, and start another one in its place."""
        if role == "head":
            self.head.kill()
            self.head = self._start_head()
            return
        self.lose(role)
        self.add(role)

    def lose(self, role: str) -> None:
        """Kill a node with its root."""
        node = self.nodes[role]
        node.kill()
        shutil.rmtree(node.root, ignore_errors=True)

    def _start_head(self) -> Node:
        environment = {**self.environment, **self.of_head}
        return start_head(self.folder, environment, self.port, self.dashboard, self.roles_of_head)


def start_head(folder: Path, environment: Mapping[str, str], port: int, dashboard: int, roles: tuple[str, ...]) -> Node:
    """Start a head that takes jobs, and has these roles beside; return once it does."""
    head = start_node(
        HEAD, environment, 1, dict.fromkeys(roles, 1.0), port=port, dashboard=dashboard, within=folder,
        forbidden=[folder, *_SOURCES], options=[f"--ray-client-server-port={free_port()}"],
    )  # fmt: skip
    wait_for(f"http://127.0.0.1:{dashboard}", head.process)
    return head


@contextmanager
def cluster(
    environment: Mapping[str, str], roles: tuple[str, ...] = ROLES, of_head: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run a cluster with a node for each of ``roles``, and a head that has the others.

    ``environment`` leads to the object store, ``of_head`` is the head's beside that.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONPATH"))}
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {**clean, **ENVIRONMENT, **_RAY, **environment, "PATH": paths}
    folder = Path(tempfile.mkdtemp(prefix="n-", dir="/tmp"))
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
    made = None
    try:
        port, dashboard = free_port(), free_port()
        of_head, beside = of_head or {}, tuple(role for role in ROLES if role not in roles)
        head = start_head(folder, {**given, **of_head}, port, dashboard, beside)
        made = Cluster(folder, given, of_head, beside, port, dashboard, head)
        for role in roles:
            made.add(role)
        made.joined()
        yield made
    finally:
        for node in (*made.started, made.head) if made else ():
            node.end()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Submitted:
    """A run that is submitted to a cluster; ``folder`` is where its user is."""

    cluster: Cluster
    folder: Path
    uri: str
    recipe: dict[str, Any]

    def start(self) -> subprocess.Popen[str]:
        """``waymark submit``, as its user starts it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "mine.yaml").write_text(yaml.safe_dump(self.recipe))
        address = f"http://127.0.0.1:{self.cluster.dashboard}"
        words = [sys.executable, "-m", "cluster", "submit", "mine.yaml", "--address", address, "--out", self.uri]
        paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths}, start_new_session=True,
        )  # fmt: skip

    @property
    def copy(self) -> Path:
        """The working copy of the driver's node."""
        return next(iter(sorted((self.cluster.head.root / RUNS).glob("[!.]*"))), self.cluster.head.root / "none")

    def said(self) -> str:
        """What the driver has said so far."""
        logs = self.cluster.head.root.glob("session_*/logs/job-driver-*.log")
        return "".join(path.read_text(errors="replace") for path in logs)

    def done(self) -> int:
        """How many stages are complete."""
        return len(list((self.copy / "stages").glob("[0-9]*")))

    def node(self, role: str) -> Node:
        """The node that has a role now."""
        return self.cluster.head if role == "head" else self.cluster.nodes[role]

    def began(self, stage: tuple[int, str]) -> bool:
        """Whether a stage has begun, as far as it shows: where rollouts are played, one is complete."""
        phase, name = stage
        if name != "rollouts":
            return self.copy.exists()
        told = [path.read_text() for path in (self.copy / "ledger").glob("*.jsonl")]
        lines = [json.loads(line) for text in told for line in text.splitlines() if line.endswith("}")]
        return any((line["phase"], line["stage"], line["event"]) == (phase, name, "complete") for line in lines)

    def stages(self) -> list[tuple[int, str]]:
        """The stages of the whole run, in their order."""
        return every_stage(self.recipe["run"]["phases"])


@dataclass(frozen=True)
class Losses:
    """How a run ended, what its last command said, and in which stages a node was lost."""

    code: int
    said: str
    struck: list[tuple[int, str]]


def undergo(run: Submitted, role: str = "", stages: Collection[tuple[int, str]] = ()) -> Losses:
    """Submit a run, and lose the node of ``role`` in each of ``stages`` once, or in the next phase's if it was missed.

    The node is stopped as soon as the stage has begun, so that the stage cannot end, and killed then. A head is
    followed by another command, as a RayJob is tried again.
    """
    left, struck, everything = list(stages), [], run.stages()
    command, ends, seen = run.start(), time.monotonic() + RUN_S, -1
    members: list[psutil.Process] = []
    while command.poll() is None and time.monotonic() < ends:
        done = run.done()
        at, following = everything[min(done, len(everything) - 1)], everything[min(done + 1, len(everything) - 1)]
        if _due(left, following):
            members = family(run.node(role))  # a stage may be over sooner than these are found
        due = _due(left, at)
        if due is not None and done != seen and run.began(at):
            seen, stopped = done, members or family(run.node(role))
            signal_all(stopped, signal.SIGSTOP)
            if run.done() > done:
                signal_all(stopped, signal.SIGCONT)
                continue
            left.remove(due)
            struck.append(at)
            run.cluster.replace(role)
            members = []
            if role == "head":
                end(command)
                command = run.start()
        run.cluster.raise_fallen()
        time.sleep(_LOOK_S)
    return Losses(*end(command), struck)


def _due(left: Sequence[tuple[int, str]], at: tuple[int, str]) -> tuple[int, str] | None:
    """Return what of ``left`` is now, or was missed in an earlier phase."""
    return next((one for one in left if one == at or (one[0] < at[0] and one[1] == at[1])), None)


def ended_well(command: subprocess.Popen[str]) -> str:
    """Wait for a command that must end well; return what it said."""
    command.wait(600)
    code, said = end(command)
    assert code == 0, said
    return said


def end(command: subprocess.Popen[str]) -> tuple[int, str]:
    """End a command that still runs; return its exit code and what it said."""
    command.kill()
    said = command.communicate(timeout=60)[0]
    return command.returncode, said


def family(node: Node) -> list[psutil.Process]:
    """The processes of a node."""
    return [psutil.Process(node.process.pid), *psutil.Process(node.process.pid).children(recursive=True)]


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, the last started first."""
    for process in reversed(processes):
        with suppress(psutil.Error):
            process.send_signal(number)


@dataclass(frozen=True)
class Outcome:
    """What a run came to, without times and places."""

    stages: list[tuple[int, str]]
    weights: list[str]
    phases: list[dict[str, Any]]
    episodes: dict[str, Any]
    played: list[tuple[str, ...]]


def outcome(out: Path) -> Outcome:
    """Return what the run in a folder came to."""
    manifest, summary = RunManifest.read(out), read_summary(out)
    assert summary["complete"]
    entries = [manifest.entry(*stage).result for stage in manifest.stages()]
    return Outcome(
        stages=manifest.stages(),
        weights=[result.weights.checksum for result in entries if isinstance(result, Published)],
        phases=[_timeless(phase) for phase in summary["phases"]],
        episodes=summary["episodes"],
        played=[result.episodes for result in entries if isinstance(result, WithEpisodes)],
    )


def undisturbed_outcome(folder: Path, recipe: dict[str, Any]) -> Outcome:
    """Return what a recipe comes to on one machine, in a folder."""
    run = Run(folder, recipe)
    assert_done(run.run())
    return outcome(run.out)


def _timeless(found: Any) -> Any:
    """Return a part of a summary without what depends on the clock."""
    if isinstance(found, dict):
        return {
            name: _timeless(value) for name, value in found.items() if "second" not in name and "_per_s" not in name
        }
    return [_timeless(value) for value in found] if isinstance(found, list) else found


def audited(run: Submitted) -> tuple[int, str]:
    """``waymark audit URI`` on a machine that no node of the cluster ever was."""
    root = run.folder / "auditor"
    root.mkdir(parents=True)
    words = [sys.executable, str(CONFINED), str(root), str(run.cluster.folder), "--"]
    done = subprocess.run(
        [*words, sys.executable, "-m", "cluster", "audit", run.uri],
        capture_output=True, text=True, timeout=120, check=False, cwd=root,
        env={**run.cluster.environment, "HOME": str(root), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@contextmanager
def fetched(run: Submitted) -> Iterator[Path]:
    """Yield a folder with the run as its store has it."""
    names = {**run.cluster.environment, "WAYMARK_NODE_FOLDER": str(run.folder / "fetched")}
    with patch.dict(os.environ, names), copied_run(run.uri) as out:
        yield out


def requeued(out: Path) -> dict[str, int]:
    """Return how often episodes were leased again, by what had ended their attempt."""
    lines = [json.loads(line) for path in (out / "ledger").glob("*.jsonl") for line in path.read_text().splitlines()]
    return dict(Counter(line["failure"] for line in lines if line["event"] in {"requeue", "fail"}))
