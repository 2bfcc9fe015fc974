"""A run in a store: what one node committed another one has, whatever is listed, killed or replaced in between."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, cast
from uuid import uuid4

import pytest

from cluster.errors import RecipeError, RunStopped
from cluster.recipe.recipe import build_recipe
from cluster.rollouts import Rollouts
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stored_run import StoredRun, copied_run, require_storable
from policy.published_weights import PublishedWeights, WeightsRejected, current_weights, on_this_node
from records.durable import replace_file
from records.episodes import Source, Trajectory
from records.stores.lease import LeaseLost, RunLease, read_head
from records.stores.object_store import ObjectStore
from records.stores.objects import object_key, put_object
from records.stores.store import Content, DamagedObject, MissingKey, StoreError
from records.stores.working_copy import SNAPSHOTS, WorkingCopy, address_of, bring, keep, local_path, working_copy
from replay.buffer import ReplayBuffer
from replay.shards import digest_in_name
from rollout_workers.ahead import Ending
from rollout_workers.pool import RolloutStopped
from rollout_workers.results import NOTHING_PLAYED, RolloutResult
from rollout_workers.shard_writer import ShardWriter
from tests.cluster.made_episodes import spec, trajectory
from tests.cluster.test_manifest import RECIPE, made


class Node:
    """A node with a disk of its own; only what it is told in addresses may reach it."""

    def __init__(self, disk: Path, patch: pytest.MonkeyPatch) -> None:
        self._disk = disk
        self._patch = patch

    def here(self) -> Node:
        self._patch.setenv("WAYMARK_NODE_FOLDER", str(self._disk))
        working_copy.cache_clear()
        return self


@pytest.fixture(params=["memory", "s3"])
def uri(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "s3":
        for name, value in request.getfixturevalue("s3").items():
            monkeypatch.setenv(name, value)
        return f"s3://waymark-tests/{uuid4().hex}"
    return f"memory://tests/{uuid4().hex}"


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    from tests.records.stores.s3_server import s3_server

    with s3_server() as environment:
        yield environment


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Node, Node]]:
    yield Node(tmp_path / "one", monkeypatch), Node(tmp_path / "two", monkeypatch)
    working_copy.cache_clear()


@pytest.fixture(autouse=True)
def late_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store lists nothing of what was put: no test here may need it."""
    monkeypatch.setattr("records.stores.object_store.ObjectStore.keys", lambda self, prefix: [])


def taken(uri: str, alone: bool = True) -> tuple[StoredRun, RunLease]:
    run = StoredRun(uri)
    lease = RunLease(run.copy.store)
    lease.take(alone=alone)
    run.take_up(lease)
    return run, lease


def begun(run: StoredRun, lease: RunLease) -> RunManifest:
    run.folder.mkdir(parents=True, exist_ok=True)
    manifest = RunManifest.open(run.folder, RECIPE)
    manifest.fence, manifest.commit = lease.commit, run.commit
    return manifest


