"""Runs are handed to a real Ray cluster as jobs, with a token, from another folder than the sources'."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from cluster.run_folder.summary import read_summary
from replay.buffer import ReplayBuffer
from tests.e2e.command import ROOT
from tests.e2e.test_train import recipe

LIMIT_S = 600.0


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster of one node, and the environment that its users have."""

    dashboard: str
    environment: dict[str, str]

    def submit(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "cluster", "submit", *arguments]
        return subprocess.run(
            words, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder, env=self.environment
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    ports = [free_port() for _ in range(4)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # Ray's sockets want a short path
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1",
            f"--port={ports[0]}", "--dashboard-host=127.0.0.1", f"--dashboard-port={ports[1]}",
            f"--ray-client-server-port={ports[2]}",
            f"--dashboard-agent-listen-port={ports[3]}", f"--temp-dir={folder}", "--num-cpus=4",
            f"--object-store-memory={128 * 2**20}", "--disable-usage-stats",
        ]  # fmt: skip
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            dashboard = f"http://127.0.0.1:{ports[1]}"
            wait_for(dashboard, process)
            paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
            yield Cluster(dashboard, {**environment, "PYTHONPATH": paths, "RAY_ADDRESS": dashboard})
        finally:
            end(process)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(dashboard: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 120
    while time.monotonic() < ends and process.poll() is None:
        try:
            # Without a token nobody is told anything: that it refuses is its sign of life.
            if httpx.get(f"{dashboard}/api/version", timeout=5, trust_env=False).status_code in (200, 401):
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"no dashboard at {dashboard}")


def end(process: subprocess.Popen[bytes]) -> None:
    family = [*psutil.Process(process.pid).children(recursive=True)]
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    _, left = psutil.wait_procs(family, timeout=10)
    for one in left:
        one.kill()


def write(folder: Path, **sections: dict[str, object]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(recipe(**sections)))
    return path


@pytest.mark.slow
def test_a_submitted_run_trains_and_its_log_and_exit_code_come_back(cluster: Cluster, tmp_path: Path) -> None:
    path, out = write(tmp_path / "elsewhere"), tmp_path / "shared" / "run"
    ended = cluster.submit(path.parent, path.name, "--out", str(out), "--set", "run.name=sent")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Job waymark-sent-" in ended.stderr
    assert str(out / "report.html") in ended.stdout
    assert read_summary(out)["complete"]
    assert len(ReplayBuffer(out / "episodes")) > 0
    assert sorted(p.name for p in path.parent.iterdir()) == ["mine.yaml"], "nothing of the run lies where it was sent"
    again = cluster.submit(path.parent, path.name, "--out", str(out), "--set", "run.seed=77")
    assert again.returncode == 2
    assert "run.seed: was 0, is 77" in again.stdout
    assert "Traceback" not in again.stdout + again.stderr


def test_what_cannot_be_submitted_is_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    path, out = write(tmp_path / "elsewhere"), str(tmp_path / "run")
    for arguments, code, said in (
        ([path.name, "--out", "run"], 2, "expected an absolute path that every node of the cluster sees, found 'run'"),
        ([path.name, "--out", out, "--set", "run.phase=1"], 2, "did you mean 'run.phases'"),
        ([path.name, "--out", out, "--address", "http://127.0.0.1:9"], 3, "is no Ray dashboard that can be asked"),
    ):
        ended = cluster.submit(path.parent, *arguments)
        assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr
        assert "Traceback" not in ended.stderr
    stranger = Cluster(cluster.dashboard, {**cluster.environment, "RAY_AUTH_TOKEN": secrets.token_hex(16)})
    refused = stranger.submit(path.parent, path.name, "--out", out)
    assert refused.returncode == 3
    assert "Traceback" not in refused.stderr


def test_a_dashboards_address_is_not_taken_for_a_cluster_to_join(cluster: Cluster, tmp_path: Path) -> None:
    path = write(tmp_path)
    words = [sys.executable, "-m", "cluster", "train", str(path), "--out", str(tmp_path / "run")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=cluster.environment)
    assert ended.returncode == 2
    assert "hand the run to that cluster with `waymark submit`" in ended.stderr
