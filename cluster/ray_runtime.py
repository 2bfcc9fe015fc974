"""A Ray of this run's own, or a connection to a cluster.

Owns ``ray.init`` and ``ray.shutdown``. Invariants: a local Ray listens on this machine only, asks for
a token that lives as long as the process, and has the cores, the memory and the object store that the plan names; it
ends within a limit, and none of its processes outlives it.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from cluster.errors import ProcessLost
from cluster.placement import own_resources
from cluster.preflight.machine import Machine
from cluster.preflight.plan import make_plan
from cluster.recipe.recipe import Recipe

logger = logging.getLogger(__name__)
_ROOT = Path(__file__).resolve().parents[1]
_SHUTDOWN_S = 30.0
"""Fixed: a raylet that hangs would let ``ray.shutdown`` wait for ever."""
_LEFT_S = 5.0
"""Fixed: Ray gives its raylet a second to end its workers, and kills it; they may then live on for a minute."""
_LOOK_S = 0.05
"""Fixed: a pace within ``_LEFT_S``."""


@contextmanager
def ray_runtime(recipe: Recipe) -> Iterator[str]:
    """Start or join Ray; yield the dashboard's address, or an empty text where there is none.

    With ``run.resources.address`` the cluster there is joined; its authentication is the cluster's own business.
    """
    address = recipe.run.resources.address
    if not address:
        # Ray reads these once, when it is first imported: a second runtime in this process keeps the first's token.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_DEDUP_LOGS", "1")
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # One thread per process: oversubscribed OpenMP slows small matrices down many times.
    environment = {"env_vars": {"PYTHONPATH": path, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}}
    options: dict[str, Any]
    if address:
        # A submitted job has an environment of its own, which may name the same variables.
        os.environ["RAY_OVERRIDE_JOB_RUNTIME_ENV"] = "1"
        options = {"address": address}
    else:
        plan = make_plan(recipe, Machine.here())
        options = {
            "num_cpus": int(plan.ray_cpus),
            "num_gpus": plan.ray_gpus,
            "_memory": plan.memory_mb * 2**20,
            "resources": own_resources(recipe),
            "include_dashboard": recipe.run.dashboard,
            "dashboard_host": "127.0.0.1",
            "object_store_memory": recipe.run.resources.object_store_mb * 2**20,
            "logging_level": logging.ERROR,
        }
    with running_ray(**options, runtime_env=environment, log_to_driver=False) as context:
        yield context.dashboard_url or ""


def metrics_addresses() -> list[str]:
    """Return where Ray tells Prometheus the metrics of its actors, for each node; needs a running Ray."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    return [f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics" for node in nodes]


@contextmanager
def running_ray(**options: Any) -> Iterator[Any]:
    """Start or join Ray with options of ``ray.init`` and yield what that returns; end it, with what it started.

    Raises:
        ProcessLost: Ray did not start, or the cluster cannot be joined; nothing that was started for it is left.
    """
    import ray

    before = set(psutil.Process().children())
    try:
        context = ray.init(**options)
    except BaseException as error:
        _end_ray(_others_than(before))
        if not isinstance(error, Exception):  # Ray has no kind of its own: a plain one where it took too long to start
            raise
        what = f"Ray at {options['address']} cannot be joined" if "address" in options else "Ray did not start"
        raise ProcessLost(f"{what}: {error}; see `waymark doctor`, and try again where the machine was busy") from error
    started = _others_than(before)
    try:
        yield context
    finally:
        _end_ray(started)


def _others_than(known: set[psutil.Process]) -> list[psutil.Process]:
    """Return this process's children that are not ``known``."""
    return [child for child in psutil.Process().children() if child not in known]


def _end_ray(started: list[psutil.Process]) -> None:
    """Shut Ray down; kill what is left of the processes that ``ray.init`` ``started``, and of theirs."""
    import ray

    family = [*started]
    for process in started:
        with suppress(psutil.Error):
            family += process.children(recursive=True)
    overdue = threading.Timer(_SHUTDOWN_S, _kill, [family])
    overdue.start()
    try:
        ray.shutdown()
    finally:
        overdue.cancel()
        _kill(left := _left_of(family))
        _left_of(left)


def _left_of(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Wait for these to end, and return those that did not.

    Asked again and again: ``psutil.wait_procs`` opens each by its number, and raises where one ends at that moment and
    its parent has not yet asked for its status (``pidfd_open``: ENOENT).
    """
    ends, left = time.monotonic() + _LEFT_S, list(processes)
    while (left := [process for process in left if _lives(process)]) and time.monotonic() < ends:
        time.sleep(_LOOK_S)
    return left


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _kill(processes: Iterable[psutil.Process]) -> None:
    killed = []
    for process in processes:
        with suppress(psutil.Error):
            # One that has ended may wait for a container's first process to ask for its status, which some never do.
            if process.status() != psutil.STATUS_ZOMBIE:
                name = process.name()
                process.kill()
                killed.append(f"{name} ({process.pid})")
    if killed:
        logger.warning("processes of Ray did not end and were killed: %s", ", ".join(killed))
