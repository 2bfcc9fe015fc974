"""Old checkpoints go; what a restart needs stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.resume import half_written
from cluster.run_folder.layout import CLONED, RunFolders, checkpoint_name, critics_name, kept_checkpoints
from records.folder_mark import marked_folder


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


def test_a_phases_critics_go_with_its_end_and_not_before(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    fill(folders, 2)
    for phase in (1, 2):
        folders.checkpoint(critics_name(phase)).mkdir()
    folders.forget_checkpoints(1, keep=2)
    assert checkpoints(folders) == ["phase-000", "phase-001", "phase-002", "phase-002-critics"]
    folders.forget_checkpoints(2, keep=2)
    assert checkpoints(folders) == ["phase-001", "phase-002"] == kept_checkpoints(2, 2)


def test_the_mark_of_a_run_is_nothing_half_written(tmp_path: Path) -> None:
    with marked_folder(tmp_path):
        assert list(tmp_path.iterdir())
        assert half_written(tmp_path) == []
        (tmp_path / ".summary.json.77.new").touch()
        assert half_written(tmp_path) == [f"{tmp_path.name}/.summary.json.77.new"]


def test_what_was_half_written_goes_and_what_others_put_there_stays(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path)
    fill(folders, 1)
    for name in (
        "checkpoints/.phase-002.x1y2",
        "stages/.0007-phase-001-replay.new",
        ".trained.new/x",
        "kept/.mine",
        "rollbacks/0001",
        "bookmarks/.actor.x1y2",
        "labels",
        "episodes",
    ):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "weights/.actor-000002.safetensors.1.new",
        ".summary.json.77.new",
        ".gitignore",
        "notes.txt",
        ".metrics.jsonl.77.tmp",
        "rollbacks/.0002.json.77.tmp",
        "rollbacks/0001/.metrics.jsonl.77.tmp",
        "labels/.p001-0.labels.77.tmp",
        "episodes/.shard-0.arrow.77.tmp",
    ):
        (tmp_path / name).write_text("")
    hidden = {path.name for path in tmp_path.rglob(".*")}
    assert {name.partition("/")[2] for name in half_written(tmp_path)} == hidden - {".mine"}
    folders.clear_leftovers()
    hidden = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob(".*")}
    assert hidden == {".gitignore", "kept/.mine"}
    assert checkpoints(folders) == ["cloned", "phase-000", "phase-001"]
    assert not folders.current_weights.exists(), "servers wait for a publication"
    assert (tmp_path / "notes.txt").exists()


def test_names_sort_as_numbers() -> None:
    assert sorted(checkpoint_name(phase) for phase in (10, 9, 100, 0)) == [
        checkpoint_name(phase) for phase in (0, 9, 10, 100)
    ]
