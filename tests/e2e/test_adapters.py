"""``waymark train`` with adapters: cut short, gone on with, published to a server, exported and evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policy.adapters import Adapter
from policy.published_weights import PublishedWeights
from policy.tokenizer import TextTokenizer
from policy.weights import read_weights
from tests.e2e.command import Run, interrupt
from tests.e2e.test_train import TINY, assert_done, recipe

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]


def test_a_run_with_adapters_goes_on_publishes_them_and_ends_with_a_whole_policy(tmp_path: Path) -> None:
    learner = {**TINY["learner"], "adapters": {"rank": 4, "alpha": 8.0}}
    run = Run(tmp_path, recipe(learner=learner))
    run.run_until(lambda: run.stage_done(0, "publish"), interrupt)
    assert_done(run.run())

    current = json.loads((run.out / "weights" / "current.json").read_text())
    published = read_weights(PublishedWeights(**current))
    assert isinstance(published, Adapter)
    assert published.shape.rank == 4
    whole = (run.out / "policy" / "model.safetensors").stat().st_size
    kept = run.out / "checkpoints" / "phase-001" / "actor.safetensors"
    assert kept.stat().st_size < whole / 2
    assert TextTokenizer.load(run.out / "trained").digest == TextTokenizer.load(run.out / "policy").digest
    evaluated = run.run("--policy", str(run.out / "trained"), "--split", "test", command="eval")
    assert evaluated.code == 0, evaluated.errors
