"""``waymark study``: which runs a study has, what they are told, what comes of them. The runs here learn nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import benchmarks.study
from cluster import cli
from cluster.errors import ManifestError, RecipeError, RunInterrupted, RunStopped
from cluster.recipe.recipe import Recipe, load_recipe
from cluster.recorded_run import RecordedRun
from cluster.run_folder.summarising import summarise
from cluster.run_folder.summary import FILE_NAME, read_summary, write_summary
from cluster.studies import processes
from cluster.studies.design import read_study
from cluster.studies.processes import StudyProcesses, StudyRun
from cluster.studies.records import RunRecord
from cluster.studies.runs import run_study
from cluster.studies.whole import conduct
from rollout_workers.spec import EpisodeSpec
from tests.cluster.fake_run import Run

RECIPE: dict[str, Any] = {
    "run": {"phases": 2, "training_tasks": 30, "evaluation": {"tasks_per_split": 12, "splits": ["test"]}},
    "warm_start": {"demonstrations": 4, "potential_demonstrations": 3, "value_demonstrations": 2},
    "curriculum": {"tasks_per_phase": 6},
    "environments": {"embedded": {"names": ["shop"]}},
}
STUDY: dict[str, Any] = {
    "name": "small",
    "recipe": "recipe.yaml",
    "seeds": [0, 1],
    "arms": {
        "filtered_bc": {"set": {"learner.algorithm": "filtered_bc"}},
        "mira": {"set": {"learner.algorithm": "mira"}},
        "webrl": {"set": {"learner.algorithm": "webrl"}, "seeds": [0]},
    },
    "baseline": "filtered_bc",
    "splits": ["test"],
    "predictions": [
        {"says": "MiRA is better", "arm": "mira", "over": "filtered_bc", "split": "test", "more_than": 0.0},
        {"says": "MiRA is like WebRL", "arm": "mira", "over": "webrl", "split": "test", "within": 0.9},
    ],
}
RATE = "learner.actor.learning_rate"
GRID = {"seed": 9, "split": "validation", "set": {RATE: [1e-4, 2e-4], "learner.actor.epochs": [1]}}


class Played:
    """Stands for the child processes: notes each run, and plays it here, or not at all."""

    def __init__(self, fails: Callable[[StudyRun], bool] = lambda run: False) -> None:
        self.runs: dict[str, StudyRun] = {}
        self.begun: list[str] = []
        self.weights = "some"
        self.fails = fails
        self.loses: Callable[[StudyRun, EpisodeSpec], bool] | None = None

    def __call__(self, children: object, run: StudyRun, folder: Path) -> int:
        self.runs[run.name] = run
        self.begun.append(run.name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if self.fails(run):
            folder.with_name(folder.name + ".log").write_text("waymark: no luck\n")
            return 4
        recipe = load_recipe(run.recipe, run.overrides)
        if (loses := self.loses) is None:
            shutil.copytree(Path(_played_once(run.name, recipe.model_dump_json()).name, "run"), folder)
        else:
            _play(run.name, recipe, folder, lambda spec: loses(run, spec))
        (folder / "report.html").touch()
        if start := self.told(run.name).get("warm_start.checkpoint"):
            (folder / "policy").mkdir()
            shutil.copy(Path(start) / "checksums.json", folder / "policy")
        (folder / "trained").mkdir()
        (folder / "trained" / "checksums.json").write_text(f"{self.weights} of {run.name}")
        return 0

    def told(self, name: str) -> dict[str, Any]:
        found = (one.partition("=") for one in self.runs[name].overrides)
        return {key: json.loads(value) for key, _, value in found}


def _play(name: str, recipe: Recipe, folder: Path, loses: Callable[[EpisodeSpec], bool]) -> None:
    fake = Run(folder)
    fake.recipe = recipe
    fake.start(luck=name, loses=loses)
    write_summary(folder, summarise(fake.manifest, "x", recipe.run.phases))


@cache
def _played_once(name: str, recipe: str) -> TemporaryDirectory[str]:
    """Return what holds a run that many tests ask for, as ``run``; nothing in that tells where it lies."""
    kept = TemporaryDirectory(prefix="waymark-tests-")
    _play(name, Recipe.model_validate_json(recipe), Path(kept.name, "run"), lambda spec: False)
    return kept


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    monkeypatch.setattr(StudyProcesses, "_ended", lambda self, run, folder: found(self, run, folder))
    return found


class _Plainly(yaml.SafeDumper):
    """Writes what is there twice twice: aliases are refused."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def write(folder: Path, **changes: Any) -> Path:
    (folder / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    path = folder / "study.yaml"
    path.write_text(yaml.dump({**STUDY, **changes}, Dumper=_Plainly))
    return path


def invoke(path: Path, *options: object) -> str:
    words = ["study", str(path), "--out", str(path.parent / "out"), *map(str, options)]
    return CliRunner().invoke(cli.app, words, catch_exceptions=False).output


def test_arms_and_seeds_are_run_compared_and_told(tmp_path: Path, played: Played) -> None:
    shown = invoke(write(tmp_path), "--jobs", 2)
    assert sorted(played.begun) == [
        "arms/filtered_bc/seed-0", "arms/filtered_bc/seed-1", "arms/mira/seed-0", "arms/mira/seed-1",
        "arms/webrl/seed-0",
    ]  # fmt: skip
    said = played.told("arms/mira/seed-1")
    assert (said["run.seed"], said["learner.seed"], said["learner.algorithm"]) == (1, 1, "mira")
    assert (said["run.evaluation.splits"], said["run.evaluation.every"]) == (["test"], 2)
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    table, reached = found["tables"]
    assert (table["measure"], reached["measure"]) == ("success", "milestones reached")
    assert set(table["levels"]) == set(reached["levels"]) == {"start", "filtered_bc", "mira", "webrl"}
    for arm, level in reached["levels"].items():
        solved = table["levels"][arm]["mean"]["value"]
        assert level["mean"]["value"] == pytest.approx(solved + (1 - solved) / 2), "a fake failure reaches the half"
    assert table["levels"]["mira"]["tasks"] == 12
    first, second = found["outcomes"]
    mira, cloned = table["levels"]["mira"]["by_seed"], table["levels"]["filtered_bc"]["by_seed"]
    assert first["found"]["by_seed"] == pytest.approx([mira[seed] - cloned[seed] for seed in "01"])
    assert len(second["found"]["by_seed"]) == 1, "both have seed 0 alone"
    assert second["bearing"] == "undecided", "one seed says nothing of others"
    compared = [(pair["arm"], pair["over"]) for pair in table["differences"]]
    assert compared == [
        ("mira", "filtered_bc"), ("webrl", "filtered_bc"),
        ("filtered_bc", "webrl"), ("mira", "webrl"),
        ("filtered_bc", "start"), ("mira", "start"), ("webrl", "start"),
    ], "each with the baseline, with what a prediction compares with, and with the start"  # fmt: skip
    assert "MiRA is like WebRL" in shown
    page = (tmp_path / "out" / "study.html").read_text()
    assert "MiRA is better" in page
    assert page.count("<svg") >= 1


def test_nothing_is_decided_before_all_seeds_of_a_prediction_are_there(tmp_path: Path, played: Played) -> None:
    like = {"says": "MiRA is like cloning", "arm": "mira", "over": "filtered_bc", "split": "test", "within": 1.0}
    path = write(tmp_path, predictions=[like])
    played.fails = lambda run: run.name == "arms/mira/seed-1"
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(path)
    (early,) = json.loads((tmp_path / "out" / "study.json").read_text())["outcomes"]
    assert (early["bearing"], early["seeds"], len(early["found"]["by_seed"])) == ("undecided", 2, 1)
    assert "1 of 2 seeds missing" in (tmp_path / "out" / "study.html").read_text()
    played.fails = lambda run: False
    shown = invoke(path)
    (whole,) = json.loads((tmp_path / "out" / "study.json").read_text())["outcomes"]
    assert (whole["bearing"], len(whole["found"]["by_seed"])) == ("held", 2)
    assert "held: MiRA is like cloning" in shown
    assert "missing" not in shown


def test_an_arm_may_take_what_the_grid_chose_for_another(tmp_path: Path, played: Played) -> None:
    like = {"set": {**STUDY["arms"]["mira"].get("set", {}), "learner.alpha": 0.5}, "like": "mira"}
    invoke(write(tmp_path, grid=GRID, arms={**STUDY["arms"], "half": like}))
    assert not [name for name in played.begun if name.startswith("grid/half")]
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    assert found["chosen"]["half"] == found["chosen"]["mira"]
    taken = played.told("arms/half/seed-0")
    assert (taken[RATE], taken["learner.alpha"]) == (found["chosen"]["mira"][RATE], 0.5)


def test_what_is_complete_is_not_run_again_and_nothing_is_started_to_read(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path)
    played.fails = lambda run: run.name == "arms/mira/seed-1"
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(path)
    assert "no luck" in (tmp_path / "out" / "study.html").read_text()
    played.begun, played.fails = [], lambda run: False
    with pytest.raises(RunStopped, match="1 runs are missing"):
        invoke(path, "--only-read")
    assert played.begun == []
    invoke(path)
    assert played.begun == ["arms/mira/seed-1"]


def test_a_grid_is_tried_on_a_split_and_a_seed_of_its_own_and_the_best_is_taken(tmp_path: Path, played: Played) -> None:
    invoke(write(tmp_path, grid=GRID))
    assert played.begun[:6] == [f"grid/{arm}/{point}" for arm in STUDY["arms"] for point in (0, 1)]
    tried = played.told("grid/mira/1")
    assert (tried["run.seed"], tried["run.evaluation.splits"]) == (9, ["validation"])
    assert tried[RATE] == 2e-4
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    for arm, points in found["tried"].items():
        best = max(points, key=lambda point: (point["success"], point["milestones"]))["settings"]
        assert found["chosen"][arm] == best
        taken = played.told(f"arms/{arm}/seed-0")
        assert taken[RATE] == best[RATE]
        assert taken["run.evaluation.splits"] == ["test"], "what chooses is not what is reported"
    assert len({tuple(point["success"] for point in points) for points in found["tried"].values()}) > 1


STARTED: dict[str, Any] = {"start": {"recipe": "recipe.yaml", "set": {"run.training_tasks": 40}}}


def test_every_seed_has_a_start_of_its_own_and_one_arm_tells_what_it_does(tmp_path: Path, played: Played) -> None:
    invoke(write(tmp_path, **STARTED))
    assert played.begun[:2] == ["start/seed-0", "start/seed-1"]
    said = played.told("start/seed-1")
    assert (said["run.seed"], said["run.phases"], said["run.training_tasks"]) == (1, 0, 40)
    made = (tmp_path / "out" / "start").resolve()
    for name, seed in (("webrl/seed-0", 0), ("mira/seed-1", 1)):
        assert played.told(f"arms/{name}")["warm_start.checkpoint"] == str(made / f"seed-{seed}" / "trained")
    before = {name: played.told(name)["run.evaluation.before_rl"] for name in played.begun if name.startswith("arms")}
    assert {name for name, told in before.items() if told} == {"arms/filtered_bc/seed-0", "arms/filtered_bc/seed-1"}
    table, _ = json.loads((tmp_path / "out" / "study.json").read_text())["tables"]
    assert set(table["levels"]["start"]["by_seed"]) == {"0", "1"}


def test_a_run_that_has_a_record_is_not_run_again_on_another_machine(tmp_path: Path, played: Played) -> None:
    path, records = write(tmp_path, **STARTED), tmp_path / "kept"
    shown = invoke(path, "--records", records)
    kept = json.loads((tmp_path / "out" / "study.json").read_text())
    shutil.rmtree(tmp_path / "out")
    played.begun = []
    assert invoke(path, "--records", records) in shown
    assert played.begun == []
    again = json.loads((tmp_path / "out" / "study.json").read_text())
    assert again == kept


def test_a_start_is_made_again_only_for_the_seed_of_a_missing_run(tmp_path: Path, played: Played) -> None:
    path, records = write(tmp_path, **STARTED), tmp_path / "kept"
    invoke(path, "--records", records)
    shutil.rmtree(tmp_path / "out")
    (records / "arms" / "mira" / "seed-1.json").unlink()
    played.begun = []
    invoke(path, "--records", records)
    assert played.begun == ["start/seed-1", "arms/mira/seed-1"]


def test_a_start_with_other_weights_is_not_mixed_with_recorded_runs(tmp_path: Path, played: Played) -> None:
    path, records = write(tmp_path, **STARTED), tmp_path / "kept"
    invoke(path, "--records", records)
    shutil.rmtree(tmp_path / "out")
    (records / "arms" / "mira" / "seed-1.json").unlink()
    played.begun, played.weights = [], "others"
    told: list[str] = []
    said = conduct(read_study(path), tmp_path / "out", records, 1, told.append).runs.failed["arms/mira/seed-1"]
    assert played.begun == ["start/seed-1"]
    assert "its start has other weights than arms/filtered_bc/seed-1 had" in said
    assert "bring start/seed-1 from where arms/filtered_bc/seed-1 was run" in said
    anew, begun, complete, refused = told
    assert anew.endswith("made anew, it has to come out as the start that arms/filtered_bc/seed-1 had")
    assert (begun, complete) == ("start/seed-1: begun", "start/seed-1: complete")
    assert refused == f"arms/mira/seed-1: {said}", "told when it is known, and not at the study's end alone"


def test_a_record_of_other_settings_is_refused(tmp_path: Path, played: Played) -> None:
    records = tmp_path / "kept"
    invoke(write(tmp_path), "--records", records)
    played.begun = []
    changed = write(tmp_path, set={"learner.gamma": 0.5})
    with pytest.raises(ManifestError, match=r"seed-0.json: is of a run with other settings.*other --records"):
        invoke(changed, "--records", records)
    assert played.begun == []


def test_a_record_has_the_numbers_that_say_how_a_method_works(tmp_path: Path, played: Played) -> None:
    invoke(write(tmp_path))
    folder = tmp_path / "out" / "arms" / "mira" / "seed-1"
    summary = read_summary(folder)
    told = {"groups.equal": 3.0, "mechanism.auc_steps": 0.8, "value.auc": 0.7, "actor.ratio.r2": 0.1, "replayed": 7.0}
    told |= {"actor.grad_norm": 9.0, "actor.updates": 20.0, "actor.decisions": 1280.0}
    for phase in summary["phases"]:
        phase["losses"] = {}
    summary["phases"][-1]["losses"] = {**told, "value.loss": 0.4, "actor.tokens_per_s": 5.0, "seconds.actor": 3.0}
    (folder / FILE_NAME).write_text(json.dumps(summary))
    found = RunRecord.of(RecordedRun(folder), "x", "y").mechanism
    assert found == {name: {2: value} for name, value in told.items()}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"recipe": 3}'])
