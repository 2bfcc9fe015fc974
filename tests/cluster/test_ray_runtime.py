"""A local Ray ends within a limit, whatever became of it, and none of its processes outlives it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import ray

from cluster import ray_runtime as module
from cluster.errors import ProcessLost
from cluster.recipe.recipe import build_recipe
from tests.e2e.processes import runs

ROOT = Path(__file__).resolve().parents[2]
FROZEN = """
import os, signal
import psutil
from cluster import ray_runtime as module
from cluster.recipe.recipe import Recipe
module._SHUTDOWN_S = 3.0
with module.ray_runtime(Recipe()):
    raylet = next(child for child in psutil.Process().children() if child.name() == "raylet")
    print(*(child.pid for child in psutil.Process().children(recursive=True)))
    os.kill(raylet.pid, signal.SIGSTOP)
"""


def test_a_raylet_that_hangs_is_killed_and_nothing_of_ray_is_left() -> None:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    ended = subprocess.run(
        [sys.executable, "-c", FROZEN],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    family = [int(pid) for pid in ended.stdout.split()]
    assert len(family) > 2
    assert [pid for pid in family if runs(pid)] == []
    assert "processes of Ray did not end and were killed: " in ended.stderr
    assert "raylet" in ended.stderr


def test_what_ray_leaves_behind_is_killed_with_what_that_had_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(module, "_LEFT_S", 2.0)
    code = "import subprocess; child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); child.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        module._end_ray([psutil.Process(process.pid)])
        assert not runs(process.pid)
        assert not runs(child)


def test_what_ends_by_itself_in_time_is_not_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(module, "_LEFT_S", 60.0)
    last_words = tmp_path / "last_words"
    code = "import pathlib, sys, time; time.sleep(0.3); pathlib.Path(sys.argv[1]).write_text('done')"
    with subprocess.Popen([sys.executable, "-c", code, str(last_words)]) as process:
        module._end_ray([psutil.Process(process.pid)])
        assert last_words.read_text() == "done"


def test_a_process_that_ends_while_it_is_looked_at_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def vanished(processes: object, timeout: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")  # what pidfd_open says of one that ends at that moment

    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(psutil, "wait_procs", vanished)
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        module._end_ray([psutil.Process(process.pid)])
        assert not runs(process.pid)


@pytest.mark.parametrize(("shares", "gpus"), [((0.5, 0.4), 1), ((0.0, 0.0), 0), ((1.0, 0.5), 2)])
def test_ray_has_the_whole_gpus_that_shares_are_of(
    shares: tuple[float, float], gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    @contextmanager
    def started(**options: object) -> Iterator[SimpleNamespace]:
        given.update(options)
        yield SimpleNamespace(dashboard_url="")

    monkeypatch.setattr(module, "running_ray", started)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    learner, server = shares
    with module.ray_runtime(
        build_recipe({}, [f"run.resources.learner_gpus={learner}", f"policy.options.gpus={server}"])
    ):
        assert given["num_gpus"] == gpus


def test_a_ray_that_does_not_start_says_so_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def too_slow(**options: object) -> None:
        begun.append(subprocess.Popen(["sleep", "600"]))
        raise Exception("The current node timed out during startup.")  # what Ray raises

    monkeypatch.setattr(ray, "init", too_slow)
    with (
        pytest.raises(ProcessLost, match=r"Ray did not start: The current node timed out .* try again"),
        module.running_ray(),
    ):
        raise AssertionError("never reached")
    assert not runs(begun[0].pid)
    begun[0].wait()
    with (
        pytest.raises(ProcessLost, match=r"Ray at 10\.0\.0\.9:6379 cannot be joined"),
        module.running_ray(address="10.0.0.9:6379"),
    ):
        raise AssertionError("never reached")
    begun[1].wait()
