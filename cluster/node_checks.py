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
from records.checks import Check, Status
from records.roles import Role

_LOG = logging.getLogger(__name__)
_LOOK_S = 60.0
"""Fixed: a look takes seconds; a node that does not answer by then is told of by what starts there."""


def require_equipped(recipe: Recipe) -> None:
    """Raise ``MissingError`` where nodes that are there lack what a role needs.

    Of nodes that the recipe names for a role each must do, because Ray may choose any; where it names none, one.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]
    asked = {
        role: {node["NodeManagerAddress"]: _ask(recipe, role, node) for node in nodes if has_room(demand, node)}
        for role, demand in demands(recipe).items()
    }
    wrong = [line for role, looks in asked.items() for line in _lacking(role, demands(recipe)[role], looks)]
    if wrong:
        raise MissingError("\n".join(wrong))


def look(recipe: Recipe, role: Role, gpus: int) -> list[Check]:
    """Return what is missing here for a role; ``gpus`` are the node's, of which a look is given none."""
    machine = replace(Machine.here(), gpus=gpus)
    checks = machine_checks(recipe, Path(), machine, roles=(role,))
    return [check for check in checks if check.status is Status.FAIL]


def _ask(recipe: Recipe, role: Role, node: Mapping[str, Any]) -> Any:
    remote: Any = ray.remote
    place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    there = remote(num_cpus=0, max_retries=0, scheduling_strategy=place)(look)
    return there.remote(recipe, role, int(node["Resources"].get("GPU", 0)))


def _lacking(role: Role, demand: Demand, looks: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each node that lacks something, none where enough of them do."""
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
        return []
    return [
        f"node {address}, for a {ROLES[role]}: {check.name}: {check.found}. {check.advice}".rstrip()
        for address, checks in lacking.items()
        for check in checks
    ]
