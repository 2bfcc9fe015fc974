"""A stage is done when its entry is durable, and a run goes on only under its own recipe."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster.errors import ManifestError, RunInUse
from cluster.recipe.recipe import build_recipe, config_hash
from cluster.run_folder import starts, versions
from cluster.run_folder.durable import sha256_file, write_atomic
from cluster.run_folder.lock import RunLock
from cluster.run_folder.manifest import RunManifest, changed_files, require_own_folder
from cluster.run_folder.resume import Resume
from cluster.run_folder.stage_results import ChosenTask, Cloned, RolloutsPlayed, TasksChosen
from cluster.run_folder.starts import start_files
from cluster.train import train
from tests.cluster.made_results import every_stage, made

RECIPE = build_recipe({"run": {"seed": 5}})


def test_a_stage_is_done_only_after_it_was_completed_and_stays_done(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    assert not manifest.stage_done(1, "rollouts")
    rollouts = made(1, "rollouts", episodes=("a", "b"), dispatched=2)
    manifest.complete_stage(1, rollouts, seconds=2.5)
    again = RunManifest.open(tmp_path, RECIPE)
    assert again.stage_done(1, "rollouts")
    assert not again.stage_done(2, "rollouts")
    assert again.result(1, RolloutsPlayed) == rollouts
    assert again.seconds == {1: {"rollouts": 2.5}}


def test_stages_keep_their_order_within_a_phase(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    done = [(0, "clone"), (0, "evaluate"), (1, "rollouts"), (1, "actor"), (10, "rollouts")]
    for phase, stage in done:
        manifest.complete_stage(phase, made(phase, stage))
    assert RunManifest.open(tmp_path, RECIPE).stages() == done


def test_an_entry_is_never_changed(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    first = made(0, "clone", checkpoint="first")
    manifest.complete_stage(0, first)
    with pytest.raises(ManifestError, match="already complete"):
        manifest.complete_stage(0, made(0, "clone", checkpoint="second"))
    assert RunManifest.open(tmp_path, RECIPE).result(0, Cloned) == first


def test_a_checkpoints_files_are_not_hashed_again_and_what_it_does_not_name_is(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    folder = tmp_path / "checkpoints" / "cloned"
    folder.mkdir(parents=True)
    named = {"actor.safetensors": "0" * 64}
    for name, text in {"actor.safetensors": "large", "manifest.json": json.dumps(named), "COMPLETE": "x"}.items():
        (folder / name).write_text(text)
    manifest.complete_stage(0, made(0, "clone"), sorted(folder.iterdir()))
    (entry,) = manifest.entries()
    files = {Path(name).name: digest for name, digest in entry.files.items()}
    assert files["actor.safetensors"] == "0" * 64
    assert files["COMPLETE"] == sha256_file(folder / "COMPLETE")
    assert changed_files(tmp_path, entry) == ["checkpoints/cloned/actor.safetensors has changed"]


def test_a_result_is_what_json_gives_back(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    manifest.complete_stage(1, made(1, "curriculum", tasks=(ChosenTask("shop.buy", {"ids": (1, 2)}),)))
    found = manifest.result(1, TasksChosen)
    assert found.tasks[0].parameters == {"ids": [1, 2]}
    assert found == RunManifest.open(tmp_path, RECIPE).result(1, TasksChosen)
    for bad in ({"checkpoint": object()}, {"env_steps_per_s": float("nan")}):
        with pytest.raises(ManifestError, match="not JSON"):
            manifest.complete_stage(0, made(0, "clone", **bad))
    assert not manifest.stage_done(0, "clone")


@pytest.mark.parametrize("phase", [0, 1])
def test_each_stages_result_comes_back_as_it_was(tmp_path: Path, phase: int) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    results = [made(phase, stage) for at, stage in every_stage(1) if at == phase]
    for result in results:
        manifest.complete_stage(phase, result)
    assert [entry.result for entry in RunManifest.read(tmp_path).entries()] == results


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"dispatched": "6"}, r"dispatched"),
        ({"dispatched": None}, r"dispatched"),
        ({"surplus": 1}, r"surplus"),
    ],
)
def test_a_result_that_no_stage_leaves_stops_the_run_and_is_named(
    tmp_path: Path, change: dict[str, object], found: str
) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    manifest.complete_stage(0, made(0, "clone"))
    folder = tmp_path / "stages" / "0000-phase-000-clone"
    content = json.loads((folder / "manifest.json").read_text())
    text = json.dumps({**content, "result": {**content["result"], **change}})
    (folder / "manifest.json").write_text(text)
    (folder / "COMPLETE").write_text(hashlib.sha256(text.encode()).hexdigest())
    with pytest.raises(ManifestError, match=rf"(?s)0000-phase-000-clone: manifest.json is not one.*{found}"):
        RunManifest.read(tmp_path)


def test_asking_for_an_incomplete_stage_names_the_complete_ones(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    manifest.complete_stage(0, made(0, "clone"))
    with pytest.raises(KeyError, match=r"phase 1 stage 'rollouts' is not complete; complete are \[\(0, 'clone'\)\]"):
        manifest.result(1, RolloutsPlayed)


def test_files_are_recorded_with_their_hash_and_checked(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    weights = tmp_path / "weights" / "1.bin"
    write_atomic(weights, b"abc")
    manifest.complete_stage(1, made(1, "publish"), files=[weights])
    assert manifest.entry(1, "publish").files == {"weights/1.bin": sha256_file(weights)}
    assert changed_files(tmp_path, manifest.entry(1, "publish")) == []
    weights.write_bytes(b"abd")
    assert changed_files(tmp_path, manifest.entry(1, "publish")) == ["weights/1.bin has changed"]
    weights.unlink()
    assert changed_files(tmp_path, manifest.entry(1, "publish")) == ["weights/1.bin is gone"]


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path / "run", RECIPE)
    with pytest.raises(ManifestError, match="cannot record"):
        manifest.complete_stage(0, made(0, "clone"), files=[tmp_path / "run" / "none"])
    (tmp_path / "elsewhere").write_text("")
    with pytest.raises(ManifestError, match="not under the run folder"):
        manifest.complete_stage(0, made(0, "clone"), files=[tmp_path / "elsewhere"])
    assert not manifest.stage_done(0, "clone")


def test_another_recipe_is_refused_and_the_differing_keys_are_named(tmp_path: Path) -> None:
    RunManifest.open(tmp_path, RECIPE)
    other = build_recipe({"run": {"seed": 6, "phases": 9}})
    with pytest.raises(ManifestError) as caught:
        RunManifest.open(tmp_path, other)
    text = str(caught.value)
    assert "run.seed: was 5, is 6" in text
    assert "run.phases: was 4, is 9" in text
    assert "run.name" not in text


def test_a_run_goes_on_with_other_counts_limits_and_addresses_and_notes_them(tmp_path: Path) -> None:
    RunManifest.open(tmp_path, RECIPE).note_start(RECIPE)
    changes = {
        "rollout": {"workers": 3, "hang_timeout_s": 90},
        "run": {"seed": 5, "resources": {"learner_cpus": 2}},
        "policy": {"options": {"servers": 2}},
        "environments": {"embedded": {"max_sessions": 7}},
        "monitors": {},
    }
    other = build_recipe(changes)
    assert RunManifest.open(tmp_path, other).note_start(other) == 2
    settings = [json.loads(path.read_text())["settings"] for path in start_files(tmp_path)]
    assert settings[0] == {}
    assert settings[1] == {
        "rollout.workers": 3,
        "rollout.hang_timeout_s": 90.0,
        "run.resources.learner_cpus": 2.0,
        "policy.options.servers": 2,
        "environments.embedded.max_sessions": 7,
        "monitors": {},
    }
    changes["rollout"]["temperature"] = 0.5
    with pytest.raises(ManifestError, match=r"differ:\n  rollout\.temperature: was 1\.0, is 0\.5\nput"):
        RunManifest.open(tmp_path, build_recipe(changes))


def test_other_code_is_refused_by_the_name_of_what_differs_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunManifest.open(tmp_path, RECIPE).note_start(RECIPE)
    RunManifest.open(tmp_path, RECIPE)
    now = starts.code_identity()
    monkeypatch.setattr(starts, "code_identity", lambda: {**now, "numpy": "9.9", "waymark's sources": "feed"})
    with pytest.raises(ManifestError, match=r"(?s)other code:.*numpy: was \S+, is 9.9.*--resume other-code") as caught:
        RunManifest.open(tmp_path, RECIPE)
    assert "torch" not in str(caught.value)
    RunManifest.open(tmp_path, RECIPE, resume=Resume.OTHER_CODE).note_start(RECIPE)
    RunManifest.open(tmp_path, RECIPE)


def test_every_source_of_a_run_counts_as_its_code() -> None:
    found = versions.code_identity()
    assert found.keys() == {"python", *versions.PACKAGES, "waymark's sources"}
    assert found["waymark's sources"] != hashlib.sha256().hexdigest()[:16], "no source was found"


def test_starts_are_numbered(tmp_path: Path) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    assert [manifest.note_start(RECIPE), manifest.note_start(RECIPE)] == [1, 2]
    manifest.complete_stage(0, made(0, "clone"))
    assert RunManifest.read(tmp_path).entry(0, "clone").start == 2
    assert RunManifest.open(tmp_path, RECIPE).note_start(RECIPE) == 3


def test_resume_never_refuses_a_run_that_is_there(tmp_path: Path) -> None:
    RunManifest.open(tmp_path, RECIPE, resume=Resume.NEVER)
    with pytest.raises(ManifestError, match="already holds a run"):
        RunManifest.open(tmp_path, RECIPE, resume=Resume.NEVER)


@pytest.mark.parametrize("part", ["weights", "trained", "checkpoints", "episodes", "policy", "stages", "labels"])
def test_a_folder_with_parts_of_something_and_no_manifest_is_refused_and_left_alone(tmp_path: Path, part: str) -> None:
    file = tmp_path / part / "v000001.safetensors"
    file.parent.mkdir()
    file.write_text("mine")
    with pytest.raises(ManifestError, match=rf"has {part} and no manifest.json.* choose another --out"):
        RunManifest.open(tmp_path, RECIPE)
    assert file.read_text() == "mine"
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize("names", [["notes.txt"], ["src", "README.md", ".git", "pyproject.toml", "tests"]])
def test_a_folder_of_others_is_refused_before_anything_is_written_into_it(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(ManifestError, match="and nothing of a run.* name a new or an empty folder"):
        train(RECIPE, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, "mine")


@pytest.mark.parametrize("part", ["weights", "stages"])
def test_parts_of_a_run_without_its_header_are_refused_before_anything_is_written(tmp_path: Path, part: str) -> None:
    (tmp_path / part).mkdir()
    with pytest.raises(ManifestError, match=rf"has {part} and no manifest.json"):
        train(RECIPE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [part]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["run.lock"],
        ["run.lock", "lease", "driver.log", "notes.txt"],
        ["lost+found"],
        [".manifest.json.77.tmp", ".gitkeep"],
        ["manifest.json", "notes.txt", "weights"],
    ],
)
def test_a_run_has_its_folder_to_itself_and_what_a_start_left_there_is_its_own(
    tmp_path: Path, names: list[str]
) -> None:
    for name in names:
        (tmp_path / name).touch()
    require_own_folder(tmp_path)
    require_own_folder(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names), "it is looked at, and nothing else"


def test_what_is_no_part_of_a_run_may_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text("lines")
    (tmp_path / "notes").mkdir()
    assert RunManifest.open(tmp_path, RECIPE).stages() == []


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 99}'])
def test_an_unreadable_manifest_is_an_error_and_not_a_fresh_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ManifestError, match=r"manifest"):
        RunManifest.open(tmp_path, RECIPE)


def test_the_header_says_what_made_the_run(tmp_path: Path) -> None:
    RunManifest.open(tmp_path, RECIPE)
    header = json.loads((tmp_path / "manifest.json").read_text())
    assert header["config_hash"] == config_hash(RECIPE)
    assert header["config"]["run"]["seed"] == 5
    assert header["seeds"]["run"] == 5
    assert header["versions"]["numpy"]


def test_a_write_that_fails_leaves_the_manifest_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = RunManifest.open(tmp_path, RECIPE)
    manifest.complete_stage(0, made(0, "clone"))

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        manifest.complete_stage(0, made(0, "evaluate"))
    monkeypatch.undo()
    assert not manifest.stage_done(0, "evaluate")
    assert RunManifest.open(tmp_path, RECIPE).stages() == [(0, "clone")]
    assert [path.name for path in (tmp_path / "stages").iterdir()] == ["0000-phase-000-clone"]


@pytest.mark.faults
def test_sigkill_at_any_moment_leaves_a_manifest_that_opens(tmp_path: Path, child_env: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path; from cluster.recipe.recipe import build_recipe;"
        "from cluster.run_folder.manifest import RunManifest; from tests.cluster.made_results import made;"
        "m = RunManifest.open(Path(sys.argv[1]), build_recipe({'run': {'seed': 5}})); n = len(m.stages());"
        "write = lambda i: m.complete_stage(i, made(i, 'actor', checkpoint='y' * 2000));"
        "write(n + 1); print('written', flush=True); [write(i) for i in range(n + 2, n + 100000)]"
    )
    seen = 0
    for delay in (0.05, 0.11, 0.23):
        command = [sys.executable, "-c", code, str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_env)
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == "written\n"
            time.sleep(delay)
            process.kill()
            process.wait(timeout=20)
        stages = RunManifest.open(tmp_path, RECIPE).stages()
        assert stages == [(i, "actor") for i in range(1, len(stages) + 1)]
        assert len(stages) > seen
        seen = len(stages)


def damaged(out: Path, damage: str) -> None:
    """Three stages, of which the second one is damaged."""
    manifest = RunManifest.open(out, RECIPE)
    for stage in ("clone", "critics", "publish"):
        manifest.complete_stage(0, made(0, stage))
    folder = out / "stages" / "0001-phase-000-critics"
    text = (folder / "manifest.json").read_text()
    if damage == "removed":
        shutil.rmtree(folder)
    elif damage == "no marker":
        (folder / "COMPLETE").unlink()
    elif damage == "cut short":
        (folder / "manifest.json").write_text(text[: len(text) // 2])
    elif damage == "edited":
        (folder / "manifest.json").write_text(text.replace('"dispatched": 0', '"dispatched": 1'))
    elif damage == "edited with its marker":
        edited = text.replace('"dispatched": 0', '"dispatched": 1')
        (folder / "manifest.json").write_text(edited)
        (folder / "COMPLETE").write_text(hashlib.sha256(edited.encode()).hexdigest())
    elif damage == "header edited":
        (out / "manifest.json").write_text((out / "manifest.json").read_text().replace('"seed": 0', '"seed": 1'))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("removed", "stages: manifest 0001 is gone, though 0002-phase-000-publish is there"),
        ("no marker", "stages/0001-phase-000-critics: COMPLETE is missing"),
        ("cut short", "stages/0001-phase-000-critics: manifest.json does not have the SHA-256"),
        ("edited", "stages/0001-phase-000-critics: manifest.json does not have the SHA-256"),
        ("edited with its marker", "stages/0002-phase-000-publish: does not follow the manifest before it"),
        ("header edited", "stages/0000-phase-000-clone: does not follow the manifest before it"),
    ],
)
def test_a_manifest_that_is_not_what_it_was_stops_the_run_and_is_named(tmp_path: Path, damage: str, found: str) -> None:
    damaged(tmp_path, damage)
    with pytest.raises(ManifestError, match=rf"cannot go on: {re.escape(found)}.*restore it from a copy"):
        RunManifest.read(tmp_path)


def test_a_stage_that_was_being_recorded_counts_for_nothing(tmp_path: Path) -> None:
    RunManifest.open(tmp_path, RECIPE).complete_stage(0, made(0, "clone"))
    half = tmp_path / "stages" / ".0001-phase-000-critics.new"
    half.mkdir()
    (half / "manifest.json").write_text("{")
    manifest = RunManifest.open(tmp_path, RECIPE)
    assert manifest.stages() == [(0, "clone")]
    manifest.complete_stage(0, made(0, "critics"))
    assert RunManifest.read(tmp_path).stages() == [(0, "clone"), (0, "critics")]


def test_two_drivers_cannot_hold_one_folder(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(RunInUse, match=f"process {os.getpid()}"), RunLock(tmp_path):
        pass
    with RunLock(tmp_path):
        pass


def test_write_atomic_replaces_whole_files_and_makes_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    write_atomic(path, "first, long")
    write_atomic(path, "é")
    assert path.read_bytes() == "é".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["b.txt"]
