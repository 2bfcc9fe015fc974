"""The contract of ``EnvironmentKind``, as a check that runs one; the contract of its environments is part of it.

Owns ``check_kind``. Invariant: every kind passes it in the tests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from environments.browser.settings import BrowserSettings
from environments.contract import ContractBroken, check_environment
from environments.hosted import hosted
from environments.kinds import KINDS


async def check_kind(
    name: str, options: Mapping[str, object] | None = None, browser: BrowserSettings | None = None
) -> None:
    """Run the kind called ``name`` through its contract, with ``options`` (None: those of a first look).

    Its settings have a default for everything, are frozen and forbid keys that they have not; the same arguments draw
    the same tasks, all of them of the split that was asked for; its service starts, ends, and starts again; its host
    starts, is alive, and can be closed twice; two of its environments keep ``Environment``'s contract.

    Raises:
        ContractBroken: listing what is not kept.
    """
    kind = KINDS.find(name)
    broken = [f"- settings: {line}" for line in _settings(kind.settings)]
    for _ in range(2):
        async with hosted(name, options, browser) as running:
            tasks = running.tasks.task_set(1, "train", 2, at_least=1)
            if running.tasks.task_set(1, "train", 2, at_least=1) != tasks:
                broken.append("- tasks: expected the same arguments to draw the same tasks")
            if {task.split for task in tasks} != {"train"}:
                broken.append(f"- tasks: expected the split 'train', found {[task.split for task in tasks]}")
            if not running.host.alive():
                broken.append("- host: expected it to be alive after its start")
    await running.host.close()
    if broken:
        raise ContractBroken("\n".join([f"{name} breaks the contract of a kind:", *dict.fromkeys(broken)]))
    async with hosted(name, options, browser) as running:
        one, other = await running.environment(), await running.environment()
        await check_environment(iter([one, other]).__next__, tasks[0])


def _settings(settings: type) -> list[str]:
    """Return what is wrong with a settings class."""
    wrong = []
    if not dataclasses.is_dataclass(settings):
        return [f"expected a dataclass, found {settings.__name__}"]
    if not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        wrong.append(f"expected {settings.__name__} to be frozen")
    if getattr(settings, "__pydantic_config__", None) != {"extra": "forbid"}:
        wrong.append(f"expected {settings.__name__}.__pydantic_config__ to forbid extra keys")
    nothing = dataclasses.MISSING
    wrong += [
        f"expected a default for {field.name}"
        for field in dataclasses.fields(settings)
        if field.default is nothing and field.default_factory is nothing
    ]
    return wrong
