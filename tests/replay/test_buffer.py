"""The replay buffer: a folder of shards, whatever its state, becomes one index."""

import dataclasses
import logging
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from records import failure_codes as codes
from records.episodes import Source, Step, Termination, Trajectory
from records.failures import Failure, FailureKind
from replay.buffer import ReplayBuffer
from replay.shards import ShardReader, read_shard, write_shard
from tests.not_files import NOT_FILES, at_once


def episode(episode_id: str, outcome: float | None = 1.0, source: Source = Source.ROLLOUT, **changes) -> Trajectory:
    step = Step(
        0, "__SHOP__/", "o", np.arange(4, dtype=np.int32), np.arange(2, dtype=np.int32), np.zeros(2, np.float32),
        1, 1.0, "exit()",
    )  # fmt: skip
    failure = Failure(codes.BROWSER_CRASHED) if outcome is None else None
    base = Trajectory(
        episode_id, f"task-{episode_id}", "shop.buy", "shop", "train", f"Buy {episode_id}", source, 1, 0, (step,),
        Termination.EXIT, "", outcome, failure,
    )  # fmt: skip
    return dataclasses.replace(base, **changes)


def test_successes_and_failures_are_of_training_rollouts(tmp_path):
    write_shard(tmp_path / "phase-1", [episode("won"), episode("lost", 0.0), episode("broken", None)])
    write_shard(tmp_path / "phase-2", [episode("later", phase=2), episode("shown", source=Source.DEMONSTRATION)])
    write_shard(tmp_path / "eval", [episode("held-out", source=Source.EVALUATION)])
    buffer = ReplayBuffer(tmp_path)
    assert buffer.ids() == ("broken", "held-out", "later", "lost", "shown", "won")
    assert buffer.successes() == ("later", "won")
    assert buffer.successes(phases=[1]) == ("won",)
    assert buffer.successes(sources=[Source.DEMONSTRATION]) == ("shown",)
    # An episode without a verdict is neither a success nor a failure.
    assert [f.intent for f in buffer.failures()] == ["Buy lost"]
    assert buffer.entry("broken").failure is FailureKind.INFRA


def test_trajectories_come_in_the_order_asked_for(tmp_path):
    write_shard(tmp_path, [episode("a"), episode("b")])
    write_shard(tmp_path, [episode("c")])
    buffer = ReplayBuffer(tmp_path)
    assert [t.episode_id for t in buffer.trajectories(["c", "a", "b", "a"])] == ["c", "a", "b", "a"]
    assert buffer.trajectory("b").steps[0].prompt_ids.tolist() == [0, 1, 2, 3]
    with pytest.raises(LookupError, match="episode z: expected it in one of 2 shards"):
        buffer.trajectories(["a", "z"])


def test_torn_and_foreign_files_are_skipped_and_reported(tmp_path, caplog):
    good = write_shard(tmp_path, [episode("a")])
    torn = write_shard(tmp_path, [episode("b")]).path
    torn.write_bytes(torn.read_bytes()[:-100])
    (tmp_path / "notes.arrow").write_text("not Arrow")
    (tmp_path / f".{good.path.name}.x.tmp").write_bytes(b"half")
    with caplog.at_level(logging.WARNING):
        buffer = ReplayBuffer(tmp_path)
    assert buffer.ids() == ("a",)
    assert {s.path.name for s in buffer.scan.skipped} == {torn.name, "notes.arrow"}
    assert buffer.scan.shards == 1
    assert torn.name in caplog.text


def test_a_skipped_file_is_told_once_until_something_else_is_wrong_with_it(tmp_path, caplog):
    torn = write_shard(tmp_path, [episode("a")]).path
    torn.write_bytes(torn.read_bytes()[:-100])
    buffer = ReplayBuffer(tmp_path)
    buffer.record({torn.name: 0})
    assert [skipped.path for skipped in buffer.refresh().skipped] == [torn]
    assert len(caplog.messages) == 1
    torn.write_bytes(b"not Arrow")
    buffer.refresh()
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("stem", ["plain", "named-" + "0" * 32])
@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_file_is_skipped_and_reported_at_once(tmp_path, kind, stem):
    write_shard(tmp_path, [episode("whole")])
    NOT_FILES[kind](tmp_path / f"{stem}.arrow")
    with at_once():
        buffer = ReplayBuffer(tmp_path)
    assert buffer.ids() == ("whole",)
    (skipped,) = buffer.scan.skipped
    assert skipped.path == tmp_path / f"{stem}.arrow"
    assert f"found {kind}" in skipped.reason
    assert "move it out of the folder" in skipped.reason


