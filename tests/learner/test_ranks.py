"""Two ranks learn what one learns, and a rank that is killed costs what was learned since the last bookmark."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

import learner.actor
from learner.settings import ActorSettings, CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from policy.weights import own_tensors
from records.episodes import Trajectory
from tests.learner.conftest import make_trajectory
from tests.learner.rank_group import LIMIT_S, on_ranks, start_ranks
from tests.model_families import EXPERTS, FAMILIES, SEEING, save

CRITIC = CriticSettings(learning_rate=1e-3, batch_steps=8, epochs=2)
ONE = LearnerSettings(
    clone=CloneSettings(learning_rate=1e-3, updates=3, batch_steps=8),
    actor=ActorSettings(learning_rate=1e-3, batch_steps=8, epochs=2),
    value=CRITIC,
    potential=CRITIC,
    reference="warm_start",
    micro_batch_tokens=24,  # several micro-batches an update, and not always an even number
    recompute=True,
)
TWO = replace(ONE, ranks=2)
MARKED = replace(TWO, bookmark_every_s=1e-9)


def data() -> list[Trajectory]:
    return [
        make_trajectory(
            [([3, 4, 30 + i], [10 + i, 2]), ([3, 5, 30 + i, 7, 8][: 3 + i % 3], [12, 2, 4][: 1 + i % 3])],
            outcome=float(i % 2),
            episode_id=f"e{i}",
        )
        for i in range(10)
    ]


def whole(learner: Learner) -> dict[str, Tensor]:
    ranks = learner.compute.ranks
    modules = {"actor": learner.actor.model, **{name: critic.model for name, critic in learner.critics.items()}}
    return {
        f"{part}.{name}": ranks.full_tensor(tensor).detach().clone()
        for part, module in modules.items()
        for name, tensor in own_tensors(module).items()
    }


def a_phase(learner: Learner, folder: Path) -> None:
    """Clone, learn a phase, publish, export and save; leave what came of it, by rank 0."""
    found: dict[str, object] = {}
    episodes = data()
    cloned = learner.clone(episodes)
    found["after cloning"] = whole(learner)
    scores = [torch.from_numpy(step) for episode in learner.score(episodes) for step in episode]
    critics = learner.update_critics(episodes, [], 1, 5)
    answers = [torch.from_numpy(answer) for answer in learner.ask("value", episodes)]
    actor = learner.update_actor(episodes, [], 1, 5)
    found["after the phase"] = whole(learner)
    weights = learner.publish(folder, 1)
    learner.export(folder / "trained")
    learner.save(folder / "checkpoint")
    if learner.compute.ranks.first:
        losses = [cloned.loss, *(metrics.loss for metrics in critics.critics.values()), actor.actor.loss]
        norms = [*(metrics.grad_norm for metrics in critics.critics.values()), actor.actor.grad_norm]
        auc = critics.critics["value"].ratings["auc"]
        numbers = torch.tensor([*losses, *norms, auc], dtype=torch.float64)
        torch.save({**found, "scores": scores, "answers": answers, "numbers": numbers}, folder / "found.pt")
        (folder / "weights.json").write_text(json.dumps([weights.checksum, weights.path]))


def of_two(model_dir: str, folder: str) -> None:
    a_phase(Learner(TWO, model_dir), Path(folder))


@pytest.fixture(scope="module")
def one(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    a_phase(Learner(ONE, model_dir), folder)
    return folder


@pytest.fixture(scope="module")
def two(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    on_ranks(2, of_two, folder, model_dir, folder)
    return folder


@pytest.mark.parametrize("what", ["after cloning", "after the phase", "scores", "answers", "numbers"])
def test_two_ranks_equal_one(what: str, one: Path, two: Path) -> None:
    first, second = (torch.load(folder / "found.pt")[what] for folder in (one, two))
    torch.testing.assert_close(second, first, rtol=1e-5, atol=1e-5)


def test_what_two_ranks_publish_export_and_save_is_the_whole_model(one: Path, two: Path, model_dir: Path) -> None:
    expected = torch.load(two / "found.pt")["after the phase"]
    actor = {name.removeprefix("actor."): tensor for name, tensor in expected.items() if name.startswith("actor.")}
    checksum, path = json.loads((two / "weights.json").read_text())
    assert len(checksum) == 64
    for file in (Path(path), two / "trained" / "model.safetensors"):
        assert load_file(file).keys() == load_file(one / file.relative_to(two)).keys()
        assert all(torch.equal(tensor, actor[name]) for name, tensor in load_file(file).items())
    learner = Learner(ONE, model_dir)
    learner.load(two / "checkpoint")
    found = whole(learner)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


def publish_families(folder: str) -> None:
    for model in sorted(Path(folder).glob("model-*")):
        Learner(TWO, model).publish(Path(folder) / f"of-{model.name}", 1)


def test_two_ranks_publish_the_file_of_one_also_where_names_in_memory_are_others(tmp_path: Path) -> None:
    models = [save(family, tmp_path / f"model-{n}") for n, family in enumerate((SEEING, EXPERTS))]
    for model in models:
        (tmp_path / f"of-{model.name}").mkdir()
    on_ranks(2, publish_families, tmp_path, tmp_path)
    for model in models:
        (tmp_path / f"one-{model.name}").mkdir()
        one = Path(Learner(ONE, model).publish(tmp_path / f"one-{model.name}", 1).path)
        with safe_open(one, "pt") as weights:
            assert "views" in weights.metadata()
        assert (tmp_path / f"of-{model.name}" / one.name).read_bytes() == one.read_bytes()


def until_a_rank_is_killed(model_dir: str, folder: str) -> None:
    """Train the actor after the phase; the second rank is killed within the fourth update."""
    made: list[None] = []
    update = learner.actor.update

    def deadly(*given: Any, **named: Any) -> tuple[float, float]:
        if len(made) == 3 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        made.append(None)
        result: tuple[float, float] = update(*given, **named)
        return result

    learner.actor.update = deadly
    dying = Learner(MARKED, model_dir, Path(folder) / "bookmarks")
    dying.load(Path(folder) / "checkpoint")
    dying.update_actor(data(), [], 2, 5)


def go_on(model_dir: str, folder: str) -> None:
    """Train the actor after the phase: on from the bookmark, and then from its beginning."""
    going = Learner(MARKED, model_dir, Path(folder) / "bookmarks")
    found = []
    for _ in range(2):
        going.load(Path(folder) / "checkpoint")
        before = going.compute.meter.now.signs
        metrics = going.update_actor(data(), [], 2, 5)
        state = {**whole(going), **{f"moment {name}": tensor for name, tensor in moments(going).items()}}
        found.append({"state": state, "loss": metrics.actor.loss, "signs": going.compute.meter.now.signs - before})
        going.compute.bookmarks.saved("")
    if going.compute.ranks.first:
        torch.save(found, Path(folder) / "went-on.pt")


def moments(learner: Learner) -> dict[str, Tensor]:
    state = learner.actor_optimiser.state
    parameters = enumerate(learner.actor.parameters())
    return {
        f"{i} {name}": learner.compute.ranks.full_tensor(one) for i, p in parameters for name, one in state[p].items()
    }


def test_a_killed_rank_costs_what_was_learned_since_the_last_bookmark(two: Path, model_dir: Path) -> None:
    ranks = start_ranks(2, until_a_rank_is_killed, two, model_dir, two)
    ends = time.monotonic() + LIMIT_S
    while ranks[1].poll() is None and time.monotonic() < ends:
        time.sleep(0.1)
    assert ranks[1].poll() == -signal.SIGKILL
    for rank in ranks:
        rank.communicate(timeout=LIMIT_S)  # the group ends: what is left of it cannot go on
    assert ranks[0].returncode
    on_ranks(2, go_on, two, model_dir, two)
    went_on, straight = torch.load(two / "went-on.pt")
    assert went_on["loss"] == straight["loss"]
    assert went_on["state"].keys() == straight["state"].keys()
    assert all(torch.equal(went_on["state"][name], tensor) for name, tensor in straight["state"].items())
    assert straight["signs"] - went_on["signs"] == 3  # updates that were not made again


def a_short_phase(settings: LearnerSettings, model: Path) -> dict[str, Tensor]:
    """Train critics and actor once; return the critic's answers, the actor's scores and its weights."""
    one, episodes = Learner(settings, model), data()
    one.update_critics(episodes, [], 1, 5)
    one.update_actor(episodes, [], 1, 5)
    scores = [torch.from_numpy(step) for episode in one.score(episodes) for step in episode]
    answers = [torch.from_numpy(answer) for answer in one.ask("value", episodes)]
    actor = {name: tensor for name, tensor in whole(one).items() if name.startswith("actor.")}
    return {"scores": torch.cat(scores), "answers": torch.cat(answers), **actor}


def of_families(folder: str) -> None:
    for model in sorted(Path(folder).glob("model-*")):
        found = a_short_phase(TWO, model)
        half = a_short_phase(replace(TWO, precision="bfloat16"), model)
        if os.environ["RANK"] == "0":
            torch.save((found, half), Path(folder) / f"of-{model.name}.pt")


@pytest.mark.lengthy
def test_every_family_learns_on_two_ranks_and_in_half_precision_about_the_same(tmp_path: Path) -> None:
    models = [save(family, tmp_path / f"model-{name}") for name, family in {**FAMILIES, "seeing": SEEING}.items()]
    on_ranks(2, of_families, tmp_path, tmp_path)
    for model in models:
        expected = a_short_phase(ONE, model)
        found, half = torch.load(tmp_path / f"of-{model.name}.pt")
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        assert {tensor.dtype for tensor in half.values()} == {torch.float32}
        torch.testing.assert_close(half["scores"], expected["scores"], rtol=0.05, atol=0.05)
        torch.testing.assert_close(half["answers"], expected["answers"], rtol=0.02, atol=0.02)
