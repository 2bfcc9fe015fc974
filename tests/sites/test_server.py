"""The server process: it answers, keeps its secret, and ends with its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from sites.app import CONTROL_HEADER
from sites.server import SiteServer, SiteServerError
from sites.settings import SitesSettings
from tests.e2e.processes import runs


def test_the_server_answers_and_stops():
    with SiteServer(SitesSettings(seed=0)) as server:
        base = f"http://127.0.0.1:{server.port}"
        assert httpx.get(f"{base}/_control/health").status_code == 403
        health = httpx.get(f"{base}/_control/health", headers={CONTROL_HEADER: server.secret}).json()
        assert health["ok"]
        assert health["seed"] == 0
        page = httpx.get(base, headers={"Host": f"shop.localhost:{server.port}"})
        assert "Categories" in page.text
        pid = server.pid
    assert not server.alive
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    server.stop()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads the environment of a process from /proc")
def test_the_server_has_no_token_and_no_password_in_its_environment(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a-token-of-the-driver")
    monkeypatch.setenv("SHOPPING_PASSWORD", "a-password-of-a-site")
    monkeypatch.setenv("WAYMARK_VLLM_TOKEN", "a-token-of-the-policy-servers")
    with SiteServer() as server:
        environment = Path(f"/proc/{server.pid}/environ").read_bytes()
    assert b"PYTHONPATH=" in environment
    assert b"of-the-driver" not in environment
    assert b"of-a-site" not in environment
    assert b"of-the-policy-servers" not in environment


def test_a_server_that_cannot_start_says_why():
    with SiteServer() as server, pytest.raises(SiteServerError, match="in use"):
        SiteServer(port=server.port)


def test_the_server_dies_with_its_parent():
    code = "import time; from sites.server import SiteServer; print(SiteServer().pid, flush=True); time.sleep(60)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait(5)
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and runs(pid):
        time.sleep(0.05)
    assert not runs(pid)
