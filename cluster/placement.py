"""Where a run's processes may stand, and what each declares to Ray.

Owns the demand of each role: cores, GPUs, memory and the custom resource of the nodes that the recipe names for it.
Invariant: what is declared here is what the plan counts (``cluster.preflight.plan``), and what ``cluster.node_watch``
says is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.recipe.recipe import Recipe
from policy.backend import backend_of
from records.roles import Role

LEARNER, SERVER, WORKER, DRIVER = Role.LEARNER, Role.SERVER, Role.WORKER, Role.DRIVER
EVERYWHERE = tuple(Role)
"""All that a run consists of."""
ROLES: Mapping[Role, str] = {
    Role.LEARNER: "learner", Role.SERVER: "policy server", Role.WORKER: "rollout worker",
}  # fmt: skip
"""What a role is called to people; actors' names end with the role and a number."""
SHARE = 0.001
"""Of a custom resource: what one process takes, so that a node that has one of it holds as many as it has cores for."""
_PLENTY = 1000.0
"""Of a custom resource that a Ray of a run's own has."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one process declares; memory in MiB. ``node`` is a custom resource that its node must have, or empty."""

    cpus: float
    gpus: float
    memory_mb: int
    node: str = ""

    @property
    def resources(self) -> dict[str, float]:
        """Custom resources, as Ray's options take them."""
        return {self.node: SHARE} if self.node else {}

    @property
    def options(self) -> dict[str, Any]:
        """All of it, as Ray's options take it."""
        memory = self.memory_mb * 2**20
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "memory": memory, "resources": self.resources}

    @property
    def bundle(self) -> dict[str, float]:
        """All of it by Ray's names of resources, without those of which it wants nothing."""
        named = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory_mb * 2**20), **self.resources}
        return {name: amount for name, amount in named.items() if amount}

    def __str__(self) -> str:
        """Return the demand as a person reads it."""
        parts = [f"{self.cpus:g} CPUs"] if self.cpus else []
        parts += [f"{self.gpus:g} GPUs"] if self.gpus else []
        parts += [f"{self.memory_mb} MiB"] if self.memory_mb else []
        parts += [f"on a node with the resource {self.node!r}"] if self.node else []
        return ", ".join(parts) or "nothing"


def demands(recipe: Recipe) -> Mapping[Role, Demand]:
    """Return what one process of each role declares."""
    resources, rollout = recipe.run.resources, recipe.rollout
    backend, options = backend_of(recipe.policy)
    server = backend.processes(options)
    return {
        Role.LEARNER: Demand(
            resources.learner_cpus, resources.learner_gpus, resources.learner_memory_mb, resources.learner_nodes
        ),
        Role.SERVER: Demand(server.cpus, server.gpus, server.memory_mb, resources.policy_nodes),
        Role.WORKER: Demand(rollout.worker_cpus, 0.0, worker_memory_mb(recipe), resources.rollout_nodes),
    }


def worker_memory_mb(recipe: Recipe) -> int:
    """Return the memory of one rollout worker with its browser, in MiB: as declared, or as the plan estimates it."""
    resources, rollout = recipe.run.resources, recipe.rollout
    estimate = resources.memory_mb_per_rollout_worker + rollout.contexts_per_worker * resources.memory_mb_per_context
    return rollout.worker_memory_mb or estimate


def has_room(demand: Demand, node: Mapping[str, Any]) -> bool:
    """Whether a node of Ray's table could hold one process if nothing else was on it."""
    return all(node["Resources"].get(name, 0.0) >= amount for name, amount in demand.bundle.items())


def own_resources(recipe: Recipe) -> dict[str, float]:
    """Return the custom resources that a Ray of the run's own has: a cluster's recipe runs on one machine as it is."""
    return {demand.node: _PLENTY for demand in demands(recipe).values() if demand.node}
