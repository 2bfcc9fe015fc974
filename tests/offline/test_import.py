"""``waymark data import`` from the command line to a policy that has learned from what was imported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.data_import import import_data
from cluster.errors import ExitCode, ManifestError, MissingError, RecipeError, RunError, RunStopped
from cluster.preflight.start import check_start
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.named_data import data_record, require_fitting_data, start_tokenizer, take_data
from learner.settings import CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from offline.folder import REPORT_FILE, DataReport, read_report
from records.checks import Status
from records.episodes import FinalState
from replay.buffer import ReplayBuffer
from replay.shards import read_shard, write_shard
from tests.model_families import FAMILIES, save
from tests.offline.made_sources import conversation, conversations, write_json, write_lines, write_traces

RUNNER = CliRunner()


def recipe_of(model: object, *overrides: str) -> Recipe:
    limits = ["policy.prompt_format=webrl", "policy.max_prompt_tokens=1900", "policy.max_new_tokens=100"]
    return build_recipe({}, [f"policy.model={model}", *limits, *overrides])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    records = [*conversations(), *conversations("Another task"), conversation(0, "A third task", "I click"), {"a": 1}]
    return write_json(tmp_path / "web_policy_sft.json", records)


@pytest.fixture
def data(source: Path, model_dir: Path, tmp_path: Path) -> Path:
    import_data(recipe_of(model_dir), source, tmp_path / "data")
    return tmp_path / "data"


def test_the_command_shows_what_it_kept_and_left_out_and_writes_it_beside_the_shards(
    source: Path, model_dir: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    policy = {"model": str(model_dir), "prompt_format": "webrl", "max_prompt_tokens": 1900, "max_new_tokens": 100}
    recipe.write_text(json.dumps({"policy": policy, "warm_start": {"data": str(tmp_path / "data")}}))
    done = RUNNER.invoke(cli.app, ["data", "import", str(recipe), str(source)], catch_exceptions=False)
    assert done.exit_code == ExitCode.OK
    for said in ("conversations", "2, of them 2 solved", "no action", "damaged", "record 7", "record 8"):
        assert said in done.output
    report = read_report(tmp_path / "data")
    assert (report.episodes, report.successes, report.steps) == (2, 2, 6)
    assert {reason: entry.steps for reason, entry in report.left_out.items()} == {"no action": 1, "damaged": 1}
    files = {path.name for path in (tmp_path / "data").iterdir()}
    assert files == {REPORT_FILE, *report.shards}
    again = RUNNER.invoke(cli.app, ["data", "import", str(recipe), str(source)])
    assert isinstance(again.exception, RecipeError)
    assert "is there already" in str(again.exception)


def test_nothing_appears_where_nothing_can_be_used(model_dir: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(json.dumps({"policy": {"model": str(model_dir), "prompt_format": "webrl"}}))
    source = write_json(tmp_path / "a.json", [conversation(0, answer="I click")])
    done = RUNNER.invoke(cli.app, ["data", "import", str(recipe), str(source), "--out", str(tmp_path / "data")])
    assert isinstance(done.exception, RunError)
    assert done.exception.code is ExitCode.FAILED
    assert "no action" in done.output
    for wrong in (tmp_path / "none.json", recipe):
        done = RUNNER.invoke(cli.app, ["data", "import", str(recipe), str(wrong), "--out", str(tmp_path / "data")])
        assert isinstance(done.exception, RecipeError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "recipe.yaml"]


def test_a_source_that_gives_orders_to_the_terminal_is_shown(model_dir: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(json.dumps({"policy": {"model": str(model_dir), "prompt_format": "webrl"}}))
    records = [*conversations(), {"conversations": "", "\x1b[2J[red]": 1}, {"\x1b]0;title\x07": 1}]
    source = write_json(tmp_path / "a.json", records)
    done = RUNNER.invoke(cli.app, ["data", "import", str(recipe), str(source), "--out", str(tmp_path / "data")])
    assert done.exit_code == ExitCode.OK
    assert "\x1b" not in done.output
    assert "\x07" not in done.output


def test_an_import_that_is_interrupted_leaves_nothing(
    source: Path, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cluster.data_import.put_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_data(recipe_of(model_dir), source, tmp_path / "data")
    assert [path for path in tmp_path.iterdir() if "data" in path.name] == []


def test_the_same_source_gives_the_same_data(source: Path, model_dir: Path, tmp_path: Path) -> None:
    reports = [import_data(recipe_of(model_dir), source, tmp_path / name) for name in ("one", "two")]
    assert reports[0] == reports[1]


def test_a_run_learns_from_its_own_copy_and_goes_on_only_with_the_same_data(
    data: Path, model_dir: Path, tmp_path: Path
) -> None:
    recipe, out = recipe_of(model_dir, f"warm_start.data={data}"), tmp_path / "out"
    header = RunManifest.open(out, recipe).header
    assert header["data"].keys() == {path.name for path in data.iterdir()}
    ids = take_data(recipe, header["data"], out / "episodes", start_tokenizer(recipe))
    buffer = ReplayBuffer(out / "episodes")
    assert buffer.ids() == ids
    RunManifest.open(out, recipe)
    report = json.loads((data / REPORT_FILE).read_text())
    (data / REPORT_FILE).write_text(json.dumps({**report, "source": "elsewhere"}))
    with pytest.raises(ManifestError, match=rf"has changed since the run began: {REPORT_FILE}"):
        RunManifest.open(out, recipe)
    (shard,) = (path for path in data.iterdir() if path.suffix == ".arrow")
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(MissingError, match="changed since the import"):
        data_record(recipe)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["policy.prompt_format=chat"], "prompt_format 'webrl' instead of 'chat'"),
        (["policy.prompt_format=chat", "policy.thinking=true"], "thinking False instead of True"),
        (["policy.prompt_format=waymark", "policy.instructions=true"], "instructions False instead of True"),
        (["policy.max_prompt_tokens=100"], "a prompt of"),
    ],
)
def test_a_run_that_asks_otherwise_than_the_import_is_refused(
    overrides: list[str], says: str, data: Path, model_dir: Path
) -> None:
    recipe = recipe_of(model_dir, f"warm_start.data={data}", *overrides)
    checks = [check for check in check_start(recipe) if check.name == "warm_start.data"]
    assert checks[0].status is Status.FAIL
    assert says in checks[0].found
    with pytest.raises(RecipeError, match=says):
        require_fitting_data(recipe, start_tokenizer(recipe))


def test_a_run_with_another_tokenizer_is_refused(data: Path, tmp_path: Path) -> None:
    other = recipe_of(save(FAMILIES["qwen"], tmp_path / "qwen"), f"warm_start.data={data}")
    assert "made for another tokenizer" in check_start(other)[-1].found


@pytest.mark.parametrize("overrides", [["warm_start.checkpoint=./none"], ["policy.model=./none"]])
def test_a_policy_that_is_not_there_is_missed(overrides: list[str], source: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="none"):
        import_data(recipe_of("tiny", *overrides), source, tmp_path / "data")
    (tmp_path / "none").mkdir()
    with pytest.raises(MissingError, match=r"tokenizer\.json"):
        import_data(recipe_of(tmp_path / "none"), source, tmp_path / "data")


def test_a_fresh_tiny_has_no_tokenizer_yet(data: Path, source: Path, tmp_path: Path) -> None:
    fresh = recipe_of("tiny", f"warm_start.data={data}")
    assert "makes its own tokenizer" in check_start(fresh)[-1].found
    with pytest.raises(RecipeError, match="makes its own tokenizer"):
        import_data(fresh, source, tmp_path / "other")


def test_data_that_is_not_there_is_missed_before_anything_starts(model_dir: Path, tmp_path: Path) -> None:
    recipe = recipe_of(model_dir, f"warm_start.data={tmp_path / 'none'}")
    assert "waymark data import" in check_start(recipe)[-1].advice
    with pytest.raises(MissingError, match=REPORT_FILE):
        RunManifest.open(tmp_path / "out", recipe)


def test_failures_alone_cannot_be_cloned(model_dir: Path, tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "played")
    (folder / "actions" / "7.json").unlink()
    report = import_data(recipe_of(model_dir), folder, tmp_path / "data")
    assert (report.episodes, report.successes) == (1, 0)
    recipe = recipe_of(model_dir, f"warm_start.data={tmp_path / 'data'}")
    assert "no success that could be cloned" in check_start(recipe)[-1].found
    taught = build_recipe({}, ["warm_start.clone=never", *_settings(recipe)])
    assert check_start(taught)[-1].status is not Status.FAIL


def _settings(recipe: Recipe) -> list[str]:
    policy = recipe.policy
    names = ("model", "prompt_format", "max_prompt_tokens", "max_new_tokens")
    return [f"warm_start.data={recipe.warm_start.data}", *(f"policy.{name}={getattr(policy, name)}" for name in names)]


@pytest.mark.parametrize("harm", ["id", "tokens", "source", "final state"])
def test_shards_that_hold_something_else_than_offline_episodes_are_refused(
    harm: str, data: Path, model_dir: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(model_dir, f"warm_start.data={data}")
    (shard,) = (path for path in data.iterdir() if path.suffix == ".arrow")
    (first, *_) = read_shard(shard)
    changes: dict[str, dict[str, Any]] = {
        "id": {"episode_id": "p001-0000-0-task"},
        "source": {"source": "rollout"},
        "tokens": {"steps": tuple(_with_ids(step) for step in first.steps)},
        "final state": {"final_state": FinalState("", "", first.steps[0].prompt_ids)},
    }
    info = write_shard(tmp_path / "other", [_changed(first, **changes[harm])], "offline")
    shutil.copy(info.path, data / info.path.name)
    episodes = tmp_path / "episodes"
    with pytest.raises(RunStopped, match="is none that can be learned from"):
        take_data(recipe, {REPORT_FILE: "", info.path.name: info.sha256}, episodes, start_tokenizer(recipe))
    assert list(episodes.iterdir()) == []


def _changed(record: Any, **changes: Any) -> Any:
    from dataclasses import replace

    from records.episodes import Source

    if "source" in changes:
        changes["source"] = Source(changes["source"])
    return replace(record, **changes)


def _with_ids(step: Any) -> Any:
    return _changed(step, prompt_ids=step.prompt_ids + 100_000)


def test_a_policy_learns_from_what_was_imported(data: Path, model_dir: Path) -> None:
    critic = CriticSettings(pretrain_learning_rate=1e-3, pretrain_epochs=4, batch_steps=4)
    clone = CloneSettings(updates=40, batch_steps=3, learning_rate=3e-3)
    learner = Learner(LearnerSettings(clone=clone, value=critic, potential=critic), model_dir)
    episodes = [episode for shard in sorted(data.glob("*.arrow")) for episode in read_shard(shard)]
    losses: list[float] = []
    learner.clone(episodes, on_update=lambda _, loss: losses.append(loss))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5]), losses
    value, potential = (learner.pretrain(name, episodes) for name in ("value", "potential"))
    assert (value.states, potential.states) == (6, 0), "there are outcomes in the data, and no milestones"


def test_lines_and_traces_are_imported_as_well(model_dir: Path, tmp_path: Path) -> None:
    lines = import_data(recipe_of(model_dir), write_lines(tmp_path / "a.jsonl", conversations()), tmp_path / "lines")
    played = import_data(recipe_of(model_dir), write_traces(tmp_path / "played"), tmp_path / "traces")
    assert (lines.form, lines.episodes) == ("conversations", 1)
    assert (played.form, played.episodes, played.successes) == ("traces", 2, 1)
    assert played.left_out["no outcome"].steps == 1


def test_a_report_that_was_tampered_with_is_refused(data: Path) -> None:
    good = json.loads((data / REPORT_FILE).read_text())
    for bad in ({"shards": {"../x": "0"}}, {"format": 9}, {"episodes": "many"}, {"more": 1}):
        (data / REPORT_FILE).write_text(json.dumps({**good, **bad}))
        with pytest.raises(ValueError, match=REPORT_FILE):
            read_report(data)


def test_what_was_imported_before_replies_could_think_has_no_thoughts(data: Path, model_dir: Path) -> None:
    older = json.loads((data / REPORT_FILE).read_text())
    assert older["made_for"].pop("thinking") is False
    (data / REPORT_FILE).write_text(json.dumps(older))
    assert check_start(recipe_of(model_dir, f"warm_start.data={data}"))[-1].status is not Status.FAIL


def test_the_report_says_the_same_when_read_again(source: Path, model_dir: Path, tmp_path: Path) -> None:
    report: DataReport = import_data(recipe_of(model_dir), source, tmp_path / "data")
    assert read_report(tmp_path / "data") == report
