"""The applications: what they are made with, and how each is started.

Owns ``APPLICATIONS``. Those of the workbench are a page of ours around a library as it is published; the others are
whole applications with a server and state of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.applications.application import Application, Command
from benchmarks.applications.serving import free_port

_HERE = Path(__file__).resolve().parent
_STARTS = _HERE / "starts"
_MAILS = (
    ("ann@example.org", "Bert <bert@example.org>", "Your order 1001", "Dear Bert, your lamp is on its way."),
    ("ann@example.org", "Cora <cora@example.org>", "Your order 1002", "Dear Cora, your chair is sold out."),
    ("news@example.org", "Bert <bert@example.org>", "News of October", "We have moved to Harbour Street 12."),
    ("dan@example.org", "Ann <ann@example.org>", "Invoice", "Please pay 84 within two weeks."),
)


def _workbench(page: str) -> Command:
    return lambda packages, state, port: [
        sys.executable, str(_HERE / "workbench.py"), page, str(packages), str(state), str(port)
    ]  # fmt: skip


def _python(script: str, *told: str) -> Command:
    return lambda packages, state, port: [sys.executable, str(_STARTS / script), str(port), *told]


def _maildev(packages: Path, state: Path, port: int) -> list[str]:
    for number, (sender, to, subject, text) in enumerate(_MAILS):
        head = f"From: {sender}\nTo: {to}\nSubject: {subject}\nDate: Mon, 0{number + 1} Jun 2026 08:00:00 +0000"
        (state / f"mail{number}.eml").write_text(f"{head}\nContent-Type: text/plain\n\n{text}\n")
    program = packages / "node_modules" / "maildev" / "dist" / "bin" / "maildev.js"
    places = ["--web", str(port), "--web-ip", "127.0.0.1", "--ip", "127.0.0.1", "--smtp", str(free_port())]
    return ["node", str(program), *places, "--mail-directory", str(state)]


def _tiddlywiki(packages: Path, state: Path, port: int) -> list[str]:
    program = str(packages / "node_modules" / "tiddlywiki" / "tiddlywiki.js")
    made = f"node {program} wiki --init server && mkdir -p wiki/tiddlers && cp {_STARTS}/*.tid wiki/tiddlers"
    return ["sh", "-c", f"{made} && exec node {program} wiki --listen host=127.0.0.1 port={port}"]


_ALL = (
    Application(
        "booking",
        "server-rendered with htmx, dates by flatpickr",
        _workbench("booking"),
        npm=("htmx.org@4.0.1", "flatpickr@4.6.13"),
    ),
    Application("sheet", "a grid, Tabulator", _workbench("sheet"), npm=("tabulator-tables@6.5.3",)),
    Application("board", "a drag board, SortableJS", _workbench("board"), npm=("sortablejs@1.15.7",)),
    Application("letter", "a rich-text editor, Quill", _workbench("letter"), npm=("quill@2.0.3",)),
    Application(
        "config",
        "Svelte, with a code editor: vanilla-jsoneditor",
        _workbench("config"),
        npm=("vanilla-jsoneditor@3.13.0",),
    ),
    Application("maildev", "React, with a WebSocket: MailDev", _maildev, npm=("maildev@3.0.0",)),
    Application("tiddlywiki", "its own widgets: TiddlyWiki", _tiddlywiki, npm=("tiddlywiki@5.4.1",)),
    Application(
        "piccolo",
        "Vue: Piccolo Admin",
        _python("films.py"),
        pip=("piccolo_admin==1.14.0", "aiosqlite==0.22.1"),
        login_form={"path": "", "logged_out": "input[type=password]", "logout": "/logout", "logged_in": "#nav"},
        account={"username": "piccolo", "password": "piccolo123"},
    ),
    Application(
        "money",
        "server-rendered with Bootstrap: I Hate Money",
        _python("money.py"),
        pip=("ihatemoney==7.2.1",),
        login_form={"path": "/authenticate?project_id=trip", "logged_out": "#authenticate", "logout": "/exit"},
        account={"username": "trip", "password": "trip-pass"},
    ),
)
APPLICATIONS = {app.name: app for app in _ALL}
"""Every application by its name."""
