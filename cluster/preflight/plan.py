"""The resource plan: which processes a recipe starts, and whether this machine can hold them.

Owns the arithmetic between a recipe and a machine; ``make_plan`` is pure, so that ``waymark check`` needs no Ray.
Invariants: the plan's totals are the very numbers Ray is started with; a process is counted with its setting, or with
the parts of its model where they are more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.placement import worker_memory_mb
from cluster.preflight.machine import Machine
from cluster.preflight.memory import (
    above_settings,
    on_gpus,
    parts_of_learner,
    parts_of_server,
    parts_of_snapshot,
    size_of_start,
    total_mib,
)
from cluster.recipe.recipe import Recipe
from environments.kinds import KINDS, ServiceProcess
from policy.backend import ServerProcesses, backend_of
from policy.model_size import ModelSize, ModelSizeUnknown
from records.memory import MemoryPart

_JUDGING_MB = 300
"""A process with both SDKs; it holds questions, no model."""


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """``count`` processes of one kind; cores, GPUs, memory (MiB) and its parts where they are known are per process."""

    name: str
    count: int
    cpus: float
    gpus: float
    memory_mb: int
    note: str = ""
    parts: tuple[MemoryPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes, and what does not fit: ``missing`` stops a run, ``warnings`` do not.

    ``ray_gpus`` are the GPUs on which the processes fit, a share of one never lying on two.
    """

    processes: tuple[ProcessPlan, ...]
    ray_cpus: float
    ray_gpus: int
    memory_mb: int
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def planned(recipe: Recipe, machine: Machine, *, learns: bool = True) -> Plan:
    """Return the plan of a recipe on a machine with the model that it starts from, as far as its size is known."""
    try:
        return make_plan(recipe, machine, size_of_start(recipe), learns=learns)
    except ModelSizeUnknown as unknown:
        counted = "the plan counts what run.resources.learner_memory_mb and policy.options.memory_mb say"
        line = f"memory: the size of the model is not known, so {counted}: {unknown}"
    plan = make_plan(recipe, machine, learns=learns)
    return replace(plan, warnings=(*plan.warnings, line))


def make_plan(recipe: Recipe, machine: Machine, size: ModelSize | None = None, *, learns: bool = True) -> Plan:
    """Return the plan of a recipe with a model of ``size`` on a machine; without a size, memory is what settings say.

    Where nothing is learned, the learner's place is taken by a process that reads the policy.

    A run that joins a cluster (``run.resources.address``) is not held against this machine: its
    actors live elsewhere and the cluster grows for them.
    """
    resources = recipe.run.resources
    backend, options = backend_of(recipe.policy)
    servers = backend.processes(options)
    name, note = ("learner", "actor and its critics") if learns else ("snapshot", "reads the policy's weights")
    learner = tuple((parts_of_learner if learns else parts_of_snapshot)(recipe, size)) if size else ()
    server = tuple(parts_of_server(recipe, size)) if size else ()
    processes = (
        *_around(recipe),
        ProcessPlan(
            "policy server", servers.count, servers.cpus, servers.gpus,
            max(servers.memory_mb, total_mib(server, on_gpu=False)), f"model {recipe.policy.model}", server,
        ),
        ProcessPlan(
            name, recipe.learner.ranks, resources.learner_cpus, resources.learner_gpus,
            max(resources.learner_memory_mb, total_mib(learner, on_gpu=False)), note, learner,
        ),
    )  # fmt: skip
    cpus = sum(process.count * process.cpus for process in processes)
    gpus = _gpus_for(processes)
    memory = sum(process.count * process.memory_mb for process in processes)
    above = above_settings(learner, server, resources.learner_memory_mb, servers.memory_mb)
    read_again = _read_again(recipe, servers)
    sharing = _sharing(recipe)
    if resources.address:
        return Plan(processes, cpus, gpus, memory, missing=sharing, warnings=(*above, *read_again))
    ray_cpus = float(max(math.ceil(cpus), math.ceil(machine.cores)))
    too_large, barely = on_gpus(learner, server, servers.count, machine)
    missing = (*sharing, *_missing(recipe, gpus, memory, machine, bool(above)), *too_large)
    warnings = (*_warnings(recipe, cpus, memory, machine), *above, *barely, *read_again)
    return Plan(processes, ray_cpus, gpus, memory, missing, warnings)


