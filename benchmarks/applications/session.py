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
from environments.environment import Environment
from environments.hosted import hosted
from records.episodes import Task


@asynccontextmanager
async def playing_on(app: Application, serving: Serving) -> AsyncIterator[tuple[Environment, list[Task]]]:
    """Yield an environment on a served application, and its tasks in the order of their file."""
    with tempfile.TemporaryDirectory() as folder:
        accounts = Path(folder) / "accounts.json"
        if app.account is not None:
            accounts.touch(mode=0o600)
            accounts.write_text(json.dumps({app.name: dict(app.account)}), encoding="utf-8")
        options = options_of(app, serving.address, serving.reset_command, str(accounts))
        async with hosted("webarena", options) as running:
            environment = await running.environment()
            try:
                tasks = running.tasks.task_set(0, "test", len(json.loads(app.tasks.read_text(encoding="utf-8"))))
                yield environment, sorted(tasks, key=lambda task: int(task.task_id.rpartition(".")[2]))
            finally:
                await environment.close()
