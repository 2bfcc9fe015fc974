"""A learner that dies within a stage goes on from where its training stood, to the very result."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import learner.actor
import learner.clone
import learner.trained_critics
from learner.headway import Headway
from learner.settings import ActorSettings, CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from records.episodes import Trajectory

CRITIC = CriticSettings(learning_rate=1e-3, batch_steps=4, epochs=2, pretrain_learning_rate=1e-3)
SETTINGS = LearnerSettings(
    clone=CloneSettings(learning_rate=1e-3, updates=6, batch_steps=4),
    actor=ActorSettings(learning_rate=1e-3, batch_steps=4, epochs=2),
    value=CRITIC,
    potential=CRITIC,
    bookmark_every_s=1e-9,
)
STAGES: dict[str, tuple[Any, Callable[[Learner, list[Trajectory]], Any]]] = {
    "clone": (learner.clone, lambda learner, data: learner.clone(data)),
    "pretrain": (learner.trained_critics, lambda learner, data: learner.pretrain("value", data)),
    "critics": (learner.trained_critics, lambda learner, data: learner.update_critics(data, [], 1, 5)),
    "actor": (learner.actor, lambda learner, data: learner.update_actor(data, [], 1, 5)),
}


class Died(Exception):
    """The learner's process did."""


@pytest.fixture
def data(trajectory: Callable[..., Trajectory]) -> list[Trajectory]:
    return [
        trajectory([([3, 4, 30 + i], [10 + i, 2]), ([3, 5, 30 + i], [12, 2])], outcome=float(i % 2), episode_id=f"e{i}")
        for i in range(8)
    ]


def began(model_dir: Path, out: Path, data: list[Trajectory], settings: LearnerSettings = SETTINGS) -> Learner:
    """A learner before its stage, as a start of the run finds it: what was there before comes from a checkpoint."""
    learner = Learner(settings, model_dir, out / "bookmarks")
    if not (out / "before").exists():
        Learner(settings, model_dir).save(out / "before")
    learner.load(out / "before")
    return learner


def dies_after(count: int, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the update after ``count`` more be the learner's last, half done."""
    done = []
    update = module.update

    def dying(model: torch.nn.Module, *given: Any, **named: Any) -> tuple[float, float]:
        if len(done) == count:
            with torch.no_grad():
                next(model.parameters()).add_(1.0)
            raise Died
        done.append(None)
        result: tuple[float, float] = update(model, *given, **named)
        return result

    monkeypatch.setattr(module, "update", dying)


def updates_made(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    made: list[None] = []
    update = module.update

    def counted(*given: Any, **named: Any) -> tuple[float, float]:
        made.append(None)
        result: tuple[float, float] = update(*given, **named)
        return result

    monkeypatch.setattr(module, "update", counted)
    return made


def everything(learner: Learner) -> list[torch.Tensor]:
    modules = (learner.actor, *(critic.model for critic in learner.critics.values()))
    optimisers = (learner.actor_optimiser, *(critic.optimiser for critic in learner.critics.values()))
    moments = [
        optimiser.state[parameter][name]
        for optimiser in optimisers
        for parameter in optimiser.param_groups[0]["params"]
        for name in sorted(optimiser.state[parameter])
    ]
    return [*(tensor for module in modules for tensor in module.state_dict().values()), *moments]


def without_times(metrics: Any) -> str:
    return re.sub(r"(seconds|tokens_per_s)=(\{[^}]*\}|[^,)]*)", "", repr(metrics))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("at", [1, 3])
def test_the_result_is_the_one_without_the_death_bit_for_bit(
    stage: str, at: int, model_dir: Path, tmp_path: Path, data: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, work = STAGES[stage]
    straight = began(model_dir, tmp_path, data)
    expected = work(straight, data)
    straight.save(tmp_path / "after")
    assert not (tmp_path / "bookmarks").exists()
    with monkeypatch.context() as patch:
        dies_after(at, module, patch)
        dying = began(model_dir, tmp_path, data)
        with pytest.raises(Died):
            work(dying, data)
    again = began(model_dir, tmp_path, data)
    with monkeypatch.context() as patch:
        made = updates_made(module, patch)
        found = work(again, data)
    whole = {"clone": 6, "pretrain": 4, "critics": 12, "actor": 8}[stage]
    assert len(made) == whole - at
    assert without_times(found) == without_times(expected)
    assert all(torch.equal(a, b) for a, b in zip(everything(straight), everything(again), strict=True))
    again.save(tmp_path / "again")
    assert not (tmp_path / "bookmarks").exists()


def test_the_second_critic_goes_on_and_the_first_is_not_taught_again(
    model_dir: Path, tmp_path: Path, data: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dies_after(10, learner.trained_critics, patch)
        dying = began(model_dir, tmp_path, data)
        with pytest.raises(Died):
            dying.update_critics(data, [], 1, 5)
    made = updates_made(learner.trained_critics, monkeypatch)
    metrics = began(model_dir, tmp_path, data).update_critics(data, [], 1, 5)
    assert len(made) == 2
    assert metrics.critics["value"].updates == 8


@pytest.mark.parametrize("other", ["data", "phase", "seed", "settings", "weights", "damage"])
def test_the_bookmark_of_another_training_is_removed_and_changes_nothing(
    other: str, model_dir: Path, tmp_path: Path, data: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dies_after(3, learner.actor, patch)
        dying = began(model_dir, tmp_path, data)
        with pytest.raises(Died):
            dying.update_actor(data, [], 1, 5)
    assert (tmp_path / "bookmarks" / "actor").is_dir()
    settings = replace(SETTINGS, alpha=0.2) if other == "settings" else SETTINGS
    used = data[1:] if other == "data" else data
    phase, seed = (2 if other == "phase" else 1), (6 if other == "seed" else 5)
    if other == "damage":
        file = tmp_path / "bookmarks" / "actor" / "model.optimiser.safetensors"
        file.write_bytes(file.read_bytes()[:-1] + b"\1")
    if other == "weights":
        changed = began(model_dir, tmp_path, data)
        with torch.no_grad():
            next(changed.actor.parameters()).mul_(1.01)
        shutil.copytree(tmp_path / "bookmarks", tmp_path / "kept")
        changed.save(tmp_path / "before")
        shutil.move(tmp_path / "kept", tmp_path / "bookmarks")
    found = []
    for folder in (None, tmp_path / "bookmarks"):
        one = Learner(settings, model_dir, folder)
        one.load(tmp_path / "before")
        one.update_actor(used, [], phase, seed)
        found.append(everything(one))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_training_shorter_than_the_interval_leaves_no_bookmark(
    model_dir: Path, tmp_path: Path, data: list[Trajectory]
) -> None:
    learner = began(model_dir, tmp_path, data, replace(SETTINGS, bookmark_every_s=600.0))
    learner.update_critics(data, [], 1, 5)
    assert not (tmp_path / "bookmarks").exists()
    assert learner.compute.meter.now == Headway(signs=16)  # 12 updates, and two critics' beginnings and ends
