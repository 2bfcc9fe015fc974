"""Ray clusters of several nodes on this machine: each at a loopback address and with a temporary root of its own.

Nodes share the kernel and the disk, so that what they prove about storage is nothing, unless they are confined
(``tests.nodes.confined``), as those of whole runs are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import psutil
import ray
from ray._raylet import AuthenticationTokenLoader, Config

from tests.e2e.test_submit import free_port
from tests.rollout_workers.ray_cluster import ENVIRONMENT

LIMIT_S = 120.0
ROOT = Path(__file__).resolve().parents[2]
CONFINED = ROOT / "tests" / "nodes" / "confined.py"
HEAD = "127.0.0.2"
"""Ray takes 127.0.0.1 for the machine's own address in its network."""


@dataclass
class Node:
    """One node: its address, its root, and the process group that is all of it."""

    address: str
    root: Path
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """SIGKILL to every process of the node at once, as when its machine loses power."""
        family = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        for one in family:
            with suppress(psutil.Error):
                one.suspend()
        for one in family:
            with suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(family, timeout=20)
        self.process.wait(20)

    def end(self) -> None:
        """End the node in an orderly way, and what is left of it after that."""
        if self.process.poll() is None:
            family = psutil.Process(self.process.pid).children(recursive=True)
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            _, left = psutil.wait_procs(family, timeout=5)
            for one in (*left, self.process):
                with suppress(psutil.Error, ProcessLookupError):
                    one.kill()
            self.process.wait(10)

    def runs(self, title: str) -> bool:
        """Whether a process of the node has this in its title."""
        if self.process.poll() is not None:
            return False
        for one in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if title in " ".join(one.cmdline()):
                    return True
        return False

    @property
    def id(self) -> str:
        """Ray's id of the node."""
        (found,) = (n["NodeID"] for n in ray.nodes() if n["NodeManagerAddress"] == self.address and n["Alive"])
        return str(found)


@dataclass
class Machines:
    """A cluster: its head, and the nodes that were added, by address."""

    gcs: str
    head: Node
    environment: Mapping[str, str]
    nodes: list[Node] = field(default_factory=list)

    def add(
        self, *, cpus: float = 1, resources: Mapping[str, float] | None = None, forbidden: Sequence[Path] = ()
    ) -> Node:
        """Start a node that joins the cluster and may open nothing ``forbidden``; return once it is there."""
        address = f"127.0.0.{10 + len(self.nodes)}"
        node = start_node(address, self.environment, cpus, resources, gcs=self.gcs, forbidden=forbidden)
        self.nodes.append(node)
        wait_until(lambda: any(n["Alive"] and n["NodeManagerAddress"] == node.address for n in ray.nodes()), node)
        return node


def start_node(
    address: str,
    environment: Mapping[str, str],
    cpus: float,
    resources: Mapping[str, float] | None,
    *,
    gcs: str = "",
    port: int = 0,
    dashboard: int = 0,
    options: Sequence[str] = (),
    within: Path = Path("/tmp"),  # Ray's sockets want a short path
    forbidden: Sequence[Path] = (),
) -> Node:
    """Start a head at ``port``, or a node of the cluster at ``gcs``, with a root in the folder ``within``.

    ``dashboard`` is the port of a head that takes jobs; ``forbidden`` is what the node may not open.
    """
    root = Path(tempfile.mkdtemp(prefix="ray-", dir=within))
    words = (
        ["--head", f"--port={port}", f"--include-dashboard={bool(dashboard)}".lower(),
         f"--dashboard-port={dashboard or free_port()}", "--dashboard-host=127.0.0.1"]
        if not gcs
        else [f"--address={gcs}"]
    )  # fmt: skip
    confined = [sys.executable, str(CONFINED), str(root), *map(str, forbidden), "--"] if forbidden else []
    command = [
        *confined, sys.executable, "-m", "ray.scripts.scripts", "start", *words, "--block",
        f"--node-ip-address={address}",
        f"--temp-dir={root}", f"--num-cpus={cpus:g}", f"--object-store-memory={96 * 2**20}", "--disable-usage-stats",
        # Ports that Ray would choose itself it waits for, and gives up within seconds on a busy machine.
        f"--dashboard-agent-listen-port={free_port()}", f"--dashboard-agent-grpc-port={free_port()}",
        f"--metrics-export-port={free_port()}", f"--runtime-env-agent-port={free_port()}",
        f"--resources={json.dumps(dict(resources or {}))}", *options,
    ]  # fmt: skip
    with (root / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            env={**environment, "HOME": str(root), "RAY_TMPDIR": str(root)},
            cwd=root,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    return Node(address, root, process)


def wait_until(done: object, node: Node | None = None, limit_s: float = LIMIT_S) -> None:
    """Wait until ``done`` returns true; fail after a limit, or where the node that it is about has ended."""
    assert callable(done)
    ends = time.monotonic() + limit_s
    while not done():
        ended = node is not None and node.process.poll() is not None
        if ended or time.monotonic() > ends:
            raise AssertionError((node.root / "said").read_text() if node else "it did not happen")
        time.sleep(0.2)


@contextmanager
def machines(
    cpus: float = 1,
    extra: Mapping[str, str] | None = None,
    port: int = 0,
    options: Sequence[str] = (),
    of_head: Mapping[str, str] | None = None,
) -> Iterator[Machines]:
    """Run a cluster with a head of ``cpus`` cores, joined from this process, until the block ends.

    ``extra`` are environment variables of all nodes, ``of_head`` of the head, ``options`` its arguments.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {**ENVIRONMENT, "RAY_worker_niceness": "0", "RAY_raylet_start_wait_time_s": "110", **(extra or {})}
    port = port or free_port()
    with patch.dict(os.environ, {**ENVIRONMENT, **(extra or {})}):
        # Ray read its authentication mode when it was first imported, perhaps by another test: read it again.
        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
        head = start_node(HEAD, {**environment, **(of_head or {})}, cpus, None, port=port, options=options)
        cluster = Machines(f"{HEAD}:{port}", head, environment)
        try:
            join(cluster)
            yield cluster
        finally:
            ray.shutdown()
            for node in (*cluster.nodes, cluster.head):
                node.end()


def join(cluster: Machines) -> None:
    """Join the cluster from this process."""

    def joined() -> bool:
        try:
            ray.init(
                address=cluster.gcs, _node_ip_address=HEAD, log_to_driver=False, configure_logging=False,
                runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}},
            )  # fmt: skip
        except (ConnectionError, RuntimeError, OSError):
            return False
        return True

    wait_until(joined, cluster.head)
