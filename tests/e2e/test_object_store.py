"""``waymark train --out s3://…`` trains, is killed, goes on from another node's folder, and its books balance there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cluster.audit.audit import audit
from records.stores.address import open_store
from records.stores.lease import read_head
from replay.buffer import ReplayBuffer
from tests.cluster.made_results import every_stage
from tests.e2e.command import MARK, ROOT, Ended, Run
from tests.e2e.processes import started_with
from tests.e2e.test_train import TINY, assert_done, recipe
from tests.records.stores.s3_server import s3_server

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.lengthy]


@dataclass
class StoredRun(Run):
    """A run in the object store; ``folder`` is what its node has on disk, beside the recipe."""

    uri: str = ""

    @property
    def node(self) -> Path:
        return self.folder / "node"

    @property
    def out(self) -> Path:
        """The working copy, once it is there."""
        return next(iter(sorted(self.node.glob("[!.]*"))), self.node / "none")

    def start(self, *arguments: str, command: str = "train") -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "recipe.yaml"
        path.write_text(yaml.safe_dump(self.recipe))
        words = [str(path), "--out", self.uri] if command == "train" else [self.uri]
        environment = {
            **os.environ, MARK: self.mark, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "WAYMARK_NODE_FOLDER": str(self.node),
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "cluster", command, *words, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.folder,
            start_new_session=True,
        )  # fmt: skip


@dataclass(frozen=True)
class Story:
    undisturbed: Run
    first: StoredRun
    second: StoredRun
    killed: Ended
    ended: Ended
    audited: Ended
    environment: dict[str, str]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    with s3_server() as served, pytest.MonkeyPatch.context() as patch:
        for name, value in served.items():
            patch.setenv(name, value)
        yield served


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Story:
    """Killed with its node's disk in the middle of the first phase's rollouts; gone on on another node."""
    raw = recipe(
        policy={**TINY["policy"], "options": {"batch_invariant": True}},
        run={**TINY["run"], "evaluation": {"tasks_per_split": 1, "screenshots": 1}},
        warm_start={
            "tokenizer_demonstrations": 30,
            "demonstrations": 8,
            "potential_demonstrations": 4,
            "value_demonstrations": 4,
        },
        replay={"pack_above": 1},
    )
    undisturbed = Run(tmp_path_factory.mktemp("undisturbed"), raw)
    assert_done(undisturbed.run())
    uri = "s3://waymark-tests/tiny"
    first = StoredRun(tmp_path_factory.mktemp("first"), raw, uri=uri)

    def in_rollouts() -> bool:
        return first.out.exists() and (first.out / "episodes").exists() and bool(first.rollouts(1))

    killed = first.run_until(in_rollouts, kill(first))
    second = StoredRun(tmp_path_factory.mktemp("second"), raw, uri=uri)
    ended = second.run()
    third = StoredRun(tmp_path_factory.mktemp("third"), raw, uri=uri)
    return Story(undisturbed, first, second, killed, ended, third.run(command="audit"), environment)


def kill(run: Run) -> Callable[[subprocess.Popen[str]], None]:
    """Kill all that the command started, as when a node is lost."""

    def now(driver: subprocess.Popen[str]) -> None:
        driver.kill()
        ends = time.monotonic() + 30
        while (left := started_with(MARK, run.mark)) and time.monotonic() < ends:
            for process in left:
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.1)

    return now


def test_it_was_killed_and_went_on_elsewhere(story: Story) -> None:
    assert story.killed.code == -signal.SIGKILL
    assert_done(story.ended)
    assert "complete stages (start 2 of this run)" in story.ended.output
    assert story.first.out != story.second.out


def test_it_is_the_run_that_would_have_been(story: Story) -> None:
    assert story.second.manifest.stages() == every_stage(1)
    weights = [run.manifest.entry(1, "publish").result.weights.checksum for run in (story.undisturbed, story.second)]  # type: ignore[attr-defined]
    assert weights[0] == weights[1]


def test_its_shards_were_packed_and_their_sources_are_gone_from_the_store_too(story: Story) -> None:
    played = story.second.manifest.entry(1, "rollouts").files
    assert all(Path(name).name.startswith("packed-") for name in played)
    sources = {name for names in ReplayBuffer(story.second.out / "episodes").packed().values() for name in names}
    stored = {Path(key).parent.name for key in open_store(story.second.uri).keys("episodes")}
    assert {Path(name).name for name in played} <= stored
    assert len(sources) > len(played)
    assert not sources & stored


def test_it_is_audited_from_a_third_node(story: Story) -> None:
    assert story.audited.code == 0, story.audited.output + story.audited.errors
    assert audit(story.second.out).findings == []


def test_its_lease_was_given_back(story: Story) -> None:
    head = read_head(open_store(story.second.uri))
    assert head is not None
    assert (head.epoch, head.holder) == (2, "")


def test_no_credential_is_on_disk_or_in_the_store(story: Story) -> None:
    secrets = [story.environment[name].encode() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    store = open_store(story.second.uri)
    paths = [path for run in (story.first, story.second) for path in run.folder.rglob("*")]
    texts = [path.read_bytes() for path in paths if path.is_file()]
    texts += [store.read(key) for key in store.keys("stages") + store.keys("starts") + store.keys("driver.log")]
    assert texts
    assert not any(secret in text for secret in secrets for text in texts)
    assert not any(secret.decode() in said for secret in secrets for said in (story.ended.output, story.ended.errors))
