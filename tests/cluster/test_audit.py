"""``waymark audit`` finds nothing wrong with a run that was killed and resumed, and names what is wrong with a broken
one.

The run folders are those of a system without processes (``fake_run``); each test breaks a copy of one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.audit.audit import audit, require_balance
from cluster.errors import ManifestError, RunError, RunStopped
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_files import StageEntry, stage_folders, write_stage
from cluster.run_folder.stage_results import Published, ReplayFiltered, RolloutsPlayed
from cluster.run_folder.summarising import summarise
from cluster.run_folder.summary import write_summary
from records.episodes import Source, Trajectory
from replay.buffer import ReplayBuffer
from replay.shards import write_shard
from tests.cluster.fake_run import Killed, Run, at
from tests.not_files import NOT_FILES, at_once


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def lost(spec: Any) -> bool:
    return spec.source is Source.ROLLOUT and spec.episode_id.startswith("p001-0000")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run that was killed once, in the rollouts of phase 1, and lost one episode."""
    run = Run(tmp_path_factory.mktemp("whole"))
    with pytest.raises(Killed):
        run.start(at(24))
    assert run.manifest.stages()[-1] == (0, "evaluate")
    run.start(loses=lost)
    write_summary(run.out, summarise(run.manifest, "x", 2))
    return run.out


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "moved")


def findings(out: Path) -> list[str]:
    return [f"{finding.part}: {finding.subject}: {finding.found}" for finding in audit(out).findings]


def rollouts(out: Path, phase: int) -> list[Trajectory]:
    buffer = ReplayBuffer(out / "episodes")
    return buffer.trajectories(buffer.ids(sources=[Source.ROLLOUT], phases=[phase]))


def shard_of(out: Path, episode: Trajectory) -> Path:
    return ReplayBuffer(out / "episodes").entry(episode.episode_id).shard


def forge(out: Path, edit: Callable[[StageEntry], StageEntry]) -> None:
    """Change what stages recorded and write all manifests anew, in a chain without a break."""
    entries = RunManifest.read(out).entries()
    for folder in stage_folders(out):
        shutil.rmtree(folder)
    last = sha256((out / "manifest.json").read_bytes()).hexdigest()
    for number, entry in enumerate(entries):
        last = write_stage(out, number, replace(edit(entry), after=last))


def in_stage(phase: int, stage: str, **data: Any) -> Callable[[StageEntry], StageEntry]:
    def edit(entry: StageEntry) -> StageEntry:
        if (entry.phase, entry.stage) != (phase, stage):
            return entry
        return replace(entry, result=replace(entry.result, **data))

    return edit


def swap(out: Path, episode: Trajectory, other: Trajectory) -> None:
    """Put another record in the place of an episode, in shard and manifest alike."""
    old = shard_of(out, episode)
    old.unlink()
    new = write_shard(out / "episodes", [other])
    before, after = f"episodes/{old.name}", f"episodes/{new.path.name}"

    def edit(entry: StageEntry) -> StageEntry:
        files = {after if name == before else name: digest for name, digest in entry.files.items()}
        return replace(entry, files={**files, after: new.sha256} if after in files else files)

    forge(out, edit)


def test_a_run_that_was_killed_and_resumed_adds_up_wherever_it_lies(out: Path) -> None:
    result = audit(out)
    assert result.findings == []
    assert all(part.looked_at for part in result.parts)
    assert [part.name for part in result.parts] == [
        "manifests", "files", "shards", "episodes", "training", "ledger",
    ]  # fmt: skip
    account = result.accounts[1, "rollouts"]
    assert account.failed == {"infra/browser_crashed": 1}
    assert account.cut_short == 1, "the episode that was being played when the run was killed"
    assert account.leased == account.completed + 1 + account.cut_short


@pytest.mark.parametrize("moment", [2, 15, 29, 47])
def test_a_run_that_is_not_finished_adds_up(tmp_path: Path, moment: int) -> None:
    run = Run(tmp_path)
    with pytest.raises(Killed):
        run.start(at(moment))
    assert findings(run.out) == []


def test_a_shard_that_is_gone_is_named(out: Path) -> None:
    episode = rollouts(out, 1)[0]
    path = shard_of(out, episode)
    path.unlink()
    found = findings(out)
    assert f"files: episodes/{path.name}: is gone; phase 1 rollouts left it" in found
    assert f"episodes: episode {episode.episode_id}: is counted in phase 1 rollouts, but no shard holds it" in found


def test_a_torn_shard_is_named(out: Path) -> None:
    path = shard_of(out, rollouts(out, 1)[0])
    path.write_bytes(path.read_bytes()[:-50])
    found = findings(out)
    assert f"files: episodes/{path.name}: has changed since it was recorded" in found
    assert any(line.startswith(f"shards: episodes/{path.name}: ") and "delete it" in line for line in found)


def test_an_edited_outcome_is_found_in_the_shard(out: Path) -> None:
    episode = rollouts(out, 1)[0]
    other = replace(episode, outcome=1.0 - (episode.outcome or 0.0))
    path = shard_of(out, episode)
    path.unlink()
    write_shard(out / "episodes", [other])
    found = findings(out)
    assert any("successes were counted, but the shards hold" in line for line in found)
    assert any(f"episode {episode.episode_id}: lies in" in line for line in found)


