"""Two ranks are one learner to the controller: they start, answer, publish, and end together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ray
from safetensors.torch import load_file

from cluster.errors import ProcessLost
from cluster.learner_client import LearnerClient, start_learner
from cluster.node_watch import NodeWatch
from cluster.placement import demands
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RunFolders
from learner.trainer import Learner
from tests.model_families import FAMILIES, save
from tests.rollout_workers.ray_cluster import small_ray

OVERRIDES = ["learner.ranks=2", "run.resources.learner_cpus=0.25", "run.learner_timeout_s=120"]
PROMPT, ACTION = [1, 2, 3, 4], [5, 6, 7]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(next(iter(FAMILIES.values())), tmp_path_factory.mktemp("model") / "m")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return build_recipe({}, OVERRIDES)


@pytest.fixture
def started(recipe: Recipe, model: Path, tmp_path: Path) -> Iterator[LearnerClient]:
    with small_ray(), NodeWatch(demands(recipe), 300.0, lambda waiting: None) as nodes:
        client = start_learner(recipe, str(model), RunFolders(tmp_path / "out"), lambda headway: None, nodes)
        client.ready()
        yield client


def test_a_group_answers_as_one_rank_does_and_a_killed_rank_ends_it_by_name(
    started: LearnerClient, recipe: Recipe, model: Path, tmp_path: Path
) -> None:
    alone = Learner(replace(recipe.learner, ranks=1), model)
    expected = alone.probe(PROMPT, ACTION)  # type: ignore[arg-type]
    assert started.probe(PROMPT, ACTION) == pytest.approx(expected.tolist(), abs=1e-5)
    started.save("cloned")
    started.load("cloned")
    published = started.publish(3)
    written = alone.publish(tmp_path / "alone", 3)
    assert published.checksum == written.checksum
    started.export(critics="")
    exported, whole = (
        load_file(next(folder.glob("*.safetensors"))) for folder in (tmp_path / "out" / "trained", model)
    )
    assert exported.keys() == whole.keys()
    ray.kill(started._ranks[1])
    with pytest.raises(ProcessLost, match=r"the learner's rank 1 ended during probe: it was killed by `ray.kill`"):
        started.probe(PROMPT, ACTION)
