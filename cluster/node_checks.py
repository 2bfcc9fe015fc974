"""The nodes of a cluster, looked at from themselves: whether what a role needs is there, before anything starts.

Owns which nodes are asked for which role. Nodes that come later, with an autoscaler, are not looked at; what they lack
is said by what starts there. Needs a running Ray.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cluster.errors import MissingError
from cluster.placement import ROLES, Demand, demands, has_room
from cluster.preflight.doctor import machine_checks
from cluster.preflight.machine import Machine
from cluster.recipe.recipe import Recipe
from policy.backend import backend_of
from records.checks import Check, Status
from records.folder_mark import ADVICE, lack
from records.roles import Role

_LOG = logging.getLogger(__name__)
_RUN_FOLDER = "run folder"
_LOOK_S = 60.0
"""Fixed: a look takes seconds; a node that does not answer by then is told of by what starts there."""


def require_equipped(recipe: Recipe, mark: str = "") -> None:
    """Raise ``MissingError`` where nodes that are there lack what a role needs.

    Of nodes that the recipe names for a role each must do, because Ray may choose any; where it names none, one. Each
    must see the run folder, which has ``mark`` (``records.folder_mark``): Ray may choose one that does not.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = {
        role: {
            node["NodeManagerAddress"]: _ask(recipe, role, node, mark if _needs_folder(recipe, role) else "")
            for node in nodes
            if has_room(demand, node)
        }
        for role, demand in demands(recipe).items()
    }
    wrong = [line for role, looks in asked.items() for line in _lacking(role, demands(recipe)[role], looks)]
    if wrong:
        raise MissingError("\n".join(wrong))


def look(recipe: Recipe, role: Role, gpus: int, mark: str = "") -> list[Check]:
    """Return what is missing here for a role; ``gpus`` are the node's, of which a look is given none."""
    machine = replace(Machine.here(), gpus=gpus)
    checks = machine_checks(recipe, Path(), machine, roles=(role,))
    if found := lack(mark):
        checks.append(Check(_RUN_FOLDER, Status.FAIL, found, ADVICE))
    return [check for check in checks if check.status is Status.FAIL]


def _needs_folder(recipe: Recipe, role: Role) -> bool:
    """Whether a role works in the run folder; policy servers may be those of others, or have a store of weights."""
    backend, options = backend_of(recipe.policy)
    return role is not Role.SERVER or (backend.processes(options).count > 0 and not recipe.policy.weights_store)


def _ask(recipe: Recipe, role: Role, node: Mapping[str, Any], mark: str) -> Any:
    remote: Any = ray.remote
    place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    there = remote(num_cpus=0, max_retries=0, scheduling_strategy=place)(look)
    return there.remote(recipe, role, int(node["Resources"].get("GPU", 0)), mark)


def _lacking(role: Role, demand: Demand, looks: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each node that lacks something; where enough of them do, for each that lacks the folder."""
    ready, _ = ray.wait(list(looks.values()), num_returns=len(looks), timeout=_LOOK_S) if looks else ([], [])
    found: dict[str, list[Check]] = {}
    for address, reply in looks.items():
        try:
            found[address] = ray.get(reply, timeout=_LOOK_S) if reply in ready else []
        except RayError as error:
            _LOG.warning("node %s was not looked at for a %s: %s", address, ROLES[role], error)
            found[address] = []
    lacking = {address: checks for address, checks in found.items() if checks}
    if not demand.node and len(lacking) < len(found):
        lacking = {node: [check for check in checks if check.name == _RUN_FOLDER] for node, checks in lacking.items()}
    return [
        f"node {address}, for a {ROLES[role]}: {check.name}: {check.found}. {check.advice}".rstrip()
        for address, checks in lacking.items()
        for check in checks
    ]