def files(folder: Path) -> dict[str, bytes]:
    """Its files, but for the locks of processes that fetch."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".")}


def test_a_node_has_what_another_one_committed(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    manifest = begun(run, lease)
    manifest.note_start(RECIPE)
    manifest.complete_stage(0, made(0, "clone"))
    before = files(run.folder)
    lease.give_back()
    nodes[1].here()
    other, lease = taken(uri)
    assert other.folder != run.folder
    assert files(other.folder) == before
    assert begun(other, lease).stages() == [(0, "clone")]
    with copied_run(uri) as folder:
        assert files(folder) == before
    assert not folder.exists()


def test_what_was_not_committed_is_undone_but_grown_files_and_shards_stay(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    (run.folder / "ledger").mkdir()
    (run.folder / "ledger" / "0001.jsonl").write_text("one\n")
    (run.folder / "summary.json").write_text("{}")
    run.commit()
    (run.folder / "ledger" / "0001.jsonl").write_text("one\ntwo\n")
    (run.folder / "summary.json").write_text('{"changed": true}')
    (run.folder / "stages" / "0000-phase-000-clone").mkdir(parents=True)
    (run.folder / "stages" / "0000-phase-000-clone" / "manifest.json").write_text("{}")
    (run.folder / "episodes").mkdir()
    (run.folder / "episodes" / "kept.arrow").write_text("x")
    again, _ = taken(uri)
    found = files(again.folder)
    assert found["ledger/0001.jsonl"] == b"one\ntwo\n"
    assert found["summary.json"] == b"{}"
    assert "episodes/kept.arrow" in found
    assert not (run.folder / "stages").exists()


def test_a_replaced_driver_commits_no_snapshot(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    old, lease = taken(uri)
    manifest = begun(old, lease)
    manifest.complete_stage(0, made(0, "clone"))
    nodes[1].here()
    new, other = taken(uri)
    begun(new, other).complete_stage(0, made(0, "critics"))
    (old.folder / "summary.json").write_text("late")
    with pytest.raises(LeaseLost):
        old.commit()
    with pytest.raises(LeaseLost):
        manifest.complete_stage(0, made(0, "critics"))
    with copied_run(uri) as folder:
        assert RunManifest.read(folder).stages() == [(0, "clone"), (0, "critics")]
        assert not (folder / "summary.json").exists()


def test_a_commit_that_was_cut_short_leaves_the_one_before(
    uri: str, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    manifest = begun(run, lease)
    manifest.complete_stage(0, made(0, "clone"))

    class Killed(Exception):
        pass

    def killed(*args: object, **changes: object) -> None:
        if "newest" in changes:
            raise Killed

    monkeypatch.setattr(lease, "commit", killed)
    with pytest.raises(Killed):
        manifest.complete_stage(0, made(0, "critics"))
    nodes[1].here()
    other, lease = taken(uri)
    assert begun(other, lease).stages() == [(0, "clone")]


def test_old_versions_of_a_file_are_removed_from_the_store(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, _ = taken(uri)
    run.folder.mkdir(parents=True, exist_ok=True)
    digests = []
    for text in ("one", "two", "three"):
        (run.folder / "summary.json").write_text(text)
        run.commit()
        digests.append(run.copy.snapshot(run._lease.head)["summary.json"])  # type: ignore[union-attr]
    sizes = [run.copy.store.size(object_key("summary.json", digest)) for digest in digests]
    assert sizes == [None, None, 5]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the objects that were put, snapshots aside."""
    sizes: list[int] = []
    really = ObjectStore.put

    def counted(self: ObjectStore, key: str, content: Content) -> bool:
        if not key.startswith(SNAPSHOTS):
            sizes.append(len(content) if isinstance(content, bytes) else content.stat().st_size)
        return really(self, key, content)

    monkeypatch.setattr(ObjectStore, "put", counted)
    return sizes


@pytest.mark.parametrize("name", ["ledger/0001.jsonl", "driver.log", "tensorboard/events.out.tfevents.1.host.2.0"])
def test_a_beat_puts_what_was_appended_and_nothing_else(
    uri: str, nodes: tuple[Node, Node], put: list[int], name: str
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    path = run.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * (40 << 20))
    run.commit()
    put.clear()
    run.renew(lease)
    assert put == []
    for _ in range(3):
        with path.open("ab") as file:
            file.write(b'{"one":"line"}\n')
        run.renew(lease)
    assert put == [15, 30, 15]
    before = files(run.folder)
    nodes[1].here()
    other, lease = taken(uri)
    assert files(other.folder) == before
    put.clear()
    with (other.folder / name).open("ab") as file:
        file.write(b"more\n")
    other.renew(lease)
    assert put == [5], "the next driver goes on where this one was"
    with copied_run(uri) as folder:
        assert files(folder) == files(other.folder)


