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
from records.folder_mark import marked_folder
from tests.nodes.confined import version
from tests.nodes.machines import Machines, machines


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    """A cluster whose head has room for all roles."""
    with machines(cpus=4) as made:
        yield made


@pytest.fixture(scope="module")
def browsers(cluster: Machines) -> str:
    """The address of a second node, which has the resource of workers."""
    return cluster.add(cpus=1, resources={"browser": 1}).address


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


def test_a_look_tells_of_a_folder_that_is_not_the_runs(tmp_path: Path) -> None:
    recipe = build_recipe({}, ["run.environment=browserless"])
    with marked_folder(tmp_path) as mark:
        assert look(recipe, WORKER, 0, mark) == []
    (found,) = look(recipe, WORKER, 0, mark)
    assert (found.name, found.found) == ("run folder", f"{tmp_path} is another folder than the driver's")
    assert "mount the driver's folder on every node" in found.advice


@pytest.mark.skipif(version() == 0, reason="no Landlock in this kernel")
def test_a_node_that_does_not_see_the_run_folder_is_named_although_others_do(cluster: Machines, tmp_path: Path) -> None:
    """The node, from which the kernel keeps the folder, has room for each role, as the head has."""
    seen, out, recipe = tmp_path / "seen", tmp_path / "out", build_recipe({}, ["run.environment=browserless"])
    seen.mkdir()
    out.mkdir()
    lost = cluster.add(cpus=1, forbidden=[out]).address
    with marked_folder(seen) as mark:
        require_equipped(recipe, mark)
    with marked_folder(out) as mark, pytest.raises(MissingError) as refused:
        require_equipped(recipe, mark)
    advice = "mount the driver's folder on every node at this path, or name the nodes that have it in "
    assert [line.partition(advice)[0] for line in str(refused.value).splitlines()] == [
        f"node {lost}, for a {role}: run folder: {out} cannot be read: permission denied. "
        for role in ("learner", "policy server", "rollout worker")
    ]
