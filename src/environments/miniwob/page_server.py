"""The pages of the ``miniwob`` package on a port of this machine.

Owns where the package's page files are and the server that hands them out. Invariants: only 127.0.0.1
listens; only host names under ``localhost`` are answered; nothing outside the page folder is served, and
the package's Python code, which needs a browser driver of its own, is never imported.
"""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

START_TIMEOUT_S = 20.0
"""Longest wait for the server to answer, in seconds; the same holds for its end. It is a thread of this process."""

_POLL_S = 0.01
"""Fixed: a pace within ``START_TIMEOUT_S``."""
_MISSING = (
    "the MiniWoB++ pages are not installed; `make setup` installs them, or run "
    "`pip install --no-deps -c constraints.txt miniwob`"
)


def page_folder() -> Path:
    """Return the folder that holds ``miniwob/<page>.html`` and what the pages load.

    Raises:
        EpisodeFailed: ``infra/pages_missing`` when the package is not installed.
    """
    found = importlib.util.find_spec("miniwob")
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "html"
        if folder.is_dir():
            return folder
    raise EpisodeFailed(Failure(codes.PAGES_MISSING, _MISSING))


def pages_app(folder: Path) -> Starlette:
    """Return an application that serves the files under ``folder`` to hosts under ``localhost``."""
    return Starlette(
        routes=[Mount("/", app=StaticFiles(directory=folder))],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["*.localhost"], www_redirect=False)],
    )


class PageServer:
    """Serves a folder from a thread of this process; ``port`` is there after ``start``."""

    def __init__(self, folder: Path) -> None:
        config = uvicorn.Config(
            pages_app(folder), host="127.0.0.1", port=0, log_level="warning", access_log=False, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="miniwob-pages", daemon=True)
        self.port = 0

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Serve; blocks until the port is known.

        Raises:
            EpisodeFailed: ``infra/site_unreachable`` when it does not come up.
        """
        self._thread.start()
        for _ in range(int(START_TIMEOUT_S / _POLL_S)):
            if self._server.started or not self.alive:
                break
            self._thread.join(_POLL_S)
        if not self._server.started:
            detail = f"the server of the MiniWoB++ pages did not start within {START_TIMEOUT_S:g} s"
            raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, detail))
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def close(self) -> None:
        """End the server; safe to call twice."""
        self._server.should_exit = True
        if self.alive:
            self._thread.join(START_TIMEOUT_S)
