"""Shards: nothing changes in a round trip, and no damaged file passes for a good one."""

import dataclasses
import os
import string
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from records.episodes import FinalState, Source, Step, Termination, Trajectory
from records.failures import Failure, FailureCode, FailureKind
from replay.schema import SCHEMA, VERSION_KEY, to_batch
from replay.shards import (
    ForeignShardError,
    ShardError,
    ShardReader,
    ShardVersionError,
    TornShardError,
    read_shard,
    write_shard,
)
from tests.replay.earlier import write_earlier

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MILESTONES = st.lists(st.booleans(), max_size=4).map(tuple)


@st.composite
def steps(draw, index=0):
    ids = draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=8))
    actions = draw(st.lists(st.integers(0, 2**31 - 1), max_size=5))
    logprobs = draw(st.lists(st.floats(width=32), min_size=len(actions), max_size=len(actions)))
    return Step(
        index=index, url=draw(TEXT), observation=draw(TEXT),
        prompt_ids=np.array(ids, np.int32), action_ids=np.array(actions, np.int32),
        logprobs=np.array(logprobs, np.float32), policy_version=draw(st.integers(0, 2**40)),
        temperature=draw(st.floats(0, 2)), action_text=draw(TEXT), milestones=draw(MILESTONES),
        parse_error=draw(st.none() | TEXT), feedback=draw(st.none() | TEXT), element=draw(st.none() | TEXT),
        truncated_tokens=draw(st.integers(0, 10**6)), browser_s=0.25, policy_s=0.5,
        screenshot=draw(st.none() | TEXT), refused=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def final_states(draw):
    ids = draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=8))
    return FinalState(draw(TEXT), draw(TEXT), np.array(ids, np.int32), draw(st.none() | TEXT), draw(st.integers(0, 99)))


@st.composite
def trajectories(draw, episode_id="e0"):
    failed = draw(st.booleans())
    return Trajectory(
        episode_id=episode_id, task_id=draw(TEXT), template=draw(TEXT), site=draw(TEXT), split=draw(TEXT),
        intent=draw(TEXT), source=draw(st.sampled_from(Source)), phase=draw(st.integers(0, 99)),
        seed=draw(st.integers(0, 2**63 - 1)), steps=tuple(draw(st.lists(steps(), max_size=4))),
        termination=draw(st.none() | st.sampled_from(Termination)), answer=draw(st.none() | TEXT),
        outcome=None if failed else draw(st.sampled_from([0.0, 1.0])),
        failure=Failure(FailureCode("code", draw(st.sampled_from(FailureKind))), draw(TEXT)) if failed else None,
        final_milestones=draw(MILESTONES), evidence=draw(TEXT), horizon=3, policy_version=7, worker="w", seconds=1.5,
        final_state=draw(st.none() | final_states()),
    )  # fmt: skip


def example(episode_id: str = "e0", count: int = 3) -> Trajectory:
    step = Step(
        0, "__SHOP__/", "@ Shop\nlink Cart 0", np.arange(40, dtype=np.int32), np.arange(6, dtype=np.int32),
        np.linspace(-2, -0.1, 6, dtype=np.float32), 1, 1.0, 'do(action="Click", element="0")', (True, False),
    )  # fmt: skip
    return Trajectory(
        episode_id, "t", "shop.buy", "shop", "train", "Buy it", Source.ROLLOUT, 1, 5, (step,) * count,
        Termination.EXIT, "done", 1.0, None, (True, True),
    )  # fmt: skip


def assert_same(left: Trajectory, right: Trajectory) -> None:
    for name in (field.name for field in dataclasses.fields(Trajectory)):
        if name not in {"steps", "final_state"}:
            assert getattr(left, name) == getattr(right, name), name
    assert len(left.steps) == len(right.steps)
    for a, b in zip(left.steps, right.steps, strict=True):
        assert_same_state(a, b)
    assert (left.final_state is None) == (right.final_state is None)
    if left.final_state is not None:
        assert_same_state(left.final_state, right.final_state)


def assert_same_state(a: Step | FinalState, b: Step | FinalState | None) -> None:
    for name in type(a).__slots__:
        x, y = getattr(a, name), getattr(b, name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes(), name
        else:
            assert x == y, name


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), count=st.integers(1, 3))
def test_a_round_trip_changes_nothing(tmp_path, data, count):
    written = [data.draw(trajectories(episode_id=f"e{i}")) for i in range(count)]
    info = write_shard(tmp_path, written)
    assert info.episodes == tuple(t.episode_id for t in written)
    read = read_shard(info.path)
    assert len(read) == count
    for before, after in zip(written, read, strict=True):
        assert_same(before, after)


def ended(episode_id: str = "e0") -> Trajectory:
    state = FinalState("__SHOP__/cart", "@ Cart", np.arange(60, dtype=np.int32), "as told", 7)
    return dataclasses.replace(example(episode_id), final_state=state)


