"""A guest book as an environment of its own: a page server that knows nothing of Waymark, and what joins the two."""

from __future__ import annotations

import html
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from environments.browser.host import ChromiumHost
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteSessions
from environments.embedded.world import EmbeddedWorld
from environments.kinds import EnvironmentKind
from environments.task_sources import ListedTasks
from judges.interface import TrajectoryJudge
from records.episodes import Task

LAYOUT = '<!doctype html><title>Guest book</title><h1>Guest book</h1><a href="/">Entries</a> <a href="/sign">Sign</a>'
FORM = '<form method="post">Name <input name="name" aria-label="Name"> <button>Sign</button></form>'


class Book(BaseHTTPRequestHandler):
    """The site. It keeps one list of entries for each host name, so that no episode sees another's."""

    entries: dict[str, list[str]] = {}

    def do_GET(self) -> None:
        """Show the entries, or the form for a new one."""
        items = "".join(f"<li>{html.escape(entry)}</li>" for entry in self.entries.get(self.headers["Host"], []))
        self._answer(200, LAYOUT + (FORM if self.path == "/sign" else f'<ul id="entries">{items}</ul>'))

    def do_POST(self) -> None:
        """Add an entry and show all of them."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.entries.setdefault(self.headers["Host"], []).extend(form.get("name", []))
        self._answer(303)

    def _answer(self, status: int, page: str = "") -> None:
        self.send_response(status)
        self.send_header("Location" if status == 303 else "Content-Type", "/" if status == 303 else "text/html")
        self.end_headers()
        self.wfile.write(page.encode())


class BookSessions(SiteSessions):
    """How an episode gets a fresh state: its token has no entries."""

    async def open_session(self, token: str, *_: object) -> None:
        """Forget what an earlier episode of the token wrote."""
        Book.entries.pop(f"book.{token}.localhost:{self.port}", None)


@dataclass(frozen=True)
class BookSettings:
    """What a recipe may say of it in ``environments``: who signs in the tasks for training."""

    __pydantic_config__ = {"extra": "forbid"}
    signers: tuple[str, ...] = ("Ann", "Ben", "Cora", "Dan")


class BookHost(ChromiumHost):
    """One page server and one Chromium for a worker."""

    def __init__(self, settings: BookSettings, connection: None, browser: BrowserSettings, judge: TrajectoryJudge):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Book)
        sessions = BookSessions(self._server.server_port)
        super().__init__(BrowserProcess(browser), lambda: EmbeddedWorld(sessions, judge))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    async def close(self) -> None:
        """End both."""
        await super().close()
        self._server.shutdown()
        self._server.server_close()


def sign(name: str, split: str) -> Task:
    """Return the task of signing the book, judged by what the page of entries then says."""
    locator = "document.querySelector('#entries').outerText"
    target = {"url": "__BOOK__/", "locator": locator, "required_contents": {"exact_match": name}}
    evaluation = {"eval_types": ["program_html"], "program_html": [target]}
    intent = f"Sign the guest book as {name}."
    return Task(f"book.{name}", ("book",), intent, "__BOOK__/", evaluation, "book.sign", {"name": name}, split=split)


GUESTBOOK = EnvironmentKind(
    settings=BookSettings,
    tasks=lambda told: ListedTasks(
        [sign(n, "train") for n in told.signers] + [sign(n, "test") for n in ("Eva", "Finn")]
    ),
    host=BookHost,
)
