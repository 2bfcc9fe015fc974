"""Running an application's server, and putting it back to its first state by a command.

Owns ``Serving``. Invariants: the server listens on 127.0.0.1; a reset ends it, empties its folder and starts it again
on the same port; when it is left, nothing of it runs on.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from benchmarks.applications.application import Application
from benchmarks.applications.installing import installed

_END_S = 10.0
_LOOK_AGAIN_S = 0.05
_RESET = Path(__file__).resolve().parent / "reset.py"
_INHERITED = ("PATH", "LANG", "TMPDIR", "WAYMARK_TEST_SUITE")


class NotStarted(RuntimeError):
    """The server did not answer in time; the message has its last words."""


class Serving:
    """A context manager: the server of an application, at ``address``."""

    def __init__(self, app: Application) -> None:
        self.app, self.port = app, free_port()
        self._folder = Path(tempfile.mkdtemp(prefix=f"waymark-{app.name}-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._control = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._lock = threading.Lock()
        self._asked: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Return where the application is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def reset_command(self) -> list[str]:
        """Return a command that resets the application and ends with 0 when it can be used."""
        return [sys.executable, str(_RESET), f"http://127.0.0.1:{self._control.server_port}/"]

    def __enter__(self) -> Serving:
        self._packages = installed(self.app)
        try:
            self.restart()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._asked = threading.Thread(target=self._control.serve_forever, daemon=True)
        self._asked.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asked is not None:
            self._control.shutdown()
            self._asked.join(_END_S)
        self._control.server_close()
        with self._lock:
            self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def restart(self) -> None:
        """Start the server anew, in an empty folder; raise ``NotStarted`` where it does not answer in time."""
        with self._lock:
            self._end()
            state = self._folder / "state"
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir()
            log = (self._folder / "log").open("wb")
            with log:
                self._process = subprocess.Popen(
                    list(self.app.command(self._packages, state, self.port)),
                    cwd=state, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    env=self._environment(state), start_new_session=True,
                )  # fmt: skip
            self._await()
            if self.app.seed is not None:
                self.app.seed(self.port)

    def _environment(self, state: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        paths = {"HOME": str(state), "PYTHONPATH": str(self._packages), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**kept, **paths, **self.app.variables}

    def _await(self) -> None:
        ends = time.monotonic() + self.app.start_s
        assert self._process is not None
        while time.monotonic() < ends and self._process.poll() is None:
            try:
                with urllib.request.urlopen(self.address + self.app.ready, timeout=5):
                    return
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    return
            except OSError:
                pass
            time.sleep(_LOOK_AGAIN_S)
        words = (self._folder / "log").read_text(errors="replace")[-600:]
        raise NotStarted(f"{self.app.name}: no answer at {self.address}{self.app.ready}; its last words: {words}")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for ending in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, ending)
                process.wait(_END_S)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        serving = self

        class Control(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                try:
                    serving.restart()
                    status, words = 204, ""
                except NotStarted as error:
                    status, words = 500, str(error)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(words.encode())

            def log_message(self, *_: object) -> None:
                pass

        return Control


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