def test_a_file_that_took_the_place_of_a_grown_one_is_put_whole(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    path = run.folder / "metrics.jsonl"
    path.write_text("one\ntwo\nthree\n")
    run.commit()
    replace_file(path, b"two\nthree\nfour\nfive\n")
    run.renew(lease)
    with copied_run(uri) as folder:
        assert (folder / "metrics.jsonl").read_bytes() == b"two\nthree\nfour\nfive\n"


def test_a_file_that_was_away_for_a_snapshot_is_put_again(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    path = run.folder / "driver.log"
    path.write_text("one\n")
    run.commit()
    path.rename(run.folder / ".away")
    run.commit()
    (run.folder / ".away").rename(path)
    run.commit()
    with copied_run(uri) as folder:
        assert (folder / "driver.log").read_text() == "one\n"


def test_a_change_that_no_stamp_shows_is_not_missed(
    uri: str, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    path = run.folder / "summary.json"
    path.write_text("one")
    run.commit()
    changed, really = path.stat().st_mtime_ns, time.time_ns
    path.write_text("two")
    os.utime(path, ns=(changed, changed))
    monkeypatch.setattr(time, "time_ns", lambda: really() + 10_000_000_000)
    run.commit()
    with copied_run(uri) as folder:
        assert (folder / "summary.json").read_text() == "two"


def test_a_snapshot_of_before_that_names_grown_files_whole_is_gone_on_with(
    uri: str, nodes: tuple[Node, Node], put: list[int]
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    digest = put_object(run.copy.store, "driver.log", b"one\n")
    older = json.dumps({"driver.log": digest}).encode()
    lease.commit(newest=put_object(run.copy.store, SNAPSHOTS, older))
    lease.give_back()
    nodes[1].here()
    other, lease = taken(uri)
    assert (other.folder / "driver.log").read_bytes() == b"one\n"
    with (other.folder / "driver.log").open("ab") as file:
        file.write(b"2\n")
    again, lease = taken(uri)
    put.clear()
    again.commit()
    assert put == [2]
    with copied_run(uri) as folder:
        assert files(folder) == {"driver.log": b"one\n2\n"}


async def test_a_shard_is_in_the_store_when_its_episode_is_acknowledged(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    episode = trajectory(spec(1), 1.0)
    writer = ShardWriter(address_of(uri, "episodes"), linger_s=0.01, deadline_s=60)
    shard = Path(await writer.add(episode))
    nodes[1].here()
    run, _ = taken(uri)
    assert not (run.folder / "episodes").exists()
    run.acknowledge(str(shard))
    run.bring_acknowledged()
    assert ReplayBuffer(run.folder / "episodes").ids(sources=tuple(Source)) == (episode.episode_id,)


def shard_of_a_worker(uri: str, node: Node, index: int) -> str:
    """Return the path of the shard of an episode that a worker of this node has put into the store."""
    node.here()
    return asyncio.run(ShardWriter(address_of(uri, "episodes"), linger_s=0, deadline_s=60).add(made_episode(index)))


def made_episode(index: int) -> Trajectory:
    return trajectory(spec(index), 1.0)


def known_to_the_next_driver(uri: str, node: Node) -> tuple[str, ...]:
    node.here()
    run, _ = taken(uri)
    return ReplayBuffer(run.folder / "episodes").ids(sources=tuple(Source))


def test_the_driver_is_lost_in_mid_phase_and_the_next_one_has_what_was_acknowledged(
    uri: str, nodes: tuple[Node, Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    for index in (1, 2):
        shard = shard_of_a_worker(uri, nodes[1], index)
        nodes[0].here()
        run.acknowledge(shard)
        run.renew(lease)
    assert not (run.folder / "episodes").exists(), "nothing is fetched while episodes are played"
    assert known_to_the_next_driver(uri, Node(tmp_path / "three", monkeypatch)) == ("test-1", "test-2")


class CutShort:
    """A pool that acknowledges one episode, and then does not come to its end."""

    def __init__(self, shard: str, end: BaseException | None) -> None:
        self._shard, self._end = shard, end
        self._on_shard: Callable[[str], None] = lambda shard: None
        self.acknowledged = Event()

    def __call__(
        self, config: object, admission: object, nodes: object, on_shard: Callable[[str], None] | None = None
    ) -> CutShort:
        self._on_shard = on_shard or self._on_shard
        return self

    def run(
        self, specs: object, on_counts: object, journal: object, ending: Callable[[], Ending] | None = None
    ) -> RolloutResult:
        self._on_shard(self._shard)
        self.acknowledged.set()
        if self._end is not None:
            raise self._end
        return NOTHING_PLAYED

    def rest(self) -> None: ...


BUDGET = RolloutStopped("too much failed", NOTHING_PLAYED)


@pytest.mark.parametrize(
    ("end", "ahead"),
    [(BUDGET, False), (KeyboardInterrupt(), False), (BUDGET, True), (None, True)],
    ids=["by its budget", "by a signal", "ahead by its budget", "ahead by an error beside it"],
)
def test_however_the_playing_ends_the_last_commit_names_what_was_acknowledged(
    uri: str,
    nodes: tuple[Node, Node],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    end: BaseException | None,
    ahead: bool,
) -> None:
    pool = CutShort(shard_of_a_worker(uri, nodes[1], 1), end)
    monkeypatch.setattr("cluster.rollouts.RolloutPool", pool)
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    folders, unused = RunFolders(run.folder, run), cast(Any, None)
    rollouts = Rollouts(build_recipe({}), folders, unused, policy=unused, tokenizer="")

    def play() -> None:
        buffer = ReplayBuffer(folders.episodes)
        if not ahead:
            rollouts.play([], buffer, unused, environment="miniwob")
            return
        with rollouts.ahead([], buffer, unused, environment="miniwob"):
            assert pool.acknowledged.wait(60)
            if end is None:
                raise ZeroDivisionError

    with pytest.raises((RunStopped, KeyboardInterrupt, ZeroDivisionError)):
        play()
    run.commit()
    assert known_to_the_next_driver(uri, Node(tmp_path / "three", monkeypatch)) == ("test-1",)


def test_processes_that_start_afresh_have_what_was_acknowledged_before(uri: str, nodes: tuple[Node, Node]) -> None:
    shard = shard_of_a_worker(uri, nodes[1], 1)
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    run.acknowledge(shard)
    run.bring_acknowledged()
    assert ReplayBuffer(run.folder / "episodes").ids(sources=tuple(Source)) == ("test-1",)
    run.commit()
    assert f"episodes/{Path(shard).name}" in run.copy.snapshot(lease.head)


def test_a_shard_that_was_packed_is_not_named_again_when_a_late_answer_tells_of_it(
    uri: str, nodes: tuple[Node, Node]
) -> None:
    shard = Path(shard_of_a_worker(uri, nodes[1], 1))
    nodes[0].here()
    run, lease = taken(uri)
    begun(run, lease)
    run.acknowledge(str(shard))
    run.commit()
    run.bring_acknowledged()
    (run.folder / "episodes" / shard.name).unlink()
    run.commit()
    assert run.copy.store.size(object_key(f"episodes/{shard.name}", digest_in_name(shard.name))) is None
    run.acknowledge(str(shard))
    run.commit()
    assert f"episodes/{shard.name}" not in run.copy.snapshot(lease.head)


async def test_an_episode_is_not_acknowledged_where_the_store_refuses(
    uri: str, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    from records.failures import EpisodeFailed

    def refuse(*args: object) -> bool:
        raise StoreError("the store is down")

    nodes[0].here()
    monkeypatch.setattr("records.stores.object_store.ObjectStore.put", refuse)
    writer = ShardWriter(address_of(uri, "episodes"), linger_s=0.01, deadline_s=60)
    with pytest.raises(EpisodeFailed, match="the store is down"):
        await writer.add(trajectory(spec(1), 1.0))


def test_a_server_on_another_node_finds_the_published_weights(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, _ = taken(uri)
    address = address_of(uri, "weights/actor-001.safetensors")
    path = local_path(address)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"weights")
    (digest,) = keep(address).values()
    assert current_weights(address_of(uri, "weights/current.json")) is None
    run.announce(PublishedWeights(1, digest, address))
    nodes[1].here()
    found = current_weights(address_of(uri, "weights/current.json"))
    assert found == PublishedWeights(1, digest, address)
    here = on_this_node(found)
    assert Path(here.path).read_bytes() == b"weights"
    assert not Path(here.path).is_relative_to(run.folder)
    Path(here.path).write_bytes(b"another epoch's")
    assert Path(on_this_node(found).path).read_bytes() == b"weights"
    with pytest.raises(WeightsRejected, match="has no weights"):
        on_this_node(PublishedWeights(2, "0" * 64, address))


def test_a_folder_is_brought_as_the_newest_snapshot_has_it(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, _ = taken(uri)
    (run.folder / "policy").mkdir(parents=True)
    (run.folder / "policy" / "config.json").write_text("{}")
    run.commit()
    nodes[1].here()
    assert (bring(address_of(uri, "policy")) / "config.json").read_text() == "{}"


def test_a_folder_is_brought_although_its_driver_commits_meanwhile(
    uri: str, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    (run.folder / "policy").mkdir(parents=True)
    (run.folder / "policy" / "config.json").write_text("{}")
    run.commit()
    heads = [lease.head]
    (run.folder / "summary.json").write_text("{}")
    run.commit()
    monkeypatch.setattr(
        "records.stores.working_copy.read_head", lambda store: heads.pop() if heads else read_head(store)
    )
    nodes[1].here()
    assert (bring(address_of(uri, "policy")) / "config.json").read_text() == "{}"


def test_a_torn_snapshot_and_a_missing_file_are_named(uri: str, nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    run, lease = taken(uri)
    manifest = begun(run, lease)
    manifest.complete_stage(0, made(0, "clone"))
    newest, store = lease.head.newest, run.copy.store
    lost = object_key("manifest.json", run.copy.snapshot(lease.head)["manifest.json"])
    store.delete(lost)
    nodes[1].here()
    with pytest.raises(MissingKey, match="manifest.json"):
        taken(uri)
    store.delete(object_key("snapshots", newest))
    store.put(object_key("snapshots", newest), json.dumps({}).encode())
    with pytest.raises(DamagedObject, match="snapshots"):
        WorkingCopy(uri).snapshot(lease.head)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"learner": {"ranks": 2}}, "learner.ranks"),
        ({"policy": {"backend": "vllm", "options": {"urls": ["http://host:8000"]}}}, "policy.options.urls"),
    ],
)
def test_what_needs_a_folder_is_refused(changes: dict[str, object], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        require_storable(build_recipe(changes), "s3://bucket/run")
    require_storable(build_recipe({}), "s3://bucket/run")


def test_an_address_leads_nowhere_else(nodes: tuple[Node, Node]) -> None:
    nodes[0].here()
    for place in ("../x", "/etc/passwd", "a/../../b"):
        with pytest.raises(ValueError, match="no place in a run"):
            local_path(address_of("memory://tests/run", place))
