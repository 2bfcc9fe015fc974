"""Packed shards hold the same records in fewer, smaller files, and a kill at any moment leaves every record."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from records.episodes import FinalState, Source, Step, Termination, Trajectory
from replay import packing
from replay.buffer import ReplayBuffer
from replay.packing import STEM, pack, tidy
from replay.schema import to_batch
from replay.shards import ShardReader, write_shard
from tests.replay.earlier import write_earlier

COUNT = 12
PAGE = "[1] button 'Add to cart'\n" * 4000


def episode(number: int, outcome: float = 1.0) -> Trajectory:
    ids = np.arange(2000, dtype=np.int32) + number
    step = Step(
        0, "__SHOP__/", f"{number} {PAGE}", ids, np.arange(2, dtype=np.int32), np.zeros(2, np.float32), 1, 1.0,
        "exit()", milestones=(True, False), feedback="as told", element="button",
    )  # fmt: skip
    return Trajectory(
        f"e{number:02d}", "task", "shop.buy", "shop", "train", "Buy it", Source.ROLLOUT, 1, 0, (step,),
        Termination.EXIT, "", outcome, None,
    )  # fmt: skip


def rows(buffer: ReplayBuffer) -> list[object]:
    return [to_batch(trajectory).to_pylist() for trajectory in buffer.trajectories(buffer.ids())]


@pytest.fixture
def buffer(tmp_path: Path) -> ReplayBuffer:
    for number in range(COUNT):
        write_shard(tmp_path, [episode(number)])
    return ReplayBuffer(tmp_path)


@pytest.fixture
def sources(buffer: ReplayBuffer) -> frozenset[str]:
    return buffer.shards


def test_records_are_the_same_and_sources_go_when_a_stage_has_recorded_it(
    buffer: ReplayBuffer, sources: frozenset[str]
) -> None:
    before, size = rows(buffer), sum(path.stat().st_size for path in buffer.directory.iterdir())
    (name,) = pack(buffer, buffer.ids(), set())
    assert buffer.shards == {*sources, name}
    buffer.record({name: 3})
    assert {buffer.entry(i).shard.name for i in buffer.ids()} == {name}
    assert buffer.scan.duplicates == (), "a source holds the record itself, not another one"
    tidy(buffer, {name})
    assert buffer.shards == {name}
    assert rows(buffer) == rows(ReplayBuffer(buffer.directory)) == before
    assert (buffer.directory / name).stat().st_size < size / 4
    damaged = bytearray((buffer.directory / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (buffer.directory / name).write_bytes(damaged)
    assert [found.path.name for found in ReplayBuffer(buffer.directory).scan.skipped] == [name]


def test_records_of_all_versions_are_packed_together(tmp_path: Path) -> None:
    state = FinalState("__SHOP__/", PAGE, np.arange(9, dtype=np.int32))
    write_earlier(tmp_path / "first.arrow", "2", episode(0))
    write_earlier(tmp_path / "second.arrow", "3", dataclasses.replace(episode(1), final_state=state), episode(2))
    (step,) = episode(3).steps
    write_shard(tmp_path, [dataclasses.replace(episode(3), steps=(dataclasses.replace(step, refused=True), step))])
    buffer = ReplayBuffer(tmp_path)
    (name,) = pack(buffer, buffer.ids(), set())
    tidy(buffer, {name})
    found = [episode.final_state for episode in buffer.trajectories(buffer.ids())]
    assert [None if one is None else one.prompt_ids.tolist() for one in found] == [
        None, list(range(9)), None, None,
    ]  # fmt: skip
    refused = [[step.refused for step in episode.steps] for episode in buffer.trajectories(buffer.ids())]
    assert refused == [[False], [False], [False], [True, False]]
    ids = [episode.steps[0].prompt_ids[0] for episode in buffer.trajectories(buffer.ids())]
    assert ids == [0, 1, 2, 3]


def test_what_was_not_recorded_is_made_again_while_its_sources_are_there(
    buffer: ReplayBuffer, sources: frozenset[str]
) -> None:
    (name,) = pack(buffer, buffer.ids(), set())
    killed = ReplayBuffer(buffer.directory)
    tidy(killed, set())
    assert killed.shards == sources
    assert pack(killed, killed.ids(), set()) == [name]


def test_the_only_holder_of_records_stays_although_no_stage_names_it(buffer: ReplayBuffer) -> None:
    """As after a rollback."""
    before = rows(buffer)
    (name,) = pack(buffer, buffer.ids(), set())
    tidy(buffer, {name})
    tidy(buffer, set())
    assert buffer.shards == {name}
    assert rows(buffer) == before


def test_a_shard_with_other_episodes_and_a_recorded_one_stay(tmp_path: Path) -> None:
    mixed = write_shard(tmp_path, [episode(0), episode(1)]).path.name
    recorded = write_shard(tmp_path, [episode(2)]).path.name
    free = write_shard(tmp_path, [episode(3)]).path.name
    buffer = ReplayBuffer(tmp_path)
    (name,) = pack(buffer, ["e00", "e02", "e03"], {recorded})
    tidy(buffer, {name, recorded})
    assert buffer.shards == {mixed, recorded, name}
    assert free not in buffer.shards
    assert len(buffer) == 4


def test_large_stages_become_several(buffer: ReplayBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_LARGEST", 3 * next(buffer.directory.iterdir()).stat().st_size)
    names = pack(buffer, buffer.ids(), set())
    assert len(names) == COUNT // 3
    tidy(buffer, set(names))
    assert buffer.shards == set(names)
    assert len(buffer) == COUNT


def test_a_write_that_fails_leaves_nothing(
    buffer: ReplayBuffer, sources: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        pack(buffer, buffer.ids(), set())
    assert {path.name for path in buffer.directory.iterdir()} == sources


def test_headers_and_pages_are_read_only_where_asked_for(buffer: ReplayBuffer) -> None:
    (name,) = pack(buffer, buffer.ids(), set())
    with ShardReader(buffer.directory / name) as reader:
        before = pa.total_allocated_bytes()
        header = reader.header(3, ["outcome", "episode_id"])
        assert pa.total_allocated_bytes() - before < 64 * 1024 < len(PAGE)
        whole, light = reader.trajectory(3), reader.trajectory(3, pages=False)
    assert header == {"outcome": 1.0, "episode_id": whole.episode_id}
    page = whole.steps[0].observation
    assert page.endswith(PAGE)
    assert light.steps[0].observation == ""
    same = dataclasses.replace(light, steps=(dataclasses.replace(light.steps[0], observation=page),))
    assert to_batch(same).equals(to_batch(whole))
    assert STEM in name
