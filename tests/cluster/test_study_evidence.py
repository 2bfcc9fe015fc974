"""A study's evidence holds: what is recorded is what was asked for, and what was predicted stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cluster.errors import ManifestError, RecipeError, RunStopped
from cluster.recipe.recipe import build_recipe
from cluster.task_sets import TaskSets
from rollout_workers.spec import EpisodeSpec
from tests.cluster.test_study import (
    GRID,
    RATE,
    RECIPE,
    STARTED,
    STUDY,
    Played,
    _no_waiting_for_the_disk,
    invoke,
    played,
    write,
)

__all__ = ["_no_waiting_for_the_disk", "played"]


def reasons(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "out" / "study.json").read_text())["failed"]
    return found


def test_a_finished_folder_of_other_settings_is_not_taken_for_the_run_that_is_asked_for(
    tmp_path: Path, played: Played
) -> None:
    invoke(write(tmp_path), "--records", tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept" / "arms" / "mira")
    mira = {**STUDY["arms"]["mira"]["set"], "learner.gamma": 0.5}
    changed = write(tmp_path, arms={**STUDY["arms"], "mira": {"set": mira}})
    played.begun = []
    with pytest.raises(RunStopped, match="2 runs are missing"):
        invoke(changed, "--records", tmp_path / "kept")
    assert played.begun == []
    assert "arms/mira/seed-1: is of a run with other settings; move it away" in reasons(tmp_path)["arms/mira/seed-1"]
    for seed in (0, 1):
        shutil.move(tmp_path / "out" / "arms" / "mira" / f"seed-{seed}", tmp_path / f"away-{seed}")
    invoke(changed, "--records", tmp_path / "kept")
    assert played.begun == ["arms/mira/seed-0", "arms/mira/seed-1"]
    assert played.told("arms/mira/seed-0")["learner.gamma"] == 0.5


def test_a_start_of_other_settings_or_weights_is_not_taken_either(tmp_path: Path, played: Played) -> None:
    path, start = write(tmp_path, **STARTED), tmp_path / "out" / "start" / "seed-1"
    invoke(path)
    record = tmp_path / "out" / "records" / "arms" / "mira" / "seed-1.json"
    record.unlink()
    invoke(path)
    assert record.is_file(), "the folder tells the record again"
    record.unlink()
    (start / "trained" / "checksums.json").write_text("others")
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(path)
    assert "its start has other weights than" in reasons(tmp_path)["arms/mira/seed-1"]
    for other in (tmp_path / "out" / "records" / "arms").rglob("seed-1.json"):
        other.unlink()
    with pytest.raises(RunStopped, match="2 runs are missing"):
        invoke(path)
    assert "began from other weights than its start has now" in reasons(tmp_path)["arms/mira/seed-1"]
    changed = write(tmp_path, start={"recipe": "recipe.yaml", "set": {"run.training_tasks": 20}})
    with pytest.raises(RunStopped, match="3 runs are missing"):
        invoke(changed)
    assert "start/seed-1: is of a run with other settings" in reasons(tmp_path)["start/seed-1"]


def test_an_arm_waits_for_its_whole_grid_and_of_points_alike_the_first_counts(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path, grid=GRID)
    played.fails = lambda run: run.name == "grid/mira/0"
    with pytest.raises(RunStopped, match="2 runs are missing"):
        invoke(path)
    assert not [name for name in played.begun if name.startswith("arms/mira")]
    assert reasons(tmp_path)["arms/mira"] == "the grid of mira is not complete"
    played.fails = lambda run: False
    invoke(path)
    folder = tmp_path / "out" / "records" / "grid" / "webrl"
    recorded = [json.loads((folder / f"{point}.json").read_text()) for point in (0, 1)]
    for record, other in ((recorded[1], recorded[0]), (recorded[0], recorded[0])):
        record |= {name: other[name] for name in ("outcomes", "milestones", "templates")}
    for point, record in enumerate(recorded):
        (folder / f"{point}.json").write_text(json.dumps(record))
    shutil.rmtree(tmp_path / "out" / "records" / "arms" / "webrl")
    shutil.rmtree(tmp_path / "out" / "arms" / "webrl")
    invoke(path)
    assert played.told("arms/webrl/seed-0")[RATE] == GRID["set"][RATE][0]


def test_what_was_predicted_is_not_registered_after_the_runs(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path)
    invoke(path)
    changed = [{**STUDY["predictions"][0], "more_than": -0.9}, STUDY["predictions"][1]]
    with pytest.raises(ManifestError, match=r"out/arms/.*whose predictions are not in .*other/registered.json"):
        invoke(write(tmp_path, predictions=changed), "--records", tmp_path / "other")
    (tmp_path / "out" / "records" / "registered.json").unlink()
    with pytest.raises(ManifestError, match=r"records/arms/.*whose predictions are not in .*; restore that file"):
        invoke(write(tmp_path))
    assert not (tmp_path / "out" / "records" / "registered.json").exists()


def test_a_group_of_a_prediction_is_registered_with_it(tmp_path: Path, played: Played) -> None:
    of_group = [{**STUDY["predictions"][0], "group": "buying"}]
    with pytest.raises(RecipeError, match=r"groups: buying: no task .* 'shop.nowhere'; there are shop\."):
        invoke(write(tmp_path, predictions=of_group, groups={"buying": "shop.nowhere"}))
    assert not (tmp_path / "out").exists(), "nothing was registered, so it may be corrected"
    templates = sorted({task.template for task in TaskSets(build_recipe(RECIPE)).split("test")})
    invoke(write(tmp_path, predictions=of_group, groups={"buying": templates[0]}))
    with pytest.raises(RecipeError, match="predicts otherwise"):
        invoke(write(tmp_path, predictions=of_group, groups={"buying": templates[1]}))
    invoke(write(tmp_path, predictions=of_group, groups={"buying": templates[0], "more": templates[1]}))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"name": "small", "predictions": []}'])
def test_a_damaged_registration_is_named(tmp_path: Path, played: Played, content: str) -> None:
    path = write(tmp_path)
    invoke(path)
    (tmp_path / "out" / "records" / "registered.json").write_text(content)
    with pytest.raises(ManifestError, match=r"registered.json: is not what a study predicted .*restore it"):
        invoke(path)


def test_a_run_whose_last_evaluation_has_no_verdict_is_missing_with_the_reason(tmp_path: Path, played: Played) -> None:
    def loses(name: str, spec: EpisodeSpec) -> bool:
        return name == "arms/mira/seed-1" and spec.episode_id.startswith("e002-")

    played.loses = lambda run, spec: loses(run.name, spec)
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(write(tmp_path))
    assert "nothing of its last evaluation has a verdict" in reasons(tmp_path)["arms/mira/seed-1"]
    table, _ = json.loads((tmp_path / "out" / "study.json").read_text())["tables"]
    assert list(table["levels"]["mira"]["by_seed"]) == ["0"]


def test_a_damaged_finished_run_ends_no_other(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path)
    invoke(path)
    for name in ("mira/seed-0", "webrl/seed-0"):
        (tmp_path / "out" / "records" / "arms" / f"{name}.json").unlink()
    shutil.rmtree(tmp_path / "out" / "arms" / "mira" / "seed-0" / "episodes")
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(path)
    assert list(reasons(tmp_path)) == ["arms/mira/seed-0"]
    assert (tmp_path / "out" / "records" / "arms" / "webrl" / "seed-0.json").is_file()


def test_an_arm_may_be_added_before_the_others(tmp_path: Path, played: Played) -> None:
    invoke(write(tmp_path, **STARTED))
    played.begun = []
    invoke(write(tmp_path, **STARTED, arms={"awr": {"set": {"learner.algorithm": "awr"}}, **STUDY["arms"]}))
    assert played.begun == ["arms/awr/seed-0", "arms/awr/seed-1"]


def test_without_a_common_start_each_arm_is_held_against_its_own(tmp_path: Path, played: Played) -> None:
    invoke(write(tmp_path))
    table, _ = json.loads((tmp_path / "out" / "study.json").read_text())["tables"]
    gains = {one["arm"]: one["by_seed"] for one in table["differences"] if one["over"] == "start"}
    for arm in STUDY["arms"]:
        record = json.loads((tmp_path / "out" / "records" / "arms" / arm / "seed-0.json").read_text())
        before, after = (record["outcomes"][phase]["test"] for phase in ("0", "2"))
        assert gains[arm][0] == pytest.approx(sum(after[task] - before[task] for task in after) / len(after))
    starts = {arm: table["levels"][arm]["by_seed"]["0"] - gain[0] for arm, gain in gains.items()}
    assert len(set(starts.values())) > 1, "the fake policies differ before they learn"
    assert table["levels"]["start"]["by_seed"]["0"] == pytest.approx(sum(starts.values()) / len(starts))


@pytest.mark.parametrize("option", ["--out", "--records"])
def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path, played: Played, option: str) -> None:
    path, place = write(tmp_path), tmp_path / "a file"
    place.touch()
    with pytest.raises(RecipeError, match=rf"{option}: expected a folder"):
        invoke(path, option, place)
    assert played.begun == []
