"""Old checkpoints go; what a restart needs stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.run_folders import CLONED, RunFolders, checkpoint_name


def fill(folders: RunFolders, phases: int) -> None:
    for name in (CLONED, *(checkpoint_name(phase) for phase in range(phases + 1))):
        folders.checkpoint(name).mkdir(parents=True)
        (folders.checkpoint(name) / "state.json").write_text("{}")
    folders.weights.mkdir()
    for version in range(phases + 1):
        (folders.weights / f"actor-{version:06d}.safetensors").write_text("")
    folders.current_weights.write_text("{}")


def checkpoints(folders: RunFolders) -> list[str]:
    return sorted(path.name for path in folders.checkpoint("x").parent.iterdir())


@pytest.mark.parametrize(("keep", "left"), [(1, [12]), (2, [11, 12]), (5, [8, 9, 10, 11, 12]), (20, list(range(13)))])
def test_the_newest_checkpoints_and_weights_stay(tmp_path: Path, keep: int, left: list[int]) -> None:
    folders = RunFolders(tmp_path)
    fill(folders, 12)
    for phase in range(1, 13):  # a restarted run goes through all phases again
        folders.forget_checkpoints(phase, keep)
    assert checkpoints(folders) == [checkpoint_name(phase) for phase in left]
    weights = sorted(path.name for path in folders.weights.glob("*.safetensors"))
    assert weights == [f"actor-{version:06d}.safetensors" for version in left]
    assert folders.current_weights.exists()


def test_a_restart_in_a_late_phase_keeps_its_checkpoint_while_it_goes_through_the_early_ones(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    fill(folders, 3)
    folders.forget_checkpoints(1, keep=1)
    assert checkpoints(folders) == [checkpoint_name(phase) for phase in (1, 2, 3)]


def test_names_sort_as_numbers() -> None:
    assert sorted(checkpoint_name(phase) for phase in (10, 9, 100, 0)) == [
        checkpoint_name(phase) for phase in (0, 9, 10, 100)
    ]
