"""Nodes of a real Ray are looked at for the roles that they have, from themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from cluster.errors import MissingError
from cluster.node_checks import look, require_equipped
from cluster.placement import LEARNER, WORKER
from cluster.recipe.recipe import build_recipe
from tests.nodes.machines import machines


@pytest.fixture(scope="module")
def browsers() -> Iterator[str]:
    """A cluster whose head has the resources of all roles; a second node, of this address, has that of workers."""
    with machines(cpus=4) as cluster:
        yield cluster.add(cpus=1, resources={"browser": 1}).address


def test_a_look_tells_what_is_missing_for_a_role(tmp_path: Path) -> None:
    recipe = build_recipe({}, ["learner.device=cuda", f"browser.executable={tmp_path / 'none'}"])
    assert [check.name for check in look(recipe, LEARNER, gpus=0)] == ["learner.device"]
    assert look(recipe, LEARNER, gpus=1) == [], "the node's GPUs count: Ray hides them from who asks for none"
    assert [check.name for check in look(recipe, WORKER, gpus=0)] == ["browser"]


def test_a_node_that_lacks_what_its_role_needs_is_named(browsers: str, tmp_path: Path) -> None:
    lacking = f"browser.executable={tmp_path / 'none'}"
    named = build_recipe({}, [lacking, "run.resources.rollout_nodes=browser"])
    with pytest.raises(MissingError) as refused:
        require_equipped(named)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"node {browsers}, for a rollout worker: browser: none that can be used. ")
    assert "none" in line
    require_equipped(build_recipe({}, ["run.resources.rollout_nodes=browser"]))
    require_equipped(build_recipe({}, [lacking, "run.environment=browserless"]))
    assert ray.is_initialized()