def test_a_damaged_record_is_named(tmp_path: Path, played: Played, content: str) -> None:
    path, records = write(tmp_path), tmp_path / "kept"
    invoke(path, "--records", records)
    (records / "arms" / "mira" / "seed-1.json").write_text(content)
    with pytest.raises(ManifestError, match=r"mira/seed-1.json: is no record of a study's run.*remove it"):
        invoke(path, "--records", records)


def test_predictions_are_not_changed_after_the_runs_began(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path)
    invoke(path)
    registered = json.loads((tmp_path / "out" / "records" / "registered.json").read_text())
    changed = [{**STUDY["predictions"][0], "more_than": -0.5}, STUDY["predictions"][1]]
    with pytest.raises(RecipeError, match="predictions are not changed after the runs began"):
        invoke(write(tmp_path, predictions=changed))
    invoke(write(tmp_path, seeds=[0, 1, 2]))  # more of the same
    assert json.loads((tmp_path / "out" / "records" / "registered.json").read_text()) == registered
    assert "The study file has changed since" in (tmp_path / "out" / "study.html").read_text()


def test_a_prediction_may_be_of_milestones(tmp_path: Path, played: Played) -> None:
    of_milestones = {**STUDY["predictions"][0], "measure": "milestones reached"}
    invoke(write(tmp_path, predictions=[STUDY["predictions"][0], of_milestones]))
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    assert "mira − filtered_bc, test, milestones reached" in (tmp_path / "out" / "study.html").read_text()
    for outcome, table in zip(found["outcomes"], found["tables"], strict=True):
        assert outcome["prediction"]["measure"] == table["measure"]
        assert outcome["found"]["mean"] == table["differences"][0]["mean"]
    solved, reached = (outcome["found"]["mean"]["value"] for outcome in found["outcomes"])
    assert reached == pytest.approx(solved / 2), "a fake failure reaches the half"
    with pytest.raises(RecipeError, match="predictions are not changed after the runs began"):
        invoke(write(tmp_path, predictions=[STUDY["predictions"][0], STUDY["predictions"][0]]))


