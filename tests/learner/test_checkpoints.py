"""A learner that was saved and loaded goes on as if it had never stopped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from learner.errors import CheckpointError
from learner.settings import ActorSettings, CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from records.durable import force_to_disk
from records.episodes import Trajectory
from tests.learner.phases import run_phase

CRITIC = CriticSettings(learning_rate=1e-3, batch_steps=8)
SETTINGS = LearnerSettings(
    clone=CloneSettings(learning_rate=1e-3, updates=3, batch_steps=8),
    actor=ActorSettings(learning_rate=1e-3, batch_steps=8),
    value=CRITIC,
    potential=CRITIC,
)


def episodes(make: Callable[..., Trajectory]) -> list[Trajectory]:
    return [
        make([([3, 4, 30 + i], [10 + i, 2]), ([3, 5, 30 + i], [12, 2])], outcome=float(i % 2), episode_id=f"e{i}")
        for i in range(10)
    ]


def tensors(learner: Learner) -> list[torch.Tensor]:
    modules = (learner.actor, *(critic.model for critic in learner.critics.values()))
    return [tensor.clone() for module in modules for tensor in module.state_dict().values()]


def test_resume_is_exact(model_dir: Path, tmp_path: Path, trajectory: Callable[..., Trajectory]) -> None:
    data = episodes(trajectory)
    straight = Learner(SETTINGS, model_dir)
    straight.clone(data)
    run_phase(straight, data, [], phase_index=0)
    straight.save(tmp_path / "phase-0")
    run_phase(straight, data, [], phase_index=1)

    resumed = Learner(SETTINGS, model_dir)
    resumed.load(tmp_path / "phase-0")
    assert resumed.phases == 1
    run_phase(resumed, data, [], phase_index=1)
    assert all(torch.equal(a, b) for a, b in zip(tensors(straight), tensors(resumed), strict=True))


def test_without_the_optimisers_state_the_run_would_differ(
    model_dir: Path, tmp_path: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """The guard of the test above: AdamW's moments matter here, so equality is not for free."""
    data = episodes(trajectory)
    learner = Learner(SETTINGS, model_dir)
    run_phase(learner, data, [], phase_index=0)
    learner.save(tmp_path / "c")
    run_phase(learner, data, [], phase_index=1)
    other = Learner(SETTINGS, model_dir)
    other.load(tmp_path / "c")
    other.actor_optimiser.state.clear()
    run_phase(other, data, [], phase_index=1)
    assert not all(torch.equal(a, b) for a, b in zip(tensors(learner), tensors(other), strict=True))


def test_a_checkpoint_without_its_marker_is_refused(model_dir: Path, tmp_path: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    path = learner.save(tmp_path / "c")
    (path / "COMPLETE").unlink()
    with pytest.raises(CheckpointError, match="no COMPLETE marker"):
        learner.load(path)
    learner.save(path)
    learner.load(path)


@pytest.mark.parametrize("name", ["actor.safetensors", "value.optimiser.safetensors", "state.json", "manifest.json"])
def test_damage_is_noticed_and_changes_nothing(
    name: str, model_dir: Path, tmp_path: Path, trajectory: Callable[..., Trajectory]
) -> None:
    learner = Learner(SETTINGS, model_dir)
    run_phase(learner, episodes(trajectory), [], phase_index=0)
    path = learner.save(tmp_path / "c")
    content = bytearray((path / name).read_bytes())
    content[-1] ^= 1
    (path / name).write_bytes(bytes(content))
    other = Learner(SETTINGS, model_dir)
    before = tensors(other)
    with pytest.raises(CheckpointError):
        other.load(path)
    assert all(torch.equal(a, b) for a, b in zip(before, tensors(other), strict=True))


def test_saving_again_replaces_the_checkpoint(model_dir: Path, tmp_path: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    learner.save(tmp_path / "c")
    with torch.no_grad():
        next(learner.actor.parameters()).add_(1.0)
    learner.save(tmp_path / "c")
    again = Learner(SETTINGS, model_dir)
    again.load(tmp_path / "c")
    assert all(torch.equal(a, b) for a, b in zip(tensors(learner), tensors(again), strict=True))
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


@pytest.fixture
def replaced(model_dir: Path, tmp_path: Path) -> Learner:
    """A learner that moved on since it wrote the checkpoint ``run/c``."""
    learner = Learner(SETTINGS, model_dir)
    learner.save(tmp_path / "run" / "c")
    with torch.no_grad():
        next(learner.actor.parameters()).add_(1.0)
    return learner


def test_the_old_checkpoint_goes_once_the_new_one_has_its_name_for_good(
    replaced: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls, forced = tmp_path / "run", list[tuple[str, ...]](), set[int]()
    rename, remove, force, fsync = os.rename, shutil.rmtree, force_to_disk, os.fsync

    def short(path: Path) -> str:
        return path.name if path.name == "c" else "old" if path.name.endswith(".replaced") else "new"

    def renamed(source: Path, target: Path) -> None:
        calls.append(("rename", short(source), short(target)))
        if short(source) == "new":
            assert {path.stat().st_ino for path in source.iterdir()} <= forced, "a file may be half there after a crash"
        rename(source, target)

    def removed(path: Path, *given: Any, **named: Any) -> None:
        calls.append(("remove", short(path)))
        remove(path, *given, **named)

    def made_durable(path: Path) -> None:
        if path == folder:
            calls.append(("force", path.name))
        force(path)

    def synced(descriptor: int) -> None:
        forced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(shutil, "rmtree", removed)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr("records.durable.force_to_disk", made_durable)
    replaced.save(folder / "c")
    assert calls[:4] == [("rename", "c", "old"), ("rename", "new", "c"), ("force", "run"), ("remove", "old")]
    assert calls[4:] in ([], [("remove", "new")]), "of which nothing is left"


def test_a_checkpoint_that_cannot_be_replaced_stays(
    replaced: Learner, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk refuses the second rename. A kill at this moment leaves both, whole, under other names."""
    rename, calls = os.rename, list[Path]()

    def refused(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == 2:
            shutil.copytree(tmp_path / "run", tmp_path / "killed")
            raise OSError(28, "No space left on device")
        rename(source, target)

    again = Learner(SETTINGS, model_dir)
    old, new = tensors(again), tensors(replaced)
    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(OSError, match="No space left"):
        replaced.save(tmp_path / "run" / "c")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["c"]
    for path in (tmp_path / "run" / "c", *(tmp_path / "killed").iterdir()):
        again.load(path)
        expected = new if path.parent.name == "killed" and not path.name.endswith(".replaced") else old
        assert all(torch.equal(a, b) for a, b in zip(expected, tensors(again), strict=True))
    assert len(list((tmp_path / "killed").iterdir())) == 2


def test_a_checkpoint_of_another_algorithm_is_refused(model_dir: Path, tmp_path: Path) -> None:
    path = Learner(replace(SETTINGS, algorithm="filtered_bc"), model_dir).save(tmp_path / "c")
    with pytest.raises(CheckpointError, match="another algorithm"):
        Learner(SETTINGS, model_dir).load(path)


def test_nothing_in_a_checkpoint_is_pickled(model_dir: Path, tmp_path: Path) -> None:
    path = Learner(SETTINGS, model_dir).save(tmp_path / "c")
    suffixes = {entry.suffix for entry in path.iterdir()}
    assert suffixes == {".safetensors", ".json", ""}
    for entry in path.glob("*.json"):
        json.loads(entry.read_text())
    for entry in path.glob("*.safetensors"):
        load_file(entry)
