"""SIGKILL of a driver at points over all stages and in the middle of writes, over a system without processes.

What ``test_resume`` shows with real processes at few points: shards, stages and ledger are those of a run that nothing
disturbed.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.resume import KillPoint, half_written, kill_at
from cluster.audit.audit import audit
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.starts import start_files
from tests.cluster.fake_run import ORDER

pytestmark = [pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = """
import os, sys, time
from pathlib import Path
from cluster.run_folder.layout import RunFolders
from tests.cluster.fake_run import Run
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        out = Path(line.strip())
        RunFolders(out).clear_leftovers()
        Run(out).start(lambda what: time.sleep(0.02))
        os._exit(0)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""What a driver needs takes longer to import than a run takes: it is imported once, and each driver is a fork."""


class Forked:
    """A driver as ``subprocess.Popen`` would show it; one at a time."""

    def __init__(self, template: subprocess.Popen[bytes], out: Path) -> None:
        assert template.stdin
        assert template.stdout
        template.stdin.write(f"{out}\n".encode())
        self._told = template.stdout
        self._pid = int(self._told.readline())
        self._code: int | None = None

    def poll(self, timeout: float = 0.0) -> int | None:
        if self._code is None and select.select([self._told], [], [], timeout)[0]:
            self._code = int(self._told.readline())
        return self._code

    def wait(self, timeout: float = 300.0) -> int:
        code = self.poll(timeout)
        assert code is not None, "the driver did not end"
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)


@pytest.fixture
def template() -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", TEMPLATE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=environment) as process:
        yield process


def begun(template: subprocess.Popen[bytes], out: Path) -> Forked:
    """A driver whose start is noted."""
    before = len(start_files(out))
    driver, ends = Forked(template, out), time.monotonic() + 60
    while len(start_files(out)) == before and driver.poll() is None and time.monotonic() < ends:
        time.sleep(0.001)
    return driver


def points(seed: int, count: int) -> list[KillPoint]:
    rng = random.Random(seed)
    chosen = sorted(rng.sample(range(len(ORDER)), count))
    return [KillPoint(*ORDER[n], number=n, share=rng.random(), in_write=k % 2 == 1) for k, n in enumerate(chosen)]


def test_killed_at_points_over_all_stages_it_is_the_run_that_would_have_been(
    tmp_path: Path, template: subprocess.Popen[bytes]
) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert Forked(template, undisturbed).wait() == 0
    for point in points(seed=1, count=6):
        driver = begun(template, killed)
        kill_at(driver, killed, point, seconds=0.3)
        assert driver.wait() == -signal.SIGKILL, f"it ended by itself before {point}"
    assert Forked(template, killed).wait() == 0

    assert len(start_files(killed)) == 7
    assert audit(killed).findings == []
    assert half_written(killed) == []
    one, other = (RunManifest.read(out) for out in (undisturbed, killed))
    assert one.stages() == other.stages() == ORDER
    assert [one.entry(*stage).result for stage in ORDER] == [other.entry(*stage).result for stage in ORDER]
    shards = [{path.name: path.read_bytes() for path in (out / "episodes").iterdir()} for out in (undisturbed, killed)]
    assert shards[0] == shards[1]
    assert [(line["phase"], line["stage"]) for line in read_metrics(killed)] == ORDER
