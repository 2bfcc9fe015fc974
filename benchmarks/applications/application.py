"""What an application is: packages, how its server is started, and how one logs in.

Owns ``Application`` and ``options_of``, which says all of it as options of the environment ``webarena``. Invariant:
nothing but these options tells the environment about an application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TASKS = Path(__file__).resolve().parent / "tasks"
Command = Callable[[Path, Path, int], Sequence[str]]
"""From the folder of the packages, that of the state (which the program runs in) and the port to the program."""


@dataclass(frozen=True)
class Application:
    """One application.

    ``made_with`` says what its pages are made with. ``pip`` and ``npm`` are its packages with their versions;
    ``command`` starts its server on a port of 127.0.0.1, which answers at ``ready`` when it can be used; ``seed`` then
    puts its first state there, where a fresh folder is not enough. ``login_form`` and ``account`` are as in
    ``environments.webarena``.
    """

    name: str
    made_with: str
    command: Command
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    ready: str = "/"
    start_s: float = 90.0
    variables: Mapping[str, str] = field(default_factory=dict)
    seed: Callable[[int], None] | None = None
    login_form: Mapping[str, Any] | None = None
    account: Mapping[str, str] | None = None
    viewport: tuple[int, int] | None = None

    @property
    def tasks(self) -> Path:
        """Return the application's task file."""
        return TASKS / f"{self.name}.json"


def options_of(
    app: Application, address: str, reset: Sequence[str], accounts: str = "", only_read: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the options of ``webarena`` under which ``app`` at ``address`` is played.

    ``reset`` is a command; episodes of the tasks ``only_read`` change nothing, so that no reset follows them.
    """
    options: dict[str, Any] = {
        "sites": {app.name: {}},
        "task_files": {"test": str(app.tasks)},
        "deployments": [
            {
                "name": app.name,
                "addresses": {app.name: address},
                "reset": {"kind": "command", "command": list(reset), "timeout_s": app.start_s},
            }
        ],
    }
    if only_read:
        options["writes"] = dict.fromkeys(only_read, False)
    if app.login_form is not None:
        options["login_forms"] = {app.name: dict(app.login_form)}
        options["credentials_file"] = accounts
    return options
