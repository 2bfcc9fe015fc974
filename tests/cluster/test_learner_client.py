"""What the controller is told when the learner's process dies, takes too long or fails: the cause, whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import ray

from cluster.errors import ProcessLost, RunStopped
from cluster.learner_actor import HEADWAY
from cluster.learner_client import LearnerClient, cause_of_death
from cluster.run_folder.layout import RunFolders
from learner.errors import NoBetterThanClock, RankError
from learner.headway import Headway
from tests.rollout_workers.ray_cluster import small_ray

DIED = """The actor died unexpectedly before finishing this task.
	class_name: LearnerActor
	actor_id: 98d7afc380cb843cff3df28001000000
	pid: 12630
	namespace: f44a144b-6104-4824-a4c3-27b6660fbef2
	ip: 192.0.2.2
The actor is dead because """
DEAD = "its worker process has died. "
EXITED = "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. "
GUESSES = "End of file. Some common causes include: (1) the process was killed by the OOM killer due to high memory."
IN_ITS_CREATION = """The actor died because of an error raised in its creation task, ray::Actor.__init__() (pid=1)
           ^^^^^^^^^^^^^^^^
  File "learner_actor.py", line 6, in __init__
    raise ValueError("unknown reward 'x'")
            ^^^^^^^^^^^^^^^^
