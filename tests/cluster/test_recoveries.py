"""A run that loses a process which it cannot replace starts all of them afresh, so often and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import train as entry
from cluster.errors import ProcessLost, RunStopped
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stored_run import StoredRun
from tests.cluster.made_results import made

ENOUGH = RunStopped("the budget of failures is spent")


class Starts:
    """What each start of the processes does: complete the next stage or not, then end with an error."""

    def __init__(self, *ends: tuple[str, RunStopped]) -> None:
        self.ends = list(ends)
        self.begun = 0

    def play(self, recipe: Recipe, manifest: RunManifest, stored: StoredRun | None) -> None:
        assert stored is None
        stage, error = self.ends[self.begun]
        self.begun += 1
        if stage:
            manifest.complete_stage(0, made(0, stage))
        raise error


def ended(starts: Starts, out: Path, monkeypatch: pytest.MonkeyPatch, recoveries: int) -> RunStopped:
    monkeypatch.setattr(entry, "_play_on", starts.play)
    with pytest.raises(RunStopped) as caught:
        entry.train(build_recipe({"run": {"recoveries": recoveries}}), out)
    return caught.value


def lost(stage: str = "") -> tuple[str, RunStopped]:
    return stage, ProcessLost("the learner's process ended")


def test_a_lost_process_is_started_afresh_with_what_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    starts = Starts(lost("clone"), lost(), lost("critics"), ("", ENOUGH))
    assert ended(starts, tmp_path, monkeypatch, recoveries=2) is ENOUGH
    assert starts.begun == 4
    assert RunManifest.read(tmp_path).stages() == [(0, "clone"), (0, "critics")]
    assert "Lost: the learner's process ended" in capsys.readouterr().out
    assert "the learner's process ended" in (tmp_path / "driver.log").read_text()


def test_without_a_stage_completed_in_between_it_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(lost("clone"), lost(), lost(), lost("critics"), lost())
    error = ended(starts, tmp_path, monkeypatch, recoveries=2)
    assert isinstance(error, ProcessLost)
    assert str(error) == "the learner's process ended; start the same command again to go on"
    assert starts.begun == 3


def test_it_may_be_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(lost("clone"), lost())
    assert isinstance(ended(starts, tmp_path, monkeypatch, recoveries=0), ProcessLost)
    assert starts.begun == 1