def test_a_link_to_a_shard_is_one(tmp_path):
    written = write_shard(tmp_path / "elsewhere", [episode("linked")])
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / written.path.name).symlink_to(written.path)
    assert ReplayBuffer(tmp_path / "episodes").ids() == ("linked",)


def test_duplicates_resolve_the_same_way_in_any_order_of_writing(tmp_path):
    """The one without a verdict is the first by its file's name; of the others the first by name counts."""
    versions = {"a": episode("a", None), "b": episode("a", 0.0), "c": episode("a", 0.0, worker="other")}
    used = set()
    for name, order in {"x": "abc", "y": "cba", "z": "bca"}.items():
        for stem in order:
            write_shard(tmp_path / name, [versions[stem]], stem)
        buffer = ReplayBuffer(tmp_path / name)
        assert len(buffer) == 1
        assert len(buffer.scan.duplicates) == 2
        used.add(buffer.entry("a").shard.name)
        assert buffer.entry("a").outcome == 0.0
    (shard,) = used
    assert shard.startswith("b-")


def test_a_late_record_does_not_count_although_its_shard_is_needed_for_another_episode(tmp_path):
    first = write_shard(tmp_path, [episode("a", 0.0)], stem="z").path.name
    late = write_shard(tmp_path, [episode("a", 1.0), episode("b")], stem="a").path.name
    buffer = ReplayBuffer(tmp_path)
    assert buffer.entry("a").shard.name == late, "by its name it would count"
    for recorded in ({first: 0}, {first: 0, late: 1}, {late: 1, first: 0}):
        buffer.record(recorded)
        assert (buffer.entry("a").shard.name, buffer.entry("a").outcome) == (first, 0.0)
        assert buffer.entry("b").shard.name == late


def test_refresh_finds_new_shards_and_forgets_removed_ones(tmp_path):
    buffer = ReplayBuffer(tmp_path / "not-yet-there")
    assert buffer.ids() == ()
    first = write_shard(buffer.directory, [episode("a")])
    write_shard(buffer.directory, [episode("b")])
    assert buffer.refresh().episodes == 2
    first.path.unlink()
    buffer.refresh()
    assert "a" not in buffer
    assert "b" in buffer


def test_the_buffer_reads_what_the_shard_holds(tmp_path):
    info = write_shard(tmp_path, [episode("a")])
    direct = read_shard(info.path)[0]
    assert dataclasses.replace(ReplayBuffer(tmp_path).trajectory("a"), steps=()) == dataclasses.replace(
        direct, steps=()
    )


def test_a_stream_reads_what_the_list_does_and_opens_one_shard_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in ("ab", "cd", "e"):
        write_shard(tmp_path, [episode(name) for name in group])
    buffer, asked = ReplayBuffer(tmp_path), ["e", "b", "c", "a"]
    open_now: list[Path] = []
    monkeypatch.setattr("replay.buffer.ShardReader", partial(_Counted, open_now))
    streamed = []
    for read in buffer.stream(asked):
        streamed.append(read.episode_id)
        assert len(open_now) == 1
    assert open_now == []
    assert sorted(streamed) == sorted(asked) == sorted(e.episode_id for e in buffer.trajectories(asked))
    with pytest.raises(LookupError, match="episode z"):
        buffer.stream(["a", "z"])


class _Counted(ShardReader):
    def __init__(self, open_now: list[Path], path: Path, *, verify: bool = True) -> None:
        super().__init__(path, verify=verify)
        self._open_now = open_now
        open_now.append(path)

    def close(self) -> None:
        super().close()
        self._open_now.clear()