def test_what_was_registered_before_predictions_had_a_measure_is_of_success(tmp_path: Path, played: Played) -> None:
    path = write(tmp_path)
    invoke(path)
    file = tmp_path / "out" / "records" / "registered.json"
    registered = json.loads(file.read_text())
    for one in registered["predictions"]:
        assert one.pop("measure") == "success"
    file.write_text(json.dumps(registered))
    invoke(path)
    file.write_text(json.dumps({**registered, "predictions": [{"said": "something"}]}))
    with pytest.raises(RecipeError, match="predicts otherwise"):
        invoke(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"arms": {"filtered_bc": {"set": {"learner.algorithn": "x"}}}, "predictions": []},
            "arm 'filtered_bc'.*algorithn",
        ),
        ({"baseline": "nobody"}, "baseline: expected one of 'filtered_bc', 'mira', 'webrl', found 'nobody'"),
        ({"predictions": [{**STUDY["predictions"][0], "split": "train"}]}, "split: expected one of 'test'"),
        ({"predictions": [{**STUDY["predictions"][0], "over": "mira"}]}, "arm and over are the same"),
        ({"predictions": [{**STUDY["predictions"][0], "within": 0.1}]}, "either more_than or within"),
        ({"grid": {**GRID, "split": "test"}}, "'test' is one of splits"),
        (
            {"grid": GRID, "arms": {**STUDY["arms"], "mira": {"like": "mira"}}},
            r"mira: like: expected an arm that tries the grid itself \('filtered_bc', 'webrl'\), found 'mira'",
        ),
        ({"arms": {**STUDY["arms"], "mira": {"like": "webrl"}}}, "mira: like: there is no grid to choose from"),
        ({"grid": {**GRID, "seed": 1}}, "a grid needs its own"),
        ({"splits": ["tests"], "predictions": []}, "tests"),
        ({"set": {"run.phases": 0}}, "run.phases is 0"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [0, -1]}, r"arms: filtered_bc: seeds: expected different seeds of 0 and more, found \(0, -1\)"),
        ({"seeds": [0, 0]}, r"yaml: arms: filtered_bc: seeds: expected different seeds"),
        ({"arms": {**STUDY["arms"], "webrl": {"seeds": []}}}, "arms: webrl: seeds: expected different seeds"),
        ({"arms": {**STUDY["arms"], "webrl": {"seeds": [7]}}}, "'MiRA is like WebRL': mira and webrl have no seed in"),
        ({"arms": {**STUDY["arms"], "other": {"seeds": [9]}}, "grid": GRID}, "grid.seed: 9 is one of seeds"),
        ({"grid": {**GRID, "set": {RATE: []}}}, "grid.set: learner.actor.learning_rate: expected a value"),
        ({"arms": {**STUDY["arms"], "start": {}}}, "'start' names what all arms start from"),
        (
            {"grid": GRID, "arms": {**STUDY["arms"], "own": {"set": {RATE: 0.5}}}},
            "arms: own: set: learner.actor.learning_rate: the grid sets learner.actor.learning_rate",
        ),
        ({"grid": GRID, "set": {"learner.actor": {"epochs": 2}}}, "set: learner.actor: the grid sets learner.actor."),
        ({"set": {"run.seed": 3}}, "set: run.seed: the study sets run.seed"),
        (
            {"arms": {**STUDY["arms"], "other": {"set": {"run.evaluation.seed": 3}}}},
            "are evaluated on different tasks; set run.evaluation.seed for all",
        ),
        ({"arms": {"../up": {}}}, "arms: '../up'"),
        ({"recipe": "nowhere.yaml"}, "nowhere.yaml"),
        ({"colour": "red"}, "colour"),
        ({"start": {"recipe": "nowhere.yaml"}}, "start: .*nowhere.yaml"),
        (
            {"start": {"recipe": "recipe.yaml"}, "set": {"warm_start.checkpoint": "somewhere"}},
            "set: warm_start.checkpoint: the study sets warm_start.checkpoint",
        ),
        (
            {
                "start": {"recipe": "recipe.yaml"},
                "arms": {**STUDY["arms"], "x": {"set": {"warm_start.clone": "always"}}},
            },
            "arm 'x': warm_start.clone is always, which clones onto new weights",
        ),
        (
            {"start": {"recipe": "recipe.yaml"}, "set": {"policy.model": "org/model"}},
            "arm 'filtered_bc': policy.model is org/model, and the study makes the start",
        ),
        (
            {"groups": {"buying": "shop.by_product"}},
            "groups: buying: no task that is evaluated has the template 'shop.by_product'; there are shop.",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    tmp_path: Path, played: Played, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RecipeError, match=reason):
        invoke(write(tmp_path, **changes))
    assert played.begun == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("name: other", "the key 'name' is there twice"),
        ("set: &twice {run.seed: 3}\nstart: *twice", "found the alias 'twice'"),
        ("colour: 2024-13-99", "expected plain sections and values, found month"),
        (f"colour: {'[' * 3000}{']' * 3000}", "expected plain sections and values"),
    ],
)
def test_a_study_is_read_as_strictly_as_a_recipe(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path)
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(RecipeError, match=reason):
        invoke(path)


