"""A run of the command that learns from imported trajectories, from their file to a policy that plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.audit.audit import audit
from cluster.data_import import import_data
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.stage_results import Cloned, CriticsPretrained
from records.episodes import Source
from tests.e2e.command import ROOT, Run
from tests.e2e.test_train import assert_done, recipe
from tests.offline.made_sources import FAILED, conversations, experience, write_json

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]


def test_a_run_clones_what_was_imported_and_plays_with_it(tmp_path: Path) -> None:
    raw = recipe(
        warm_start={"checkpoint": str(ROOT / "cluster/recipes/tiny-cloned"), "data": str(tmp_path / "data")},
        policy={"max_prompt_tokens": 500, "max_new_tokens": 64},
        learner={"clone": {"learning_rate": 1e-3, "updates": 20, "batch_steps": 4}},
    )
    source = [*conversations(), *(experience(step, FAILED, 0) for step in range(2))]
    import_data(build_recipe(raw), write_json(tmp_path / "source.json", source), tmp_path / "data")
    run = Run(tmp_path / "run", raw)
    assert_done(run.run())
    cloned, critics = run.manifest.result(0, Cloned), run.manifest.result(0, CriticsPretrained)
    assert len(cloned.imported) == 2
    assert cloned.metrics is not None
    assert cloned.metrics.loss is not None
    assert (critics.dispatched, critics.metrics["value"].states, critics.metrics["potential"].states) == (0, 5, 0)
    assert set(run.buffer.ids(sources=[Source.DEMONSTRATION])) == set(cloned.imported), "no expert has played"
    assert audit(run.out).findings == []
    assert_done(run.run())