def versions(path) -> bytes:
    with pa.memory_map(str(path), "rb") as source:
        return pa.ipc.open_file(source).schema.metadata[VERSION_KEY]


@pytest.mark.parametrize("version", ["2", "3"])
def test_shards_of_earlier_versions_are_read(tmp_path, version):
    recorded = ended() if version == "3" else example()
    path = tmp_path / "earlier.arrow"
    write_earlier(path, version, recorded)
    assert versions(path) == version.encode()
    (read,) = read_shard(path)
    assert_same(read, recorded)
    assert not any(step.refused for step in read.steps)
    assert versions(write_shard(tmp_path, [read]).path) == b"4"


def test_a_final_state_is_recorded_where_there_is_one(tmp_path):
    mixed = write_shard(tmp_path, [example("c"), ended("d")]).path
    absent, there = read_shard(mixed)
    assert absent.final_state is None
    assert there.final_state.prompt_ids.tolist() == list(range(60))
    assert not there.final_state.prompt_ids.flags.owndata, "a view, as the steps' ids"
    with ShardReader(mixed) as reader:
        assert reader.header(1, ["episode_id", "outcome"]) == {"episode_id": "d", "outcome": 1.0}
        bare = reader.trajectory(1, pages=False)
    assert (bare.final_state.observation, bare.final_state.url) == ("", "__SHOP__/cart")
    # A version and the columns of another one: not readable.
    false = SCHEMA.with_metadata({**SCHEMA.metadata, VERSION_KEY: b"3"})
    write_arrow(tmp_path / "false.arrow", false, to_batch(example()).replace_schema_metadata(false.metadata))
    with pytest.raises(TornShardError, match="other columns than this version has"):
        read_shard(tmp_path / "false.arrow")


def test_a_final_state_of_another_type_is_refused(tmp_path):
    state = dataclasses.replace(ended().final_state, prompt_ids=np.zeros(3))
    with pytest.raises(TypeError, match="episode e0, final state: prompt_ids must be .* int32 array, found float64"):
        write_shard(tmp_path, [dataclasses.replace(example(), final_state=state)])


def test_arrays_are_read_only_views_that_outlive_the_reader(tmp_path):
    info = write_shard(tmp_path, [example()])
    with ShardReader(info.path) as reader:
        before = pa.total_allocated_bytes()
        read = reader.trajectory(0)
    info.path.unlink()
    ids = read.steps[1].prompt_ids
    assert not ids.flags.owndata
    assert not ids.flags.writeable
    assert ids.tolist() == list(range(40))
    # Token arrays are mapped: reading them allocates nothing of their size.
    assert pa.total_allocated_bytes() - before < 64 * 1024


def test_one_episode_is_read_without_the_others(tmp_path):
    info = write_shard(tmp_path, [example("a"), example("b", 2)])
    with ShardReader(info.path) as reader:
        assert reader.header(1, ["episode_id", "outcome"]) == {"episode_id": "b", "outcome": 1.0}
        assert len(reader.trajectory(1).steps) == 2


def test_the_same_episodes_give_the_same_file(tmp_path):
    first, second = write_shard(tmp_path, [example()]), write_shard(tmp_path, [example()])
    assert first == second
    assert [p.name for p in tmp_path.iterdir()] == [first.path.name]
    assert first.sha256.startswith(first.path.stem.removeprefix("shard-"))


def test_lone_surrogates_do_not_cost_an_episode(tmp_path):
    odd = Trajectory("e", "t", "x", "shop", "train", "a\ud800b", Source.ROLLOUT, 0, 0, (), None, None, 0.0, None)
    assert read_shard(write_shard(tmp_path, [odd]).path)[0].intent == "a?b"


def test_arrays_of_another_type_are_refused_and_leave_no_file(tmp_path):
    good = example().steps[0]
    bad = Step(0, "", "", good.prompt_ids.astype(np.int64), good.action_ids, good.logprobs, 0, 1.0, "")
    wrong_length = Step(0, "", "", good.prompt_ids, good.action_ids, good.logprobs[:-1], 0, 1.0, "")
    base = example()
    fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(Trajectory)}
    with pytest.raises(TypeError, match="prompt_ids must be a one-dimensional int32 array, found int64"):
        write_shard(tmp_path, [Trajectory(**{**fields, "steps": (bad,)})])
    with pytest.raises(ValueError, match="6 tokens and 5 log-probabilities"):
        write_shard(tmp_path, [Trajectory(**{**fields, "steps": (wrong_length,)})])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("episodes", [[], ["a", "a"]])
def test_no_episodes_or_repeated_ones_are_refused(tmp_path, episodes):
    with pytest.raises(ValueError, match="distinct episode ids"):
        write_shard(tmp_path, [example(e) for e in episodes])


