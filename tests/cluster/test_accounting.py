"""What a start takes on trust and what it audits: lines of the ledger that a machine's end took, and phases that were
audited before."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import accounting, cli
from cluster.audit.audit import audit
from cluster.errors import RunStopped
from cluster.run_folder import ledger
from cluster.run_folder.ledger import Found, LedgerFile, read_ledger
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import RolloutsPlayed, WithEpisodes
from records.episodes import Trajectory
from replay.buffer import ReplayBuffer
from replay.shards import write_shard
from rollout_workers.leases import Event, Lease
from tests.cluster.fake_run import ORDER, Killed, Run, at, before
from tests.cluster.made_episodes import store

AHEAD: dict[str, Any] = {"rollout": {"max_staleness": 1}}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def findings(out: Path) -> list[str]:
    return [f"{finding.part}: {finding.subject}: {finding.found}" for finding in audit(out).findings]


def ledger_of(out: Path, start: int) -> Path:
    return out / "ledger" / f"{start:04d}.jsonl"


def newest_ledger(out: Path) -> Path:
    return max((out / "ledger").iterdir())


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """The bytes of each start's ledger that a stage's manifest came after, by file."""
    sizes: Counter[Path] = Counter()
    complete = RunManifest.complete_stage

    def completed(self: RunManifest, *arguments: Any, **named: Any) -> None:
        path = newest_ledger(self.out)
        sizes[path] = path.stat().st_size
        complete(self, *arguments, **named)

    monkeypatch.setattr(RunManifest, "complete_stage", completed)
    return sizes


@pytest.mark.parametrize("moment", [3, 17, 22, 25, 28, 36, 40, 44, 54])
@pytest.mark.parametrize("settings", [{}, AHEAD], ids=["in turn", "ahead"])
def test_a_machine_that_ends_with_the_newest_lines_of_its_ledger_costs_no_run(
    tmp_path: Path, durable: Counter[Path], moment: int, settings: dict[str, Any]
) -> None:
    """Shards whose lines are lost count, are not played again, and the ledger says that they were found."""
    run = Run(tmp_path, **settings)
    with pytest.raises(Killed):
        run.start(at(moment))
    path = newest_ledger(run.out)
    os.truncate(path, durable[path])
    leased = {line.episode for line in read_ledger(run.out) if line.event is Event.LEASE}
    lost = set(ReplayBuffer(run.out / "episodes").ids()) - leased
    played = {spec.episode_id for spec in run.system.specs}
    run.start()
    assert run.manifest.stages() == ORDER
    assert not played & {spec.episode_id for spec in run.system.specs}
    assert findings(run.out) == []
    assert {line.episode for line in read_ledger(run.out) if line.event is Found.FOUND} == lost
    assert sum(account.found for account in audit(run.out).accounts.values()) == len(lost)
    assert ("whose lines in the ledger are lost" in run.output.getvalue()) == bool(lost)
    run.start()


def test_lines_that_are_lost_twice_are_found_twice(tmp_path: Path, durable: Counter[Path]) -> None:
    run = Run(tmp_path)
    for moment in (26, 6):
        with pytest.raises(Killed):
            run.start(at(moment))
        os.truncate(newest_ledger(run.out), durable[newest_ledger(run.out)])
    run.start()
    assert audit(run.out).accounts[1, "rollouts"].found > 2
    assert findings(run.out) == []


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run: its first start published version 0, its second played phases 1 and 2."""
    run = Run(tmp_path_factory.mktemp("killed-once"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        with pytest.raises(Killed):
            run.start(at(24))
        run.start()
        run.start()
    return run.out


@pytest.fixture
def out(killed_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(killed_once, tmp_path / "copy")


def without_lines(out: Path, phase: int) -> str:
    """Take the lines of one rollout of a phase out of the ledger, and return its id."""
    episode: str = RunManifest.read(out).result(phase, RolloutsPlayed).episodes[-1]
    for path in (out / "ledger").iterdir():
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if json.loads(line)["episode"] != episode))
    return episode


def say_found(out: Path, start: int, phase: int, episode: str) -> None:
    line = {"phase": phase, "stage": "rollouts", "event": "found", "episode": episode, "attempt": 0, "worker": -1}
    with ledger_of(out, start).open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_an_episode_without_any_line_was_never_dispatched(out: Path) -> None:
    episode = without_lines(out, 1)
    assert f"ledger: episode {episode}: was never dispatched in phase 1 rollouts" in findings(out)
    assert any("is stored 1 times, but was dispatched 0 times" in line for line in findings(out))


@pytest.mark.parametrize(
    ("phase", "start", "problem"),
    [
        (1, 1, "was found by start 1, before which nobody can have played it in phase 1 rollouts"),
        (1, 2, ""),
        (1, 3, "was found by start 3, but phase 1 rollouts was completed in start 2"),
        (2, 1, "was found by start 1, before which nobody can have played it in phase 2 rollouts"),
        (2, 2, "was found by start 2, before which nobody can have played it in phase 2 rollouts"),
    ],
)
def test_an_episode_is_found_by_a_start_that_came_after_it_can_have_been_played_and_before_it_was_counted(
    out: Path, phase: int, start: int, problem: str
) -> None:
    """Version 0 was published by start 1, version 1 by start 2, which completed both phases."""
    episode = without_lines(out, phase)
    say_found(out, start, phase, episode)
    assert findings(out) == ([f"ledger: episode {episode}: {problem}"] if problem else [])
    shown = CliRunner().invoke(cli.app, ["audit", str(out)]).output
    assert f"{phase} rollouts: 1 episodes found, whose lines of dispatch are lost" in shown


def test_a_line_that_says_found_makes_no_room_for_a_second_record(out: Path) -> None:
    episode = ReplayBuffer(out / "episodes").trajectory(RunManifest.read(out).result(1, RolloutsPlayed).episodes[-1])
    for _ in range(2):
        say_found(out, 3, 1, episode.episode_id)
    assert findings(out) == []
    write_shard(out / "episodes", [replace(episode, worker="other")])
    (line,) = findings(out)
    assert f"episode {episode.episode_id}: is stored 2 times, but was dispatched 1 times" in line


def test_an_episode_that_nobody_played_and_that_turns_up_while_a_start_runs_stops_the_run(tmp_path: Path) -> None:
    """It was not there when the start began, so that no start can have found it."""
    known = Run(tmp_path / "known").start().specs
    spec = next(spec for spec in known if spec.phase == 2 and spec.episode_id.startswith("p002"))
    run = Run(tmp_path / "run")

    def smuggled(what: tuple[Any, ...]) -> None:
        if what[0] == "update_critics" and what[3] == 1:
            store(run.system.folders.episodes, [spec], [1.0], 1)

    for _ in range(2):
        with pytest.raises(RunStopped, match=f"{spec.episode_id} was never dispatched in phase 2 rollouts"):
            run.start(smuggled)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[Path, int]]:
    """How often each line of a ledger is read."""
    times: Counter[tuple[Path, int]] = Counter()
    parse = ledger._parse

    def parsing(path: Path, number: int, text: str) -> ledger.LedgerLine:
        times[path, number] += 1
        return parse(path, number, text)

    monkeypatch.setattr(ledger, "_parse", parsing)
    return times


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The phases that starts audit."""
    phases: list[int] = []
    check = accounting.require_balance

    def counted(out: Path, phase: int, *rest: Any) -> None:
        phases.append(phase)
        check(out, phase, *rest)

    monkeypatch.setattr(accounting, "require_balance", counted)
    return phases


def test_a_complete_run_started_again_decodes_no_episode_and_reads_its_ledger_once(
    out: Path, parsed: Counter[tuple[Path, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    streamed: list[str] = []
    stream = ReplayBuffer.stream

    def streaming(self: ReplayBuffer, ids: Iterable[str]) -> Iterator[Trajectory]:
        ids = list(ids)
        streamed.extend(ids)
        return stream(self, ids)

    monkeypatch.setattr(ReplayBuffer, "stream", streaming)
    Run(out).start()
    assert streamed == []
    assert len(parsed) == sum(len(path.read_text().splitlines()) for path in (out / "ledger").iterdir())
    assert set(parsed.values()) == {1}


def test_a_start_reads_each_line_of_its_own_once(tmp_path: Path, parsed: Counter[tuple[Path, int]]) -> None:
    Run(tmp_path, **AHEAD).start()
    assert len(parsed) == len(newest_ledger(tmp_path).read_text().splitlines())
    assert set(parsed.values()) == {1}


@pytest.mark.parametrize(
    ("cut_before", "left"),
    [
        (("play", "evaluation", 0), [0, 1, 2]),
        (("play", "rollout", 1), [1, 2]),
        (("publish", 1), [1, 2]),
        (("play", "rollout", 2), [2]),
        (("export",), []),
    ],
)
def test_a_start_audits_the_phases_that_it_completes(
    tmp_path: Path, audited: list[int], cut_before: tuple[Any, ...], left: list[int]
) -> None:
    run = Run(tmp_path)
    with pytest.raises(Killed):
        run.start(before(cut_before))
    audited.clear()
    run.start()
    assert audited == left


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_a_phase_that_was_complete_but_not_audited_is_audited_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: int
) -> None:
    run, audited = Run(tmp_path), []
    check = accounting.require_balance

    def cut_short(out: Path, now: int, *rest: Any) -> None:
        if now == phase and now not in audited:
            audited.append(now)
            raise Killed
        audited.append(now)
        check(out, now, *rest)

    monkeypatch.setattr(accounting, "require_balance", cut_short)
    with pytest.raises(Killed):
        run.start()
    audited[:] = [phase]
    run.start()
    assert audited == [phase, *range(phase, 3)]


def test_a_phase_that_was_rolled_back_is_audited_again(out: Path, audited: list[int]) -> None:
    (out / "checkpoints" / "phase-002" / "actor.safetensors").write_text("torn")
    Run(out).start()
    assert audited == [2]
    assert findings(out) == []


def test_of_a_run_of_before_starts_noted_what_they_audited_the_newest_phase_is_audited(
    out: Path, audited: list[int]
) -> None:
    for path in (out / "starts").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "balanced": "?"}))
    Run(out).start()
    assert audited == [2]
    Run(out).start()
    assert audited == [2]


def test_a_damaged_ledger_stops_a_start_before_anything_is_done(out: Path) -> None:
    path = ledger_of(out, 2)
    path.write_text("nonsense\n" + path.read_text())
    run = Run(out)
    with pytest.raises(RunStopped, match=r"0002\.jsonl, line 1: not an event of a ledger.*restore it from a copy"):
        run.start()
    assert run.system.asked == []


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """How many bytes of a file were forced to the disk."""
    sizes: dict[int, int] = {}

    def fsync(descriptor: int) -> None:
        file = os.fstat(descriptor)
        sizes[file.st_ino] = file.st_size

    monkeypatch.setattr(os, "fsync", fsync)
    return lambda path: sizes.get(path.stat().st_ino, 0)


def test_lines_are_forced_to_the_disk_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    with LedgerFile(tmp_path, 1) as file:
        monkeypatch.setattr(os, "fsync", times.append)
        journal = file.of(1, "rollouts")
        journal.force()
        assert not times, "nothing was written"
        for number in range(3):
            journal(Event.LEASE, Lease(f"episode-{number}", 1, 0), None)
        journal.force()
        journal.force()
        assert len(times) == 1
    assert [line.episode for line in read_ledger(tmp_path)] == ["episode-0", "episode-1", "episode-2"]


def test_what_happened_to_a_stages_episodes_is_durable_before_its_manifest(
    tmp_path: Path, forced: Callable[[Path], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    complete, looked = RunManifest.complete_stage, []

    def completed(self: RunManifest, phase: int, result: Any, *rest: Any, **named: Any) -> None:
        path = newest_ledger(self.out)
        if isinstance(result, WithEpisodes):
            looked.append(path.stat().st_size)
            assert forced(path) == path.stat().st_size
        complete(self, phase, result, *rest, **named)

    monkeypatch.setattr(RunManifest, "complete_stage", completed)
    Run(tmp_path).start()
    assert looked == sorted(looked)
    assert looked[-1] > looked[0] > 0
