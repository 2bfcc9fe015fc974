"""SIGKILL of a driver at points over all stages and in the middle of writes, over a system without processes.

What ``test_resume`` shows with real processes at few points: shards, stages and ledger are those of a run that nothing
disturbed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.resume import KillPoint, half_written, kill_at
from cluster.audit import audit
from cluster.manifest import RunManifest
from cluster.metrics_log import read_metrics
from cluster.sessions import session_files
from tests.cluster.fake_run import ORDER

pytestmark = [pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
import sys, time
from pathlib import Path
from cluster.run_folders import RunFolders
from tests.cluster.fake_run import Run
RunFolders(Path(sys.argv[1])).clear_leftovers()
Run(Path(sys.argv[1])).start(lambda what: time.sleep(0.02))
"""


def drive(out: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(out)], env=environment)


def points(seed: int, count: int) -> list[KillPoint]:
    rng = random.Random(seed)
    chosen = sorted(rng.sample(range(len(ORDER)), count))
    return [KillPoint(*ORDER[n], number=n, share=rng.random(), in_write=k % 2 == 1) for k, n in enumerate(chosen)]


def test_killed_at_points_over_all_stages_it_is_the_run_that_would_have_been(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert drive(undisturbed).wait(timeout=300) == 0
    for point in points(seed=1, count=6):
        kill_at(drive(killed), killed, point, seconds=0.3)
    assert drive(killed).wait(timeout=300) == 0

    assert len(session_files(killed)) == 7
    assert audit(killed).findings == []
    assert half_written(killed) == []
    one, other = (RunManifest.read(out) for out in (undisturbed, killed))
    assert one.stages() == other.stages() == ORDER
    assert [one.data(*stage) for stage in ORDER] == [other.data(*stage) for stage in ORDER]
    shards = [{path.name: path.read_bytes() for path in (out / "episodes").iterdir()} for out in (undisturbed, killed)]
    assert shards[0] == shards[1]
    assert [(line["phase"], line["stage"]) for line in read_metrics(killed)] == ORDER
