"""A complete run is looked over by its command: what is damaged is made again, and where nothing is, nothing is done.

Real files of a run without processes (``tests.cluster.fake_run``), beside which the policy, what was trained and the
report stand as a real run leaves them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cluster.train
from cluster.audit.audit import audit
from cluster.display.run_display import RunDisplay
from cluster.errors import ManifestError
from cluster.recipe.recipe import Recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.policy_folder import write_checksums
from cluster.run_folder.rollback import read_rollbacks
from cluster.run_folder.stored_run import StoredRun
from cluster.run_folder.summarising import summarise
from cluster.run_folder.summary import read_summary, write_summary
from cluster.run_folder.wholeness import not_whole
from cluster.train import train
from records.stores.lease import RunLease
from records.stores.working_copy import working_copy
from replay.buffer import ReplayBuffer
from tests.cluster.fake_run import RAW, Killed, Run, before

Damage = Callable[[Path], object]


def policy_in(folder: Path, weights: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(weights)
    write_checksums(folder)


def finish(run: Run) -> None:
    """Leave what a real run leaves at its end."""
    policy_in(run.out / "trained", "trained")
    write_summary(run.out, summarise(run.manifest, run.recipe.run.name, run.recipe.run.phases))
    (run.out / "report.html").write_text("<!doctype html>\n<html>\n</html>")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("complete") / "run")
    run.start()
    policy_in(run.out / "policy", "first")
    finish(run)
    return run


@pytest.fixture
def run(complete: Run, tmp_path: Path) -> Run:
    """The complete run, to be damaged."""
    shutil.copytree(complete.out, tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stand in for the processes of a run: do what is left of it without any; the folders where that was asked for."""
    asked: list[Path] = []

    def play_on(recipe: Recipe, manifest: RunManifest, stored: StoredRun | None) -> RunDisplay:
        asked.append(manifest.out)
        again = Run(manifest.out)
        again.start()
        manifest.reload()
        finish(again)
        return RunDisplay(recipe.run.phases)

    monkeypatch.setattr(cluster.train, "_play_on", play_on)
    return asked


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def shard_of(out: Path, episode: str) -> Path:
    buffer = ReplayBuffer(out / "episodes")
    return buffer.entry(next(i for i in buffer.ids() if i.startswith(episode))).shard


def files(out: Path) -> dict[str, bytes]:
    """What a run left, but for what each start of it writes, and what says how long its stages took."""
    every = {path.relative_to(out): path for path in out.rglob("*") if path.is_file()}
    ours = {"run.lock", "driver.log", "lease", "starts", "ledger", "rollbacks", "stages", "metrics.jsonl"}
    ours |= {"summary.json"} if read_rollbacks(out) else set()
    return {str(name): path.read_bytes() for name, path in every.items() if name.parts[0] not in ours}


def test_of_a_whole_run_nothing_is_done_and_nothing_is_written(run: Run, goes_on: list[Path]) -> None:
    def written() -> dict[Path, int]:
        every = (path for path in run.out.rglob("*") if path.is_file() and path.parent.name != "lease")
        return {path: path.stat().st_mtime_ns for path in every if path.name not in ("run.lock", "driver.log")}

    before_ = written()
    assert not_whole(run.manifest) == []
    train(run.recipe, run.out)
    assert goes_on == []
    assert written().items() - before_.items() == set()
    assert before_.keys() == written().keys()