def _around(recipe: Recipe) -> tuple[ProcessPlan, ...]:
    """Return the processes that hold no model."""
    resources, rollout = recipe.run.resources, recipe.rollout
    processes = [
        ProcessPlan("controller", 1, 0.0, 0.0, resources.controller_memory_mb, "the driver"),
        *(ProcessPlan(part.name, 1, 0.0, 0.0, part.memory_mb, part.note) for part in _served(recipe)),
        ProcessPlan(
            "rollout worker", rollout.workers, rollout.worker_cpus, 0.0,
            worker_memory_mb(recipe),
            f"a browser each, {rollout.contexts_per_worker} episodes at once",
        ),
    ]  # fmt: skip
    if recipe.llm.models:
        processes.append(ProcessPlan("judge service", 1, 0.0, 0.0, _JUDGING_MB, "asks language models"))
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


def _sharing(recipe: Recipe) -> tuple[str, ...]:
    """Return a sentence where processes would share a GPU on which they could not meet."""
    ranks, each = recipe.learner.ranks, recipe.run.resources.learner_gpus
    if recipe.learner.device == "cpu":
        return ()
    said = []
    if ranks > 1 and each < 1:
        said.append(
            f"GPUs: each rank of learner.ranks {ranks} needs one of its own, run.resources.learner_gpus is {each:g}"
        )
    backend, options = backend_of(recipe.policy)
    served = backend.processes(options).gpus
    if recipe.policy.publication == "broadcast" and (each % 1 or served % 1):
        said.append(
            "GPUs: policy.publication broadcast needs a GPU for the learner and others for each server; here they may "
            f"share one (run.resources.learner_gpus is {each:g}, a server has {served:g}): set it to file"
        )
    return tuple(said)


def _gpus_for(processes: Sequence[ProcessPlan]) -> int:
    """Return how many GPUs hold the processes: the largest are placed first, each share where one has room for it."""
    shares = sorted((process.gpus for process in processes for _ in range(process.count)), reverse=True)
    room = list[float]()
    for share in (share for share in shares if 0 < share < 1):
        place = next((i for i, left in enumerate(room) if share <= left), len(room))
        if place == len(room):
            room.append(1.0)
        room[place] = round(room[place] - share, 4)  # Ray counts in ten-thousandths
    return len(room) + sum(int(share) for share in shares if share >= 1)


def _missing(recipe: Recipe, gpus: int, memory_mb: int, machine: Machine, large_model: bool) -> tuple[str, ...]:
    missing = []
    if memory_mb > machine.memory_mb:
        advice = (
            "choose a smaller model, an algorithm with fewer critics or a larger machine; waymark check lists parts"
            if large_model
            else "lower rollout.workers or rollout.contexts_per_worker, or correct the estimates in run.resources"
        )
        missing.append(f"memory: the plan needs {memory_mb} MiB, this machine has {machine.memory_mb} MiB; {advice}")
    if gpus > machine.gpus:
        ranks, each = recipe.learner.ranks, recipe.run.resources.learner_gpus
        of_ranks = f", {ranks * each:g} of them for learner.ranks {ranks}" if ranks > 1 else ""
        here = f"this machine has {machine.gpus}; see run.resources and policy.options"
        missing.append(f"GPUs: the plan needs {gpus}{of_ranks}, {here}")
    return tuple(missing)


def _read_again(recipe: Recipe, servers: ServerProcesses) -> list[str]:
    """Return a sentence where more episodes are played at once than the servers keep the prompts of."""
    episodes = recipe.rollout.workers * recipe.rollout.contexts_per_worker
    if not servers.kept_prompts or episodes <= servers.count * servers.kept_prompts:
        return []
    return [
        f"policy.options.kept_prompts: {episodes} episodes are played at once, the servers keep the prompts of "
        f"{servers.count * servers.kept_prompts}, and read the others whole again; set it to "
        f"{-(-episodes // servers.count)}, or lower rollout.contexts_per_worker"
    ]


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
