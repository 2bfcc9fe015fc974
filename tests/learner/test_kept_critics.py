"""Critics in a policy folder: who takes them, who does not, and that they answer as those that were taught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from learner.errors import CheckpointError
from learner.settings import CriticSettings, LearnerSettings, PotentialDataSettings
from learner.trainer import CRITICS, Learner
from records.episodes import Trajectory

CRITIC = CriticSettings(learning_rate=3e-3, epochs=2, pretrain_learning_rate=3e-3, pretrain_epochs=2, batch_steps=16)
MIRA = LearnerSettings(
    algorithm="mira", value=CRITIC, potential=CRITIC, value_target="return", micro_batch_tokens=256, seed=3
)
Make = Callable[..., Trajectory]


def episodes(make: Make) -> list[Trajectory]:
    pages = [[3, 4, 20 + number] for number in range(8)]
    made = [make([(page, [12, 2]), ([5, *page], [13, 2])], outcome=float(i % 2)) for i, page in enumerate(pages)]
    return [replace(one, episode_id=f"e{i}", task_id=f"task-{i}") for i, one in enumerate(made)]


@pytest.fixture(params=[False, True], ids=["one", "cross-fitted"])
def taught(request: pytest.FixtureRequest, model_dir: Path, trajectory: Make) -> Learner:
    """A learner whose critics know something."""
    learner = Learner(replace(MIRA, cross_fit=request.param), model_dir)
    for critic in ("value", "potential"):
        learner.pretrain(critic, episodes(trajectory))
    return learner


@pytest.fixture
def folder(taught: Learner, tmp_path: Path) -> Path:
    return taught.export(tmp_path / "trained", critics="float32")


def test_a_learner_of_the_same_kind_takes_them_and_they_answer_the_same(
    taught: Learner, folder: Path, trajectory: Make
) -> None:
    other, seen = Learner(taught.settings, folder), episodes(trajectory)
    for critic in ("value", "potential"):
        fresh, known = (np.concatenate(one.ask(critic, seen)) for one in (other, taught))
        assert not np.allclose(fresh, known)
    assert other.take_critics() == ("value", "potential")
    for critic in ("value", "potential"):
        for found, expected in zip(other.ask(critic, seen), taught.ask(critic, seen), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_in_half_the_size_they_answer_nearly_the_same_and_are_trained_in_full(
    taught: Learner, folder: Path, tmp_path: Path, trajectory: Make
) -> None:
    half = taught.export(tmp_path / "half", critics="bfloat16")
    sizes = [sum(file.stat().st_size for file in (one / CRITICS).glob("*.safetensors")) for one in (half, folder)]
    assert 0.45 < sizes[0] / sizes[1] < 0.65
    other, seen = Learner(taught.settings, half), episodes(trajectory)
    assert other.take_critics() == ("value", "potential")
    for critic in ("value", "potential"):
        found, known = (np.concatenate(one.ask(critic, seen)) for one in (other, taught))
        assert 0 < np.abs(found - known).max() < 0.05
        assert {p.dtype for model in other.critics[critic].models.values() for p in model.parameters()} == {
            torch.float32
        }


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({"algorithm": "awr"}, ("value",)),
        ({"algorithm": "webrl"}, ()),
        ({"gamma": 0.8}, ("potential",)),
        ({"value_target": "outcome"}, ("potential",)),
        ({"potential_data": PotentialDataSettings(labels="all")}, ("value",)),
        ({"algorithm": "filtered_bc"}, ()),
        ({"value_target": "shaped"}, ("potential",)),
        ({"algorithm": "mira_no_pc", "value_target": "shaped"}, ("value",)),
        ({"alpha": 0.7, "seed": 9}, ("value", "potential")),
    ],
)
def test_what_was_taught_something_else_stays_where_it_is(
    taught: Learner, folder: Path, changes: dict[str, object], taken: tuple[str, ...]
) -> None:
    assert Learner(replace(taught.settings, **changes), folder).take_critics() == taken


def test_half_of_a_cross_fitted_critic_is_no_critic(taught: Learner, folder: Path) -> None:
    settings = taught.settings
    assert Learner(replace(settings, cross_fit=not settings.cross_fit), folder).take_critics() == ()


def test_a_folder_without_critics_has_none_to_take(taught: Learner, model_dir: Path, tmp_path: Path) -> None:
    assert Learner(taught.settings, model_dir).take_critics() == ()
    assert not (taught.export(tmp_path / "plain") / CRITICS).exists()
    cloned = Learner(LearnerSettings(algorithm="sft"), model_dir)
    assert not (cloned.export(tmp_path / "cloned", critics="float32") / CRITICS).exists()


def test_damaged_ones_are_refused_and_nothing_is_taken(taught: Learner, folder: Path, trajectory: Make) -> None:
    other, seen = Learner(taught.settings, folder), episodes(trajectory)
    before = other.ask("value", seen)
    damaged = next((folder / CRITICS).glob("value*.safetensors"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{damaged.name} is missing or does not match"):
        other.take_critics()
    for found, expected in zip(other.ask("value", seen), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_phase_with_taken_critics_is_the_phase_of_the_learner_that_taught_them(
    taught: Learner, folder: Path, trajectory: Make
) -> None:
    """But for the critics' optimisers, which begin anew."""
    other, seen = Learner(taught.settings, folder), episodes(trajectory)
    other.take_critics()
    again = Learner(taught.settings, folder)
    again.take_critics()
    for one in (other, again):
        one.update_critics(seen, [], 1)
        one.update_actor(seen, [], 1)
    for first, second in zip(other.actor.parameters(), again.actor.parameters(), strict=True):
        assert torch.equal(first, second)