def test_a_folder_without_any_run_of_an_arm_is_an_error_with_the_first_reason(tmp_path: Path, played: Played) -> None:
    played.fails = lambda run: True
    with pytest.raises(RunStopped, match="no run of an arm is complete: exit code 4.*no luck"):
        invoke(write(tmp_path))


@pytest.fixture
def sleeper(tmp_path: Path) -> Path:
    """A study whose child processes sleep and note how they end."""
    package = tmp_path / "path" / "cluster"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        "import signal, sys, time, pathlib\n"
        "note = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
        "def stop(*_):\n    note.with_suffix('.stopped').touch()\n    sys.exit(130)\n"
        "signal.signal(signal.SIGTERM, stop)\nnote.with_suffix('.begun').touch()\ntime.sleep(60)\n"
    )
    return tmp_path / "path"


def by_command(folder: Path) -> None:
    invoke(write(folder), "--jobs", 2)


def by_benchmark(folder: Path) -> None:
    write(folder)
    folders = (f"--{name}={folder / 'out'}" for name in ("results", "records", "out"))
    benchmarks.study.main(["study", *folders, "--jobs", "2"], studies=folder)


@pytest.mark.parametrize("started", [by_command, by_benchmark])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_a_study_stops_its_runs_cleanly(
    tmp_path: Path,
    sleeper: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Callable[[Path], None],
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sleeper))
    began = subprocess.Popen

    def here(command: list[str], **given: Any) -> subprocess.Popen[bytes]:
        return began(command, **given, cwd=sleeper)

    monkeypatch.setattr(processes.subprocess, "Popen", here)
    out = tmp_path / "out"

    def interrupt() -> None:
        ends = time.monotonic() + 60
        while len(list(out.rglob("*.begun"))) < 2 and time.monotonic() < ends:
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises((RunInterrupted, SystemExit), match="Start the same command again"):
        started(tmp_path)
    assert len(list(out.rglob("*.begun"))) == len(list(out.rglob("*.stopped"))) == 2, "nothing new was begun"


