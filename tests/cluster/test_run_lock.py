"""A run in use here is refused at once; one that a lost machine has locked is waited for, and is no wrong run."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

import pytest
import yaml

from cluster import train as entry
from cluster.display.run_display import RunDisplay
from cluster.errors import ExitCode, RunInUse, RunStopped
from cluster.rayjob import NEEDS_A_PERSON
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.lock import ELSEWHERE_S, RunLock
from records.stores.lease import GONE_S, this_machine

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
CEPHFS_S = 300.0
"""How long CephFS keeps what a lost client had (``session_autoclose``); NFSv4's lease is 90 s."""


def no_process() -> int:
    """Return the id of a process that has ended."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


class Locked:
    """A lock that somebody has, whose file says ``holder``; ``free`` takes what is told of it."""

    def __init__(self, out: Path, holder: str) -> None:
        self.told: list[str] = []
        out.mkdir(exist_ok=True)
        (out / "run.lock").write_text(holder)
        self._descriptor = os.open(out / "run.lock", os.O_RDWR)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def free(self, text: str) -> None:
        self.told.append(text)
        os.close(self._descriptor)


@pytest.mark.parametrize(
    ("holder", "named"),
    [
        ("{here}\nhead-0 a-boot pid:[1]\n", r"process \d+ on head-0,"),
        ("{gone}\n{machine}\n", r"process \d+ on .+,"),
        ("{gone}\n", r"process \d+,"),
        ("", "process unknown,"),
    ],
    ids=["another machine", "a process that has ended", "the same, of an earlier version", "not said"],
)
def test_a_lock_that_no_process_of_this_machine_has_is_waited_for(tmp_path: Path, holder: str, named: str) -> None:
    if " " not in this_machine():
        pytest.skip("only Linux tells which processes there are")
    lock = Locked(tmp_path, holder.format(here=os.getpid(), gone=no_process(), machine=this_machine()))
    with RunLock(tmp_path, tell=lock.free):
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n{this_machine()}\n"
    assert len(lock.told) == 1
    assert re.search(f"{named} which is none of this machine's; waiting at most 345 s", lock.told[0])


@pytest.mark.parametrize("holder", ["{here}\n{machine}\n", "{here}\n"], ids=["of today", "of an earlier version"])
def test_a_lock_of_a_living_process_of_this_machine_is_not_waited_for(
    tmp_path: Path, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slept(seconds: float) -> None:
        pytest.fail("it waits")

    monkeypatch.setattr("cluster.run_folder.lock.time.sleep", slept)
    lock = Locked(tmp_path, holder.format(here=os.getpid(), machine=this_machine()))
    with pytest.raises(RunInUse, match=rf"process {os.getpid()} has run\.lock"), RunLock(tmp_path, tell=lock.free):
        pass
    assert lock.told == []


def test_a_lock_that_outlasts_the_wait_is_no_reason_to_try_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.run_folder.lock.ELSEWHERE_S", 0.2)
    Locked(tmp_path, "7\nhead-0 a-boot pid:[1]\n")
    with pytest.raises(RunInUse, match=r"process 7 on head-0 has run\.lock.*remove run\.lock") as caught:
        entry.train(build_recipe({}), tmp_path)
    assert caught.value.code == ExitCode.STOPPED
    assert caught.value.code not in NEEDS_A_PERSON


def test_a_start_goes_on_once_the_lost_head_has_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Locked(tmp_path, "7\nhead-0 a-boot pid:[1]\n")
    got_there = RunStopped("it plays on")

    def play(*given: object) -> None:
        raise got_there

    monkeypatch.setattr(entry, "_play_on", play)
    monkeypatch.setattr(RunDisplay, "note", lambda display, text: lock.free(text))
    with pytest.raises(RunStopped) as caught:
        entry.train(build_recipe({}), tmp_path)
    assert caught.value is got_there
    assert len(lock.told) == 1


def test_the_wait_is_longer_than_what_keeps_a_lost_or_ending_head_in_the_run() -> None:
    assert ELSEWHERE_S >= GONE_S + CEPHFS_S
    cluster = yaml.safe_load((DEPLOY / "base" / "raycluster.yaml").read_text(encoding="utf-8"))
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    assert head["terminationGracePeriodSeconds"] + GONE_S <= ELSEWHERE_S