@pytest.mark.parametrize("named", [True, False], ids=["name with digest", "plain name"])
def test_a_file_cut_anywhere_is_torn(tmp_path, named):
    whole = write_shard(tmp_path / "whole", [example("a"), example("b")])
    content = whole.path.read_bytes()
    cut_file = tmp_path / (whole.path.name if named else "cut.arrow")
    # Every byte of the head and the tail, and every 97th in between.
    cuts = {*range(0, 64), *range(64, len(content), 97), *range(len(content) - 300, len(content))}
    for cut in sorted(cuts):
        cut_file.write_bytes(content[:cut])
        with pytest.raises(TornShardError, match="delete it"):
            read_shard(cut_file)
    cut_file.write_bytes(content)
    assert len(read_shard(cut_file)) == 2


def test_one_flipped_bit_is_found_by_the_name(tmp_path):
    info = write_shard(tmp_path, [example()])
    content = bytearray(info.path.read_bytes())
    for position in range(0, len(content), 211):
        damaged = bytearray(content)
        damaged[position] ^= 1
        info.path.write_bytes(damaged)
        with pytest.raises(TornShardError, match="content with digest"):
            read_shard(info.path)


def test_damage_under_a_plain_name_is_never_an_unknown_error(tmp_path):
    content = write_shard(tmp_path / "whole", [example()]).path.read_bytes()
    damaged_file = tmp_path / "damaged.arrow"
    caught = 0
    for position in range(0, len(content), 61):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        damaged_file.write_bytes(damaged)
        try:
            read_shard(damaged_file)
        except ShardError:
            caught += 1
    assert caught > 0


@pytest.mark.parametrize(
    "content", [b"", b"ARROW1\0\0", string.printable.encode() * 50], ids=["empty", "magic", "text"]
)
def test_foreign_bytes_are_torn(tmp_path, content):
    path = tmp_path / "x.arrow"
    path.write_bytes(content)
    with pytest.raises(TornShardError):
        read_shard(path)


def write_arrow(path, schema, batch):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch)


def test_other_arrow_data_is_foreign_and_another_version_is_named(tmp_path):
    other = pa.record_batch({"x": [1, 2]})
    write_arrow(tmp_path / "other.arrow", other.schema, other)
    with pytest.raises(ForeignShardError, match=r"another kind.*move it"):
        read_shard(tmp_path / "other.arrow")
    later = SCHEMA.with_metadata({**SCHEMA.metadata, VERSION_KEY: b"99"})
    write_arrow(tmp_path / "later.arrow", later, to_batch(example()).replace_schema_metadata(later.metadata))
    with pytest.raises(ShardVersionError, match="expected a trajectory shard of version 2, 3 or 4, found version '99'"):
        read_shard(tmp_path / "later.arrow")


def test_an_action_without_a_log_probability_for_each_token_is_torn(tmp_path):
    row = to_batch(example()).to_pylist()[0]
    tokens = len(row["steps"][1]["action_ids"])
    row["steps"][1]["logprobs"] = row["steps"][1]["logprobs"][:-1]
    write_arrow(tmp_path / "uneven.arrow", SCHEMA, pa.RecordBatch.from_pylist([row], schema=SCHEMA))
    with pytest.raises(TornShardError, match=rf"step \d+: .* found {tokens} tokens and {tokens - 1} log-probabilities"):
        read_shard(tmp_path / "uneven.arrow")


def test_a_missing_file_is_not_called_torn(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_shard(tmp_path / "none.arrow")


def test_a_crash_before_the_rename_leaves_no_shard(tmp_path, monkeypatch):
    def crash(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="No space left"):
        write_shard(tmp_path, [example()])
    assert list(tmp_path.iterdir()) == []


def test_content_is_forced_to_disk_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    calls = []
    real_fsync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), real_fsync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("rename"), real_replace(a, b))[1])
    write_shard(tmp_path, [example()])
    assert calls == ["fsync", "rename", "fsync"]


WRITER = """
import sys
sys.path[:] = {path!r}
import numpy as np
from records.episodes import Source, Step, Trajectory
from replay.shards import write_shard
ids, zeros = np.arange(200_000, dtype=np.int32), np.zeros(200_000, np.float32)
step = Step(0, "", "", ids, ids, zeros, 0, 1.0, "")
for number in range(10_000):
    name = f"e{{number}}"
    one = Trajectory(name, "t", "x", "s", "", "", Source.ROLLOUT, 0, 0, (step,), None, None, 1.0, None)
    write_shard({folder!r}, [one])
    print(name, flush=True)
"""


@pytest.mark.faults
def test_a_writer_killed_at_any_moment_loses_nothing_it_reported(tmp_path):
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        program = WRITER.format(path=sys.path, folder=str(folder))
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            reported = [writer.stdout.readline().strip() for _ in range(3)]
            time.sleep(0.003 * attempt)
            writer.kill()
            reported += writer.stdout.read().split()
        found = {t.episode_id for path in folder.glob("*.arrow") for t in read_shard(path)}
        assert set(reported) <= found
        assert len(found) <= len(reported) + 1