def test_an_edited_outcome_is_found_though_every_hash_was_made_to_fit(out: Path) -> None:
    episode = rollouts(out, 1)[0]
    swap(out, episode, replace(episode, outcome=1.0 - (episode.outcome or 0.0)))
    assert any(line.startswith("episodes: phase 1 rollouts: ") and "successes" in line for line in findings(out))


def test_a_duplicated_episode_is_named_with_its_shards(out: Path) -> None:
    episode = rollouts(out, 2)[0]
    first = shard_of(out, episode).name
    second = write_shard(out / "episodes", [replace(episode, worker="other")]).path.name
    (line,) = findings(out)
    assert line.startswith(f"shards: episode {episode.episode_id}: is stored 2 times, but was dispatched 1 times")
    assert first in line
    assert second in line


def test_an_episode_that_nobody_dispatched_is_named(out: Path) -> None:
    write_shard(out / "episodes", [replace(rollouts(out, 1)[0], episode_id="smuggled")])
    assert any("episode smuggled: is stored 1 times, but was dispatched 0 times" in line for line in findings(out))


@pytest.mark.parametrize("name", ["actor.safetensors"])
def test_a_truncated_checkpoint_is_named(out: Path, name: str) -> None:
    path = out / "checkpoints" / "phase-002" / name
    path.write_bytes(path.read_bytes()[:-1])
    assert findings(out) == [f"files: checkpoints/phase-002/{name}: has changed since it was recorded"]


def test_a_checkpoint_that_is_kept_and_gone_is_named_and_an_old_one_is_not_missed(out: Path) -> None:
    assert not (out / "checkpoints" / "phase-000").exists(), "two are kept"
    shutil.rmtree(out / "checkpoints" / "phase-001")
    (line,) = findings(out)
    assert line == "files: checkpoints/phase-001/actor.safetensors: is gone; phase 1 actor left it"


@pytest.mark.parametrize(
    ("gone", "found"),
    [
        ("-phase-001-replay", "manifest 0005 is gone, though 0006-phase-001-critics is there"),
        (
            "-phase-002-curriculum",
            "phase 2 curriculum: is in metrics.jsonl or in the summary, but its manifest is gone",
        ),
    ],
)
def test_a_manifest_that_is_gone_is_named(out: Path, gone: str, found: str) -> None:
    (folder,) = [path for path in stage_folders(out) if path.name.endswith(gone)]
    shutil.rmtree(folder)
    assert any(line.startswith("manifests: ") and line.endswith(found) for line in findings(out))


def test_a_manifest_that_was_edited_is_named(out: Path) -> None:
    path = out / "stages" / "0004-phase-001-rollouts" / "manifest.json"
    path.write_text(path.read_text().replace('"dispatched": 6', '"dispatched": 5'))
    assert any("stages/0004-phase-001-rollouts: manifest.json does not have the SHA-256" in f for f in findings(out))


def test_a_count_that_is_wrong_is_found_though_every_hash_was_made_to_fit(out: Path) -> None:
    forge(out, in_stage(1, "rollouts", dispatched=7))
    assert "episodes: phase 1 rollouts: 7 episodes were dispatched, but 5 are completed and 1 failed" in findings(out)


def test_an_episode_that_is_counted_in_two_stages_is_named(out: Path) -> None:
    mine, other = (RunManifest.read(out).result(phase, RolloutsPlayed).episodes for phase in (1, 2))
    forge(out, in_stage(2, "rollouts", episodes=[*other, mine[0]], dispatched=7))
    expected = f"episodes: episode {mine[0]}: is counted in phase 1 rollouts and phase 2 rollouts"
    assert expected in findings(out)


def test_a_step_of_another_version_is_named(out: Path) -> None:
    episode = rollouts(out, 2)[0]
    swap(out, episode, replace(episode, steps=tuple(replace(step, policy_version=0) for step in episode.steps)))
    expected = f"training: episode {episode.episode_id}: step 0 was decided by version 0, expected version 1"
    assert findings(out) == [expected]


def test_a_replayed_failure_is_named(out: Path) -> None:
    failed = next(episode for episode in rollouts(out, 1) if episode.outcome == 0.0)
    kept = RunManifest.read(out).result(2, ReplayFiltered).kept
    forge(out, in_stage(2, "replay", kept={**kept, failed.episode_id: (0,), "never-played": (0,)}))
    found = findings(out)
    assert any(f"episode {failed.episode_id}: is replayed in phase 2 with steps [0]" in line for line in found)
    assert any("episode never-played: is replayed in phase 2, but is no stored rollout" in line for line in found)
    assert any("phase 2 actor: the learner was given" in line for line in found)


def test_weights_of_another_checksum_are_named(out: Path) -> None:
    published = RunManifest.read(out).result(1, Published).weights
    forge(out, in_stage(1, "publish", weights=replace(published, checksum="0" * 64)))
    assert any(line.startswith("training: phase 1 publish: expected version 1") for line in findings(out))