ValueError: unknown reward 'x': choose one of
outcome, difference"""


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (DIED + DEAD + EXITED + GUESSES, f"{DEAD}{EXITED}End of file"),
        (DIED + "it was killed by `ray.kill`.", "it was killed by `ray.kill`"),
        (IN_ITS_CREATION, "ValueError: unknown reward 'x': choose one of\noutcome, difference"),
        ("", "for a reason that Ray does not know"),
        ("Something else.", "Something else"),
    ],
)
def test_the_cause_of_a_death_is_kept_whole_without_guesses(said: str, cause: str) -> None:
    assert cause_of_death(said) == cause


class Dying:
    """A learner with one bad end for each method."""

    def __init__(self, refused: str = "") -> None:
        if refused:
            raise ValueError(refused)
        self.now = Headway()

    def start(self) -> None:
        """It is."""

    def clone(self, episode_ids: Sequence[str]) -> None:
        os._exit(3)

    def score(self, episode_ids: Sequence[str]) -> None:
        raise SystemExit(4)

    def ask(self, critic: str, episode_ids: Sequence[str]) -> None:
        time.sleep(60)

    def pretrain(self, critic: str, episode_ids: Sequence[str]) -> str:
        """Makes headway for some seconds, and then none."""
        for done in range(int(critic)):
            self.now = Headway("value", done, 20, 100 * done, done)
            time.sleep(0.2)
        time.sleep(60 if episode_ids else 0)
        return "done"

    @ray.method(concurrency_group=HEADWAY)
    def headway(self) -> Headway:
        return self.now

    def save(self, folder: str) -> None:
        raise OSError(28, "No space left on device", folder)

    def load(self, folder: str) -> None:
        raise TypeError("a defect")

    def update_actor(self, *asked: object) -> None:
        raise NoBetterThanClock("a clock does as well")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with small_ray():
        yield


@pytest.fixture
def folders(tmp_path: Path) -> RunFolders:
    return RunFolders(tmp_path)


def client(folders: RunFolders, timeout_s: float = 60.0, refused: str = "") -> LearnerClient:
    remote: Any = ray.remote
    actor = remote(concurrency_groups={HEADWAY: 1}, num_cpus=0)(Dying).remote(refused)
    return LearnerClient([actor], folders, timeout_s)


@pytest.mark.usefixtures("cluster")
def test_a_potential_that_is_refused_stops_the_run_with_its_reason(folders: RunFolders) -> None:
    with pytest.raises(RunStopped, match=r"^a clock does as well$"):
        client(folders).update_actor([], [], 1, 0)


@pytest.mark.usefixtures("cluster")
def test_a_process_that_ended_is_lost_and_memory_is_named_only_where_it_ran_out(folders: RunFolders) -> None:
    with pytest.raises(ProcessLost, match=r"ended during clone: .*exit type: SYSTEM_ERROR.*connection error") as lost:
        client(folders).clone([])
    assert "micro_batch_tokens" not in str(lost.value)
    with pytest.raises(ProcessLost, match=r"ended during score: .*exit code 4"):
        client(folders).score([])


@pytest.mark.usefixtures("cluster")
def test_what_it_cannot_be_built_with_stops_the_run_and_is_told(folders: RunFolders) -> None:
    with pytest.raises(RunStopped, match=r"the learner cannot be built: unknown reward 'x'"):
        client(folders, refused="unknown reward 'x'").ready()


@pytest.mark.usefixtures("cluster")
def test_what_takes_too_long_is_lost_and_a_full_disk_stops_the_run(folders: RunFolders) -> None:
    slow = client(folders)
    slow.ready()
    slow._timeout_s = 0.5
    with pytest.raises(ProcessLost, match=r"ask made no headway for longer than run.learner_timeout_s \(0.5 s\)"):
        slow.ask("value", [])
    with pytest.raises(RunStopped, match=r"the learner's save failed: OSError: .*No space left on device.*free space"):
        client(folders).save("phase-001")
    with pytest.raises(TypeError, match="a defect"):
        client(folders).load("phase-001")


@pytest.mark.usefixtures("cluster")
def test_a_call_may_take_its_time_while_it_makes_headway_which_is_told(folders: RunFolders) -> None:
    told: list[Headway] = []
    working = client(folders)
    working.ready()
    working._timeout_s, working._on_headway = 2.0, told.append
    assert working.pretrain("30", []) == "done"  # 6 s
    assert len(told) > 1
    assert [headway.done for headway in told] == sorted({headway.done for headway in told})
    with pytest.raises(ProcessLost, match=r"pretrain made no headway"):
        working.pretrain("5", ["e"])


class Second(Dying):
    """A rank that fails where the other dies, and waits where the other fails."""

    def clone(self, episode_ids: Sequence[str]) -> None:
        raise RuntimeError("Connection closed by peer")

    def save(self, folder: str) -> None:
        raise RankError("rank 1: OSError: No space left on device")

    def load(self, folder: str) -> None:
        time.sleep(60)


@pytest.mark.usefixtures("cluster")
def test_of_several_ranks_the_one_is_told_that_the_others_failed_because_of(folders: RunFolders) -> None:
    remote: Any = ray.remote

    def group() -> LearnerClient:
        ranks = [remote(concurrency_groups={HEADWAY: 1}, num_cpus=0)(kind).remote() for kind in (Second, Dying)]
        return LearnerClient(ranks, folders, 60.0)

    with pytest.raises(ProcessLost, match="the learner's rank 1 ended during clone"):
        group().clone([])
    others = group()
    with pytest.raises(RunStopped, match=r"the learner's save on rank 1 failed: OSError.*No space left on device"):
        others.save("phase-001")
    with pytest.raises(TypeError, match="a defect") as defect:
        others.load("phase-001")
    assert defect.value.__notes__ == ["(rank 1 of the learner)"]


def test_memory_that_ran_out_is_told_with_what_to_do(folders: RunFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(reply: object, timeout: float) -> None:
        raise ray.exceptions.OutOfMemoryError("Task was killed due to the node running low on memory.\nused: 15 GB")

    class Handle:
        class start:
            remote = staticmethod(lambda: None)

    monkeypatch.setattr(ray, "wait", lambda replies, num_returns, timeout: (replies, []))
    monkeypatch.setattr(ray, "get", out_of_memory)
    with pytest.raises(ProcessLost, match=r"running low on memory.*lower learner.micro_batch_tokens"):
        LearnerClient([Handle()], folders, 1.0).ready()  # type: ignore[list-item]