def test_a_run_that_does_not_end_when_it_is_asked_is_killed(
    tmp_path: Path, sleeper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs in a native call: Ctrl-C ends the study all the same, and the run goes on from its folder."""
    script = sleeper / "cluster" / "cli.py"
    script.write_text(script.read_text().replace("signal.signal(signal.SIGTERM, stop)", "signal.signal(15, 1)"))
    monkeypatch.setenv("PYTHONPATH", str(sleeper))
    monkeypatch.setattr(processes, "_STOP_S", 1.0)
    began, started = subprocess.Popen, []

    def here(command: list[str], **given: Any) -> subprocess.Popen[bytes]:
        started.append(began(command, **given, cwd=sleeper))
        return started[-1]

    monkeypatch.setattr(processes.subprocess, "Popen", here)

    def interrupt() -> None:
        ends = time.monotonic() + 60
        while not list(tmp_path.rglob("*.begun")) and time.monotonic() < ends:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(RunInterrupted):
        invoke(write(tmp_path), "--jobs", 1)
    assert [process.wait(10) for process in started] == [-signal.SIGKILL]


STUDIES = Path(__file__).parents[2] / "benchmarks" / "studies"


def test_the_studies_of_the_benchmarks_can_be_run() -> None:
    found = [path for path in STUDIES.glob("*.yaml") if "arms" in yaml.safe_load(path.read_text())]
    designs = [read_study(path).design for path in found]
    assert [design.name for design in designs] == [path.stem for path in found]
    assert all(design.predictions for design in designs)


def test_records_of_the_benchmarks_studies_are_of_the_recipes_as_they_are(tmp_path: Path) -> None:
    # A new setting that is not left out at its default (`unset`) would make hours of runs void.
    recorded = list((STUDIES.parent / "results" / "studies").iterdir())
    assert recorded
    for records in recorded:
        study = read_study(STUDIES / f"{records.name}.yaml")
        found = run_study(study, tmp_path / "runs", records, 1, print, only_read=True)
        read = sum(map(len, found.arms.values())) + sum(map(len, found.tried.values()))
        assert read == len(list(records.rglob("*.json"))) - 1, "all but what was registered"


def test_the_benchmark_of_a_study_keeps_records_and_says_what_is_met(tmp_path: Path, played: Played) -> None:
    write(tmp_path)
    folders = ("--results", tmp_path, "--records", tmp_path / "kept", "--out", tmp_path / "runs")
    called = ["study", *map(str, folders), "--jobs", "2"]
    benchmarks.study.main(called, studies=tmp_path)
    assert (tmp_path / "kept" / "study" / "arms" / "mira" / "seed-1.json").is_file()
    found = json.loads((tmp_path / "study.json").read_text())["numbers"]
    *predicted, complete, in_time = found["verdicts"]
    held = [outcome["bearing"] == "held" for outcome in found["outcomes"]]
    assert [verdict.endswith(": met") for verdict in predicted] == held
    assert complete == "The study is complete, 5 runs of arms: 5 are done: met"
    assert in_time.endswith(": met")
    assert set(found["seconds_of_arms"]) == {"filtered_bc", "mira", "webrl"}
    (tmp_path / "kept" / "study" / "arms" / "mira" / "seed-1.json").unlink()
    played.begun = []
    shutil.rmtree(tmp_path / "runs")
    benchmarks.study.main([*called, "--only-read"], studies=tmp_path)
    assert played.begun == []
    again = json.loads((tmp_path / "study.json").read_text())["numbers"]
    assert again["verdicts"][-2] == "The study is complete, 5 runs of arms: 4 are done: missed"
