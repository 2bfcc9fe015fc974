"""A run whose recorded files rot on the disk rolls itself back, does the rest again, and ends as if nothing had been.

Real files; the phase loop runs over a system without processes (``tests.cluster.fake_run``).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.audit.audit import audit
from cluster.errors import ManifestError
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.rollback import read_rollbacks
from cluster.run_folder.stage_results import RolloutsPlayed, WithEpisodes
from cluster.run_folder.summarising import summarise
from cluster.run_folder.summary import write_summary
from records.episodes import Source
from replay.buffer import ReplayBuffer
from tests.cluster.fake_run import ORDER, RAW, Killed, Run, at, before

pytestmark = pytest.mark.faults


def too_long(value: object) -> Any:
    """A case that is left to `make test-all`: all of them together take minutes."""
    return pytest.param(value, marks=pytest.mark.lengthy)


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("undisturbed"))
    run.start()
    return run


def cut_short(out: Path, request: tuple[Any, ...], **sections: dict[str, Any]) -> Run:
    """A run that was killed just before a request, and wrote its summary."""
    run = Run(out, **sections)
    with pytest.raises(Killed):
        run.start(before(request))
    write_summary(out, summarise(run.manifest, "x", run.recipe.run.phases))
    return run


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def checkpoint(run: Run, name: str) -> Path:
    return run.out / "checkpoints" / name / "actor.safetensors"


def shard(run: Run, source: Source, phase: int) -> Path:
    buffer = ReplayBuffer(run.out / "episodes")
    return buffer.entry(buffer.ids(sources=[source], phases=[phase])[0]).shard


def episodes_of(run: Run, phase: int, stage: str) -> tuple[str, ...]:
    result = run.manifest.entry(phase, stage).result
    return result.episodes if isinstance(result, WithEpisodes) else ()


def contents(run: Run) -> dict[str, Any]:
    """All that a run leaves, but for times."""
    numbers = [{key: value for key, value in line.items() if key != "time"} for line in read_metrics(run.out)]
    files = [path for name in ("checkpoints", "weights") for path in (run.out / name).rglob("*") if path.is_file()]
    return {
        "stages": {stage: run.manifest.entry(*stage).result for stage in run.manifest.stages()},
        "shards": sorted(path.name for path in (run.out / "episodes").glob("*.arrow")),
        "metrics": numbers,
        "learned": {path.relative_to(run.out).as_posix(): path.read_bytes() for path in files},
    }


def assert_as_undisturbed(run: Run, undisturbed: Run) -> None:
    assert run.manifest.stages() == ORDER
    assert contents(run) == contents(undisturbed)
    assert audit(run.out).findings == []


CHECKPOINTS = [
    (("pretrain", "potential"), ["cloned"], (0, "clone")),
    (("update_critics", 1), ["phase-000"], (0, "critics")),
    (("update_actor", 1), ["phase-001-critics"], (1, "critics")),
    (("play", "evaluation", 1), ["phase-001"], (1, "actor")),
    (("play", "rollout", 2), ["phase-001"], (1, "critics")),
    (("play", "rollout", 2), ["phase-001", "phase-000"], (0, "clone")),
    (("publish", 2), ["phase-002", "phase-002-critics"], (2, "critics")),
    (("export",), ["phase-002"], (2, "critics")),
]


@pytest.mark.parametrize(
    "damage", [truncate, too_long(lambda path: shutil.rmtree(path.parent))], ids=["truncated", "gone"]
)
@pytest.mark.parametrize(("request_", "damaged", "first"), CHECKPOINTS, ids=lambda value: str(value))
def test_a_damaged_checkpoint_costs_what_came_after_the_last_whole_one_and_no_episode(
    tmp_path: Path,
    undisturbed: Run,
    request_: tuple[Any, ...],
    damaged: list[str],
    first: tuple[int, str],
    damage: Callable[[Path], None],
) -> None:
    run = cut_short(tmp_path, request_)
    played = Counter(spec.episode_id for spec in run.system.specs)
    stages = run.manifest.stages()
    for name in damaged:
        damage(checkpoint(run, name))
    assert audit(run.out).findings != []
    run.start()
    (found,) = read_rollbacks(run.out)
    assert list(found.stages) == stages[stages.index(first) :]
    assert found.why[0].startswith(f"checkpoints/{damaged[0]}/actor.safetensors ")
    played.update(spec.episode_id for spec in run.system.specs)
    assert set(played.values()) == {1}, "a finished episode was played again"
    assert_as_undisturbed(run, undisturbed)


@pytest.mark.parametrize("damage", [truncate, too_long(Path.unlink)], ids=["torn", "gone"])
@pytest.mark.parametrize(
    ("source", "phase", "first"),
    [
        (Source.DEMONSTRATION, 0, (0, "clone")),
        (Source.EVALUATION, 0, (0, "evaluate")),
        (Source.ROLLOUT, 1, (1, "rollouts")),
        (Source.EVALUATION, 1, (1, "evaluate")),
        (Source.ROLLOUT, 2, (2, "rollouts")),
    ],
)
def test_a_damaged_shard_costs_its_own_episodes_and_the_learning_since(
    tmp_path: Path,
    undisturbed: Run,
    source: Source,
    phase: int,
    first: tuple[int, str],
    damage: Callable[[Path], None],
) -> None:
    run = cut_short(tmp_path, ("update_critics", 2))
    played = Counter(spec.episode_id for spec in run.system.specs)
    path = shard(run, source, phase)
    lost = [i for i in ReplayBuffer(run.out / "episodes").ids() if shard_of(run, i) == path]
    damage(path)
    assert any(path.name in finding.subject for finding in audit(run.out).findings)
    run.start()
    (found,) = read_rollbacks(run.out)
    assert found.stages[0] in (first, (0, "critics"))
    assert found.why == (f"episodes/{path.name} is gone or damaged",)
    played.update(spec.episode_id for spec in run.system.specs)
    assert sorted(i for i, times in played.items() if times == 2) == lost
    assert set(played.values()) == {1, 2}
    assert_as_undisturbed(run, undisturbed)


def shard_of(run: Run, episode_id: str) -> Path:
    return ReplayBuffer(run.out / "episodes").entry(episode_id).shard


@pytest.mark.parametrize("what", ["checkpoint", "shard"])
def test_a_run_goes_back_to_the_start_where_all_checkpoints_before_the_damage_were_let_go(
    tmp_path: Path, what: str
) -> None:
    settings = {"phases": 3, "keep_checkpoints": 1}
    alone = Run(tmp_path / "alone", run=settings)
    alone.start()
    run = cut_short(tmp_path / "run", ("update_critics", 3), run=settings)
    truncate(checkpoint(run, "phase-002") if what == "checkpoint" else shard(run, Source.ROLLOUT, 1))
    with pytest.raises(Killed):
        run.start(before(("update_critics", 2)))
    assert read_rollbacks(run.out)[0].kept == 0
    assert [what[1] for what in run.system.asked if what[0] == "checkpoint"][0] == "cloned"
    assert audit(run.out).findings == [], "weights of later phases are not taken for newer ones"
    run.start()
    assert contents(run) == contents(alone)
    assert audit(run.out).findings == []


def test_a_damaged_file_that_nothing_needs_any_more_sets_nothing_back(tmp_path: Path) -> None:
    run = cut_short(tmp_path, ("play", "rollout", 2))
    truncate(checkpoint(run, "phase-000"))
    truncate(run.out / "weights" / "actor-000000.safetensors")
    run.start()
    assert read_rollbacks(run.out) == []


def test_weights_that_are_served_again_are_written_again(tmp_path: Path, undisturbed: Run) -> None:
    run = cut_short(tmp_path, ("play", "rollout", 2))
    truncate(run.out / "weights" / "actor-000001.safetensors")
    run.start()
    assert read_rollbacks(run.out) == []
    assert_as_undisturbed(run, undisturbed)


def test_the_loss_is_said_in_numbers_wherever_somebody_may_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = cut_short(tmp_path, ("play", "rollout", 2))
    truncate(checkpoint(run, "phase-001"))
    seconds = sum(run.manifest.entry(1, stage).seconds for stage in ("critics", "actor", "publish", "evaluate"))
    seconds += run.manifest.entry(1, "curriculum").seconds
    with caplog.at_level(logging.WARNING):
        run.start()
    (found,) = read_rollbacks(run.out)
    assert found.seconds == pytest.approx(seconds)
    assert found.start == 2
    assert found.line.startswith(
        "rolled back to before phase 1 critics: checkpoints/phase-001/actor.safetensors has changed; "
        "checkpoints/phase-001-critics/actor.safetensors is gone. Done again: 5 of 11 stages, which took "
    )
    assert json.loads((run.out / "starts" / "0002.json").read_text())["rollbacks"] == [found.line]
    assert found.line in caplog.messages
    assert "rolled back to before phase 1 critics" in " ".join(run.output.getvalue().split())
    done = CliRunner().invoke(cli.app, ["audit", str(run.out)], catch_exceptions=False)
    assert f"start 2: {found.line}" in done.output


def test_what_was_set_aside_is_still_there(tmp_path: Path) -> None:
    run = cut_short(tmp_path, ("play", "rollout", 2))
    truncate(checkpoint(run, "phase-001"))
    before_it = {path.relative_to(run.out): path.read_bytes() for path in run.out.rglob("*") if path.is_file()}
    lines = [(line["phase"], line["stage"]) for line in read_metrics(run.out)]
    run.start()
    aside = run.out / "rollbacks" / "0001"
    moved = {path.relative_to(aside): path.read_bytes() for path in aside.rglob("*") if path.is_file()}
    (found,) = read_rollbacks(run.out)
    assert {name: before_it[name] for name in moved if name.name != "metrics.jsonl"} == {
        name: content for name, content in moved.items() if name.name != "metrics.jsonl"
    }
    assert [(line["phase"], line["stage"]) for line in read_metrics(aside)] == list(found.stages) == lines[-5:]
    assert Path("checkpoints/phase-001/actor.safetensors") in moved
    assert Path("summary.json") in moved


def renames(patch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the driver be killed just before its file system's ``number``-th renaming from now on."""
    done: list[str] = []

    def counted(rename: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(source: Any, target: Any) -> Any:
            if len(done) == number:
                raise Killed
            done.append(str(target))
            return rename(source, target)

        return wrapped

    patch.setattr(os, "replace", counted(os.replace))
    patch.setattr(Path, "rename", counted(Path.rename))
    return done


RENAMINGS = 15
SELDOM = [number for number in range(1, RENAMINGS) if number != RENAMINGS // 2]
"""Of a start that sets back: its start's file twice, the record twice, the metrics twice, all that is moved."""


@pytest.mark.parametrize("number", [0, RENAMINGS // 2, RENAMINGS + 1, *map(too_long, SELDOM)])
def test_a_rollback_that_is_killed_anywhere_is_finished_by_the_next_start(
    tmp_path: Path, undisturbed: Run, number: int
) -> None:
    run = cut_short(tmp_path, ("play", "rollout", 2))
    truncate(checkpoint(run, "phase-001"))
    damaged = shard(run, Source.EVALUATION, 1)
    truncate(damaged)
    with pytest.MonkeyPatch.context() as patch:
        done = renames(patch, number)
        with pytest.raises(Killed):
            run.start(at(0))
    assert len(done) == min(number, RENAMINGS)
    if done[1:]:
        begun = read_rollbacks(run.out)[0].done is False
        named = [f"{finding.part}: {finding.subject}" for finding in audit(run.out).findings]
        assert ("manifests: rollbacks/0001" in named) is begun
    run.start()
    (found,) = read_rollbacks(run.out)
    assert found.done
    assert found.stages[0] == (1, "critics")
    assert_as_undisturbed(run, undisturbed)
    assert damaged.with_name(damaged.name + ".unusable").exists()


def test_a_second_damage_sets_back_a_second_time(tmp_path: Path, undisturbed: Run) -> None:
    run = cut_short(tmp_path, ("play", "evaluation", 1))
    truncate(checkpoint(run, "phase-001"))
    with pytest.raises(Killed):
        run.start(before(("play", "rollout", 2)))
    truncate(checkpoint(run, "phase-001"))
    with pytest.raises(Killed):
        run.start(before(("update_actor", 2)))
    truncate(shard(run, Source.ROLLOUT, 2))
    run.start()
    assert [found.stages[0] for found in read_rollbacks(run.out)] == [(1, "actor"), (1, "critics"), (2, "rollouts")]
    assert_as_undisturbed(run, undisturbed)


def test_a_complete_run_without_its_report_whose_last_checkpoint_is_damaged_trains_the_last_phase_again(
    tmp_path: Path, undisturbed: Run
) -> None:
    run = Run(tmp_path)
    run.start()
    truncate(checkpoint(run, "phase-002"))
    system = run.start()
    assert system.moments()[:4] == [
        ("retire", "browserless"),
        ("restore", "phase-001"),
        ("publish", 1),
        ("update_critics", 2),
    ]
    assert_as_undisturbed(run, undisturbed)


def test_a_run_that_was_rollbacks_and_is_not_finished_adds_up(tmp_path: Path) -> None:
    """Its third phase had let go of checkpoints that its second one alone would still keep."""
    run = cut_short(tmp_path, ("play", "rollout", 3), run={"phases": 3})
    truncate(checkpoint(run, "phase-002"))
    assert not checkpoint(run, "phase-000").exists()
    for request in (("update_actor", 2), ("publish", 2), ("update_critics", 3)):
        with pytest.raises(Killed):
            run.start(before(request))
        assert audit(run.out).findings == []
    run.start()
    assert audit(run.out).findings == []


def test_episodes_stay_only_with_the_weights_that_decided_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where training does not repeat exactly, the actor that is trained again is another one."""
    run = cut_short(tmp_path, ("update_critics", 3), run={"phases": 3, "keep_checkpoints": 3})
    kept = {i for stage in ((0, "evaluate"), (1, "rollouts")) for i in episodes_of(run, *stage)}
    former = {i for p, s in run.manifest.stages() for i in episodes_of(run, p, s) if p} - kept
    for phase in (1, 2):
        truncate(checkpoint(run, f"phase-00{phase}"))
    with pytest.raises(Killed):
        run.start(before(("play", "rollout", 2)), luck=", another one")
    system = run.start(luck=", another one")
    assert read_rollbacks(run.out)[0].stages[0] == (1, "critics")
    assert f": {len(former)} episodes that the former weights decided are set aside" in " ".join(caplog.messages)
    assert len(list((run.out / "rollbacks" / "0001" / "episodes").iterdir())) == len(former)
    stored = set(ReplayBuffer(run.out / "episodes").ids())
    assert kept < stored
    assert former - stored, "other failures, and so other tasks"
    assert {spec.phase for spec in system.specs if spec.source is Source.ROLLOUT} == {2, 3}
    assert audit(run.out).findings == []


def test_so_do_the_rollouts_of_the_start_policy(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = cut_short(tmp_path, ("update_critics", 1), warm_start={**RAW["warm_start"], "rollout_tasks": 4})
    former = {i for stage in ((0, "evaluate"), (0, "rollouts")) for i in episodes_of(run, *stage)}
    played = {spec.episode_id for spec in run.system.specs if spec.source is not Source.DEMONSTRATION}
    assert former < played
    truncate(checkpoint(run, "phase-000"))
    system = run.start(luck=", another one")
    assert f": {len(played)} episodes that the former weights decided are set aside" in " ".join(caplog.messages)
    assert former <= {spec.episode_id for spec in system.specs}, "they are played again"
    assert audit(run.out).findings == []


def test_an_episode_that_is_not_asked_for_again_is_neither_trained_on_nor_chosen_by(tmp_path: Path) -> None:
    """An episode that was lost in the first phase is played after the rollback and fails: other tasks follow."""
    sections = {"run": {"phases": 3, "keep_checkpoints": 3}}
    whole = cut_short(tmp_path / "whole", ("update_critics", 1), **sections)
    buffer = ReplayBuffer(whole.out / "episodes")
    unlucky = buffer.failures(phases=[1])[0].episode_id
    run = Run(tmp_path / "run", **sections)
    with pytest.raises(Killed):
        run.start(before(("update_critics", 3)), loses=lambda spec: spec.episode_id == unlucky)
    former = {phase: set(run.manifest.result(phase, RolloutsPlayed).episodes) for phase in (2, 3)}
    for phase in (1, 2):
        truncate(checkpoint(run, f"phase-00{phase}"))
    truncate(shard(run, Source.ROLLOUT, 1))
    run.start()
    assert unlucky in run.manifest.result(1, RolloutsPlayed).episodes
    left = former[2] - set(run.manifest.result(2, RolloutsPlayed).episodes)
    stored = ReplayBuffer(run.out / "episodes")
    assert any(stored.entry(episode_id).outcome == 1.0 for episode_id in left), "a success that nobody asks for"
    scored = [set(what[1]) for what in run.system.asked if what[0] == "score"]
    assert len(scored) == 2, "in the phases 2 and 3"
    assert left.isdisjoint(set.union(*scored))
    whole.start()
    assert contents(run)["stages"] == contents(whole)["stages"]
    assert audit(run.out).findings == []


def test_a_record_of_a_rollback_that_is_damaged_is_named(tmp_path: Path) -> None:
    run = cut_short(tmp_path, ("play", "evaluation", 1))
    truncate(checkpoint(run, "phase-001"))
    run.start()
    (run.out / "rollbacks" / "0001.json").write_text("{")
    with pytest.raises(ManifestError, match=r"rollbacks/0001\.json"):
        run.start()
    assert any(finding.subject == "rollbacks" and "0001.json" in finding.found for finding in audit(run.out).findings)


@pytest.mark.parametrize("place", ["../elsewhere", "/etc/elsewhere"])
def test_a_record_that_would_move_what_lies_outside_is_refused(tmp_path: Path, place: str) -> None:
    run = cut_short(tmp_path, ("play", "evaluation", 1))
    truncate(checkpoint(run, "phase-001"))
    run.start()
    path = run.out / "rollbacks" / "0001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"moved": [place], "done": False}))
    with pytest.raises(ManifestError, match="is not a place in the run folder"):
        run.start()