@pytest.mark.parametrize(
    "damage", [truncate, Path.unlink, lambda path: path.write_text("{}"), lambda path: path.write_bytes(b"\xff")]
)
def test_a_summary_that_is_not_whole_is_written_again_and_nothing_else_is_done(
    run: Run, goes_on: list[Path], damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    before_ = files(run.out)
    damage(run.out / "summary.json")
    train(run.recipe, run.out)
    assert goes_on == []
    assert files(run.out) == before_
    assert "summary.json was gone" in capsys.readouterr().out


DAMAGES: dict[str, tuple[str, Damage, str]] = {
    "weights cut short": ("trained/model.safetensors", truncate, "trained/model.safetensors is gone or damaged"),
    "weights gone": ("trained/model.safetensors", Path.unlink, "trained/model.safetensors is gone or damaged"),
    "checksums cut short": (
        "trained/checksums.json",
        lambda p: os.truncate(p, 30),
        "trained/checksums.json is gone or damaged",
    ),
    "checksums emptied": ("trained/checksums.json", lambda p: p.write_text("{}"), "trained/checksums.json is gone"),
    "trained gone": ("trained", shutil.rmtree, "trained is gone"),
    "report gone": ("report.html", Path.unlink, "report.html is gone or damaged"),
    "report cut short": ("report.html", truncate, "report.html is gone or damaged"),
    "report emptied": ("report.html", lambda p: p.write_text(""), "report.html is gone or damaged"),
    "checkpoint cut short": ("checkpoints/phase-002/actor.safetensors", truncate, "actor.safetensors has changed"),
    "checkpoint gone": ("checkpoints/phase-002", shutil.rmtree, "actor.safetensors is gone"),
}


@pytest.mark.parametrize(("name", "damage", "said"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_in_a_complete_run_is_made_again(
    run: Run, goes_on: list[Path], name: str, damage: Damage, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before_ = files(run.out)
    damage(run.out / name)
    assert said in "; ".join(not_whole(run.manifest))
    train(run.recipe, run.out)
    assert goes_on == [run.out]
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert "This run is complete" not in shown
    assert {**before_, **files(run.out)} == before_
    assert before_.keys() - files(run.out).keys() <= {"summary.json"}
    assert read_summary(run.out)["complete"] is True
    assert not_whole(run.manifest) == []
    assert audit(run.out).findings == []


@pytest.mark.parametrize("damage", [truncate, Path.unlink], ids=["truncated", "gone"])
@pytest.mark.parametrize("episode", ["e002", "p001"])
def test_a_damaged_shard_of_a_complete_run_costs_its_episodes_and_the_learning_since(
    run: Run, goes_on: list[Path], damage: Damage, episode: str
) -> None:
    before_, shard = files(run.out), shard_of(run.out, episode)
    damage(shard)
    assert audit(run.out).findings != []
    train(run.recipe, run.out)
    assert goes_on == [run.out]
    assert shard.is_file()
    (rollback,) = read_rollbacks(run.out)
    assert rollback.stages[0][1] == {"e": "evaluate", "p": "rollouts"}[episode[0]] or rollback.kept == 0
    after = {name: content for name, content in files(run.out).items() if not name.endswith(".unusable")}
    assert after == {name: content for name, content in before_.items() if name != "summary.json"}
    assert read_summary(run.out)["complete"] is True
    assert audit(run.out).findings == []


def test_a_damaged_shard_that_no_stage_recorded_is_set_aside_without_a_process(run: Run, goes_on: list[Path]) -> None:
    late = shard_of(run.out, "p002").with_name("shard-" + "0" * 32 + ".arrow")
    late.write_text("torn")
    assert audit(run.out).findings != []
    train(run.recipe, run.out)
    assert goes_on == []
    assert late.with_name(late.name + ".unusable").is_file()
    assert audit(run.out).findings == []


def test_the_policy_that_a_complete_run_began_with_is_named_where_it_is_damaged(run: Run, goes_on: list[Path]) -> None:
    truncate(run.out / "policy" / "model.safetensors")
    with pytest.raises(ManifestError, match=r"model\.safetensors are missing or have changed"):
        train(run.recipe, run.out)
    assert goes_on == []


def test_a_complete_run_that_is_set_back_and_killed_is_not_complete(run: Run, goes_on: list[Path]) -> None:
    """Its report, and what it had trained, are those of before."""
    truncate(run.out / "checkpoints" / "phase-002" / "actor.safetensors")
    with pytest.raises(Killed):
        run.start(before(("export",)))
    assert (run.out / "rollbacks" / "0001" / "report.html").is_file()
    assert not_whole(run.manifest) == ["report.html is gone or damaged"]
    train(run.recipe, run.out)
    assert goes_on == [run.out]


def test_a_whole_run_is_told_without_ray_and_without_torch(run: Run, child_env: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path; from cluster.recipe.recipe import build_recipe;"
        "from cluster.train import train; import json;"
        "train(build_recipe(json.loads(sys.argv[2])), Path(sys.argv[1]));"
        "print([m for m in ('torch', 'ray', 'transformers') if m in sys.modules])"
    )
    words = [sys.executable, "-c", code, str(run.out), json.dumps(RAW)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True, env=child_env)
    assert "This run is complete" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_only_what_is_there_is_pointed_at(run: Run, goes_on: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    (run.out / "metrics.jsonl").unlink()
    train(run.recipe, run.out)
    shown = capsys.readouterr().out
    assert "report.html" in shown
    assert "metrics.jsonl" not in shown


@pytest.mark.parametrize("damaged", ["", "trained/model.safetensors"])
def test_a_complete_run_in_a_store_is_looked_over_too(
    run: Run, goes_on: list[Path], damaged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node's disk lost comes from the store; what was damaged when it was put there is made again."""
    whole = files(run.out)
    if damaged:
        truncate(run.out / damaged)
    uri = "memory://tests/complete" + str(len(damaged))
    monkeypatch.setenv("WAYMARK_NODE_FOLDER", str(tmp_path / "node"))
    working_copy.cache_clear()
    stored = StoredRun(uri)
    lease = RunLease(stored.copy.store)
    lease.take(alone=True)
    stored.take_up(lease)
    shutil.copytree(run.out, stored.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lease"))
    stored.commit()
    lease.give_back()
    (stored.folder / "trained" / "config.json").unlink()
    truncate(stored.folder / "report.html")
    try:
        train(run.recipe, stored.folder, uri=uri)
    finally:
        working_copy.cache_clear()
    assert goes_on == ([stored.folder] if damaged else [])
    assert {name: content for name, content in files(stored.folder).items() if not name.startswith(".")} == whole
