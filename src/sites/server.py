"""The embedded sites on a port of this machine.

Owns the life of the server: ``SiteServer`` (a child process that dies with its parent), the entry of that
process, and ``serve_forever`` for a person. Invariants: only 127.0.0.1 is listened on; the control
secret travels by a file that only its owner can read; the process has none of the tokens and passwords in its
parent's environment; a restarted server keeps port and secret and has
forgotten every session; every wait is finite.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from records.child_environment import inherited
from sites.app import CONTROL_HEADER, create_app
from sites.faults import FaultSettings
from sites.settings import SitesSettings
from telemetry import meter
from telemetry.prometheus_sink import PrometheusSink

CONTROL_S = 2.0
"""Fixed: what the server counts is a page of text from the same machine."""
STOP_S = 5.0
"""Fixed: past it the server is killed; it keeps nothing that could be lost."""

LOGGER = logging.getLogger(__name__)
_HOST = "127.0.0.1"


class SiteServerError(RuntimeError):
    """The server did not start; the message says what it said last."""


class SiteServer:
    """The sites in a process of their own; ``port`` and ``secret`` are what environments need.

    Starts in the constructor and raises ``SiteServerError`` when the server does not answer in time.
    """

    def __init__(self, settings: SitesSettings | None = None, port: int = 0) -> None:
        self._settings = settings or SitesSettings()
        self.secret = os.urandom(24).hex()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self.port = self._launch(port)
        except SiteServerError:
            self._log.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the server process is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def answers(self, timeout_s: float) -> bool:
        """Whether the server runs and answers its control API within ``timeout_s`` seconds."""
        if not self.alive:
            return False
        connection = http.client.HTTPConnection(_HOST, self.port, timeout=timeout_s)
        try:
            connection.request("GET", "/_control/health", headers={CONTROL_HEADER: self.secret})
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def metrics(self) -> str:
        """Return the server's metrics in Prometheus' text form; raise ``OSError`` where it does not answer in time."""
        connection = http.client.HTTPConnection(_HOST, self.port, timeout=CONTROL_S)
        try:
            connection.request("GET", "/_control/metrics", headers={CONTROL_HEADER: self.secret})
            reply = connection.getresponse()
            said = reply.read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"the site server {self.pid} sent no HTTP: {error!r}") from error
        finally:
            connection.close()
        if reply.status != http.client.OK:
            raise OSError(f"the site server {self.pid} answered {reply.status}")
        return said

    def restart(self) -> None:
        """Kill the server, whatever it is doing, and start it afresh on the same port.

        Raises:
            SiteServerError: the old one does not end, or the new one does not answer, in time.
        """
        if not self._kill():
            raise SiteServerError(f"the site server {self._process.pid} has not gone after SIGKILL")
        self._close_pipes()
        self._launch(self.port)

    def stop(self) -> None:
        """End the server; safe to call twice."""
        self._close_pipes()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            LOGGER.warning("the site server %d did not end in time and is killed", self._process.pid)
            self._kill()
        self._log.close()

    def _kill(self) -> bool:
        """Kill the process; return whether it is gone."""
        self._process.kill()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            LOGGER.error("the site server %d has not gone after SIGKILL", self._process.pid)
            return False
        return True

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> SiteServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _launch(self, port: int) -> int:
        """Start the process and return the port it listens on."""
        handle, name = tempfile.mkstemp(prefix="waymark-sites-")
        try:
            os.write(handle, self.secret.encode())
            os.close(handle)
            self._process = self._start(port, Path(name))
            return int(self._ready()["port"])
        finally:
            os.unlink(name)

    def _start(self, port: int, secret_file: Path) -> subprocess.Popen[bytes]:
        source = str(Path(__file__).parents[1])
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [sys.executable, "-m", "sites.server", "--port", str(port), "--seed", str(self._settings.seed)]
        command += ["--max-sessions", str(self._settings.max_sessions), "--secret-file", str(secret_file)]
        command += ["--faults", json.dumps(asdict(self._settings.faults)), "--metrics", meter.run_name()]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**inherited(), "PYTHONPATH": os.pathsep.join(paths)},
        )

    def _ready(self) -> dict[str, Any]:
        """Wait for the process's one line of JSON."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], self._settings.start_timeout_s)
        line = self._process.stdout.readline() if readable else b""
        if not line:
            self._kill()
            self._close_pipes()
            self._log.seek(0)
            said = self._log.read().decode(errors="replace")[-2000:].strip() or "nothing"
            raise SiteServerError(f"no site server after {self._settings.start_timeout_s:g} s; it said: {said}")
        ready: dict[str, Any] = json.loads(line)
        return ready


def bound(port: int) -> socket.socket:
    """Return a socket of this machine's ``port``, which nobody else can take; raise ``OSError`` where somebody has."""
    taken = socket.socket()
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for a port that was let go a moment ago
        taken.bind((_HOST, port))
        taken.listen()
    except OSError:
        taken.close()
        raise
    return taken


def serve_forever(app: Starlette, listening: socket.socket) -> None:
    """Serve the sites of ``app`` at ``http://<site>.localhost:<port>/`` until interrupted."""
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def main(arguments: list[str] | None = None) -> None:
    """Serve as a child process: say the port in one JSON line, end when standard input closes."""
    parser = argparse.ArgumentParser(prog="sites.server", description="Serve the embedded sites on this machine.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sites' data")
    parser.add_argument("--max-sessions", type=int, default=SitesSettings.max_sessions, help="most open sessions")
    parser.add_argument("--secret-file", type=Path, required=True, help="file that holds the control secret")
    parser.add_argument("--faults", type=json.loads, default={}, help="faults of every session, as a JSON object")
    parser.add_argument("--metrics", default="", help="run that metrics are recorded for; empty records none")
    options = parser.parse_args(arguments)
    if options.metrics:
        meter.install(PrometheusSink(), options.metrics)
    faults = FaultSettings.from_json(options.faults)
    secret, measured = options.secret_file.read_text().strip(), bool(options.metrics)
    app = create_app(options.seed, secret, options.max_sessions, faults=faults, measured=measured)
    # asyncio sends without delay (TCP_NODELAY) only where it knows the protocol; with it left at 0 every page with a
    # body waits 40 ms for the browser's delayed acknowledgement of the headers.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, options.port))
        listener.listen(512)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=30))
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
        sys.stdout.write(json.dumps({"port": listener.getsockname()[1]}) + "\n")
        sys.stdout.flush()
        server.run(sockets=[listener])


def _end_with_parent(server: uvicorn.Server) -> None:
    # The parent holds the other end: it closes when the parent stops us, and also when it is killed.
    sys.stdin.buffer.read()
    server.force_exit = True
    server.should_exit = True


if __name__ == "__main__":
    main()