def last_ledger(out: Path) -> Path:
    return sorted((out / "ledger").iterdir())[-1]


def test_an_attempt_without_an_end_is_named(out: Path) -> None:
    lines = last_ledger(out).read_text().splitlines(keepends=True)
    at_end = next(i for i, line in enumerate(lines) if '"phase": 2, "stage": "rollouts", "event": "complete"' in line)
    last_ledger(out).write_text("".join(lines[:at_end] + lines[at_end + 1 :]))
    assert findings(out) == [
        "ledger: phase 2 rollouts: 6 attempts were made in the start that completed it; 1 of them have no end"
    ]


def test_an_episode_that_was_completed_twice_is_named(out: Path) -> None:
    lines = last_ledger(out).read_text().splitlines(keepends=True)
    line = next(line for line in lines if '"phase": 2, "stage": "rollouts", "event": "complete"' in line)
    last_ledger(out).write_text("".join([*lines, line]))
    episode = json.loads(line)["episode"]
    assert f"ledger: episode {episode}: was completed 2 times in phase 2 rollouts, start 2" in findings(out)


def test_a_failure_of_another_kind_than_was_counted_is_named(out: Path) -> None:
    path = last_ledger(out)
    path.write_text(path.read_text().replace("infra/browser_crashed", "judge/nonsense"))
    expected = "failures {'infra/browser_crashed': 1} were counted, the ledger has {'judge/nonsense': 1}"
    assert findings(out) == [f"ledger: phase 1 rollouts: {expected}"]


def test_a_damaged_ledger_is_a_finding_and_a_torn_last_line_is_not(out: Path) -> None:
    path = last_ledger(out)
    text = path.read_text()
    path.write_text(text + '{"phase": 3, "sta')
    assert findings(out) == []
    path.write_text("nonsense\n" + text)
    assert any("ledger/0002.jsonl, line 1: not an event of a ledger" in line for line in findings(out))


PLACES = [
    "metrics.jsonl", "summary.json", "ledger/0001.jsonl", "ledger/0009.jsonl", "stages/0003-*/manifest.json",
    "stages/0003-*/COMPLETE", "episodes/late.arrow", "checkpoints/phase-002/*", "rollbacks/0001.json",
    "starts/0001.json", "weights/*",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
@pytest.mark.parametrize("place", PLACES)
def test_what_lies_in_place_of_a_file_is_not_waited_for(out: Path, place: str, kind: str) -> None:
    path = max(out.glob(place), default=out / place)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    NOT_FILES[kind](path)
    with at_once():
        found = findings(out)
    # Starts and the summary are not part of the accounts.
    assert bool(found) is not place.startswith(("starts", "summary"))


def test_a_header_that_is_a_pipe_is_no_run(out: Path) -> None:
    (out / "manifest.json").unlink()
    os.mkfifo(out / "manifest.json")
    with at_once(), pytest.raises(ManifestError, match="expected a file, found a pipe"):
        audit(out)


def test_a_phase_that_does_not_add_up_stops_the_run(out: Path) -> None:
    require_balance(out, 1, ReplayBuffer(out / "episodes"))
    forge(out, in_stage(1, "rollouts", dispatched=7))
    with pytest.raises(RunStopped, match=r"(?s)phase 1 does not add up.*7 episodes were dispatched.*waymark audit"):
        require_balance(out, 1, ReplayBuffer(out / "episodes"))
    require_balance(out, 2, ReplayBuffer(out / "episodes"))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, found in (
        (tmp_path, "holds no run"),
        (tmp_path / "file", "is a file"),
        (tmp_path / "x", "is not there"),
    ):
        with pytest.raises(
            ManifestError, match=f"{folder} {found}: expected the folder of a run, in which manifest.json"
        ):
            audit(folder)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ManifestError, match="cannot read .*: .*; restore it from a copy"):
        audit(tmp_path)


def test_the_command_prints_what_it_looked_at_and_what_is_wrong(out: Path) -> None:
    done = CliRunner().invoke(cli.app, ["audit", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    for text in ("1 rollouts", "1 x infra/browser_crashed failed", "manifests", "each attempt has one end"):
        assert text in done.output
    (out / "checkpoints" / "phase-002" / "actor.safetensors").unlink()
    with pytest.raises(RunError, match="does not add up: 1 findings"):
        CliRunner().invoke(cli.app, ["audit", str(out)], catch_exceptions=False)


def test_a_name_in_a_run_folder_gives_no_orders_to_the_terminal(out: Path) -> None:
    (out / "episodes" / "\x1b[2J\u202e.arrow").write_bytes(b"x")
    shown = CliRunner().invoke(cli.app, ["audit", str(out)]).output
    assert "\\x1b[2J\\u202e.arrow" in shown
    assert not set(shown) & set("\x1b\u202e")


def test_an_audit_needs_neither_torch_nor_ray_and_writes_nothing(out: Path, child_env: dict[str, str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    code = (
        "import sys; from cluster.cli import app;"
        "app(['audit', sys.argv[1]], standalone_mode=False);"
        "sys.exit(','.join({'torch', 'ray', 'playwright'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=child_env)
    assert done.stderr.strip() == ""
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
