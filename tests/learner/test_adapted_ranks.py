"""Adapters that two ranks train are those that one trains, and so is what is published, saved and read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from learner.settings import AdapterSettings, LearnerSettings
from learner.trainer import Learner
from policy.published_weights import PublishedWeights
from policy.weights import read_weights
from tests.learner.rank_group import on_ranks
from tests.learner.test_ranks import ONE as WHOLE
from tests.learner.test_ranks import data

ONE = replace(WHOLE, adapters=AdapterSettings(rank=4, alpha=8.0, backbone_dtype="float32"))
TWO = replace(ONE, ranks=2)


def adapters(learner: Learner) -> dict[str, Tensor]:
    modules = {"actor": learner.actor.kept, **{name: critic.model for name, critic in learner.critics.items()}}
    return {f"{part}.{name}": t.clone() for part, module in modules.items() for name, t in module.state_dict().items()}


def a_phase(settings: LearnerSettings, model_dir: Path | str, folder: Path) -> None:
    """Clone, learn a phase, publish, export and save; each rank leaves what came of it."""
    learner, episodes = Learner(settings, model_dir, folder / "bookmarks"), data()
    rank = learner.compute.ranks.rank
    cloned = learner.clone(episodes)
    critics = learner.update_critics(episodes, [], 1, 5)
    actor = learner.update_actor(episodes, [], 1, 5)
    scores = [torch.from_numpy(step) for episode in learner.score(episodes) for step in episode]
    answers = [torch.from_numpy(answer) for answer in learner.ask("potential", episodes)]
    losses = [cloned.loss, *(metrics.loss for metrics in critics.critics.values()), actor.actor.loss]
    norms = [*(metrics.grad_norm for metrics in critics.critics.values()), actor.actor.grad_norm]
    numbers = torch.tensor([*losses, *norms], dtype=torch.float64)
    found = {"adapters": adapters(learner), "scores": scores, "answers": answers, "numbers": numbers}
    torch.save(found, folder / f"found-{rank}.pt")
    weights = learner.publish(folder, 1)
    (folder / f"weights-{rank}.json").write_text(json.dumps([weights.checksum, weights.path]))
    learner.export(folder / "trained")
    learner.save(folder / "checkpoint")


def of_two(model_dir: str, folder: str) -> None:
    a_phase(TWO, model_dir, Path(folder))


def read_by_two(model_dir: str, checkpoint: str, folder: str) -> None:
    learner = Learner(TWO, model_dir)
    learner.load(checkpoint)
    torch.save(adapters(learner), Path(folder) / f"read-{learner.compute.ranks.rank}.pt")


@pytest.fixture(scope="module")
def one(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    a_phase(ONE, model_dir, folder)
    return folder


@pytest.fixture(scope="module")
def two(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    on_ranks(2, of_two, folder, model_dir, folder)
    return folder


@pytest.mark.parametrize("what", ["adapters", "scores", "answers", "numbers"])
def test_two_ranks_equal_one(what: str, one: Path, two: Path) -> None:
    first = torch.load(one / "found-0.pt")[what]
    for rank in (0, 1):
        torch.testing.assert_close(torch.load(two / f"found-{rank}.pt")[what], first, rtol=1e-5, atol=1e-5)


def test_both_ranks_have_the_same_adapters_bit_for_bit_and_they_have_learned(two: Path, model_dir: Path) -> None:
    first, second = (torch.load(two / f"found-{rank}.pt")["adapters"] for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    fresh = adapters(Learner(ONE, model_dir))
    assert all(
        not torch.equal(first[name], fresh[name]) for name in first if name.startswith("actor") and "lora_B" in name
    )


def test_what_two_ranks_publish_export_and_save_is_what_they_have(two: Path, model_dir: Path) -> None:
    expected = torch.load(two / "found-0.pt")["adapters"]
    named = [json.loads((two / f"weights-{rank}.json").read_text()) for rank in (0, 1)]
    assert named[0] == named[1]
    published = read_weights(PublishedWeights(1, *named[0])).tensors  # type: ignore[union-attr]
    exported = load_file(two / "trained" / "adapter" / "adapter_model.safetensors")
    for tensors in (published, exported):
        own = {f"actor.{name}": tensor for name, tensor in tensors.items()}
        assert own.keys() == {name for name in expected if name.startswith("actor")}
        assert all(torch.equal(tensor, expected[name]) for name, tensor in own.items())
    alone = Learner(ONE, model_dir)
    alone.load(two / "checkpoint")
    assert all(torch.equal(tensor, expected[name]) for name, tensor in adapters(alone).items())


def test_a_checkpoint_of_one_is_read_by_two(one: Path, model_dir: Path, tmp_path: Path) -> None:
    on_ranks(2, read_by_two, tmp_path, model_dir, one / "checkpoint", tmp_path)
    expected = torch.load(one / "found-0.pt")["adapters"]
    for rank in (0, 1):
        found = torch.load(tmp_path / f"read-{rank}.pt")
        assert all(torch.equal(found[name], expected[name]) for name in expected)
