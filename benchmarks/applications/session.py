"""One application under the environment ``webarena``, from its packages to an environment that plays its tasks.

Owns ``playing_on``. Invariant: everything that was started is closed, and the account lies in a file of its own.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.applications.application import Application, options_of
from benchmarks.applications.serving import Serving
from environments.browser.settings import BrowserSettings
from environments.environment import Environment
from environments.hosted import hosted
from records.episodes import Task

_SETTLE_S = 5.0
"""Longer than usual: the applications' servers share a busy machine with the browser."""


@asynccontextmanager
async def playing_on(
    app: Application, serving: Serving, *, idle: bool = False
) -> AsyncIterator[tuple[Environment, list[Task]]]:
    """Yield an environment on a served application, and its tasks in the order of their file.

    ``idle`` is for episodes that do nothing: no reset follows them.
    """
    with tempfile.TemporaryDirectory() as folder:
        accounts = Path(folder) / "accounts.json"
        if app.account is not None:
            accounts.touch(mode=0o600)
            accounts.write_text(json.dumps({app.name: dict(app.account)}), encoding="utf-8")
        numbers = [entry["task_id"] for entry in json.loads(app.tasks.read_text(encoding="utf-8"))]
        only_read = [f"webarena.{number}" for number in numbers] if idle else []
        options = options_of(app, serving.address, serving.reset_command, str(accounts), only_read)
        async with hosted("webarena", options, BrowserSettings(settle_timeout_s=_SETTLE_S)) as running:
            environment = await running.environment()
            try:
                tasks = running.tasks.task_set(0, "test", len(numbers))
                yield environment, sorted(tasks, key=lambda task: int(task.task_id.rpartition(".")[2]))
            finally:
                await environment.close()
