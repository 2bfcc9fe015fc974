"""The applications: what they are made with, and how each is started.

Owns ``APPLICATIONS``. Those of the workbench are a page of ours around a library as it is published; the others are
whole applications with a server and state of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.applications.application import Application, Command

_HERE = Path(__file__).resolve().parent


def _workbench(page: str) -> Command:
    return lambda packages, state, port: [
        sys.executable, str(_HERE / "workbench.py"), page, str(packages), str(state), str(port)
    ]  # fmt: skip


_ALL = (
    Application(
        "booking",
        "server-rendered with htmx, dates by flatpickr",
        _workbench("booking"),
        npm=("htmx.org@4.0.1", "flatpickr@4.6.13"),
    ),
    Application("sheet", "a grid, Tabulator", _workbench("sheet"), npm=("tabulator-tables@6.5.3",)),
)
APPLICATIONS = {app.name: app for app in _ALL}
"""Every application by its name."""
