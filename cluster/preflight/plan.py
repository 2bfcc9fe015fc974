"""The resource plan: which processes a recipe starts, and whether this machine can hold them.

Owns the arithmetic between a recipe and a machine; pure, so that ``waymark check`` needs no Ray.
Invariant: the plan's totals are the very numbers Ray is started with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.preflight.machine import Machine
from cluster.recipe.recipe import Recipe
from environments.kinds import KINDS, ServiceProcess
from policy.backend import backend_of


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """``count`` processes of one kind; cores, GPUs and memory (MiB) are per process."""

    name: str
    count: int
    cpus: float
    gpus: float
    memory_mb: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes, and what does not fit: ``missing`` stops a run, ``warnings`` do not."""

    processes: tuple[ProcessPlan, ...]
    ray_cpus: float
    ray_gpus: float
    memory_mb: int
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def make_plan(recipe: Recipe, machine: Machine) -> Plan:
    """Return the plan of a recipe on a machine.

    A run that joins a cluster (``run.resources.address``) is not held against this machine: its
    actors live elsewhere and the cluster grows for them.
    """
    processes = _processes(recipe)
    cpus = sum(process.count * process.cpus for process in processes)
    gpus = sum(process.count * process.gpus for process in processes)
    memory = sum(process.count * process.memory_mb for process in processes)
    if recipe.run.resources.address:
        return Plan(processes, cpus, gpus, memory)
    ray_cpus = float(max(math.ceil(cpus), math.ceil(machine.cores)))
    return Plan(
        processes, ray_cpus, gpus, memory, _missing(gpus, memory, machine), _warnings(recipe, cpus, memory, machine)
    )


def _processes(recipe: Recipe) -> tuple[ProcessPlan, ...]:
    resources, rollout = recipe.run.resources, recipe.rollout
    backend, options = backend_of(recipe.policy)
    servers = backend.processes(options)
    browser_mb = rollout.contexts_per_worker * resources.memory_mb_per_context
    processes = [
        ProcessPlan("controller", 1, 0.0, 0.0, resources.controller_memory_mb, "the driver"),
        *(ProcessPlan(part.name, 1, 0.0, 0.0, part.memory_mb, part.note) for part in _served(recipe)),
        ProcessPlan(
            "rollout worker", rollout.workers, rollout.worker_cpus, 0.0,
            resources.memory_mb_per_rollout_worker + browser_mb,
            f"a browser each, {rollout.contexts_per_worker} episodes at once",
        ),
        ProcessPlan(
            "policy server", servers.count, servers.cpus, servers.gpus, servers.memory_mb,
            f"model {recipe.policy.model}",
        ),
        ProcessPlan(
            "learner", 1, resources.learner_cpus, resources.learner_gpus, resources.learner_memory_mb,
            "actor and two critics",
        ),
    ]  # fmt: skip
    if not resources.address:
        shared = f"{resources.object_store_mb} of it object store"
        processes.append(ProcessPlan("ray", 1, 0.0, 0.0, resources.ray_memory_mb + resources.object_store_mb, shared))
    return tuple(processes)


def _served(recipe: Recipe) -> Sequence[ServiceProcess]:
    name = recipe.run.environment
    try:
        return KINDS.find(name).processes(recipe.environment_settings(name))
    except ValueError:
        return ()  # where there is no such environment, its own check says so


def _missing(gpus: float, memory_mb: int, machine: Machine) -> tuple[str, ...]:
    missing = []
    if memory_mb > machine.memory_mb:
        missing.append(
            f"memory: the plan needs {memory_mb} MiB, this machine has {machine.memory_mb} MiB; lower "
            "rollout.workers or rollout.contexts_per_worker, or correct the estimates in run.resources"
        )
    if gpus > machine.gpus:
        missing.append(f"GPUs: the plan needs {gpus:g}, this machine has {machine.gpus}; see run.resources")
    return tuple(missing)


def _warnings(recipe: Recipe, cpus: float, memory_mb: int, machine: Machine) -> tuple[str, ...]:
    warnings = []
    if cpus > machine.cores:
        warnings.append(
            f"cores: the plan declares {cpus:g}, this machine has {machine.cores:g}; the run will be slower for it"
        )
    if machine.available_mb < memory_mb <= machine.memory_mb:
        warnings.append(f"memory: the plan needs {memory_mb} MiB, {machine.available_mb} MiB are free now")
    store = recipe.run.resources.object_store_mb
    if machine.shared_memory_mb is not None and store > machine.shared_memory_mb:
        warnings.append(
            f"/dev/shm: the object store is {store} MiB, /dev/shm holds {machine.shared_memory_mb} MiB, so Ray puts it "
            "on disk; lower run.resources.object_store_mb or enlarge /dev/shm"
        )
    return tuple(warnings)
