"""One kind of environment as a worker would run it, with its service and a host, but without a pool.

Owns ``hosted``, which also starts the kind's service, and ``hosted_on``, which uses one that runs. Invariant: what was
started is closed, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from environments.admission import AskedFor, Asking
from environments.browser.settings import BrowserSettings
from environments.environment import Environment
from environments.kinds import KINDS, EnvironmentHost, Service, make_host
from environments.task_sources import TaskSource
from judges.verdicts import Evaluators


@dataclass(frozen=True, slots=True)
class Hosted:
    """A host that runs, and what draws tasks for it."""

    tasks: TaskSource
    host: EnvironmentHost
    asking: Asking | None

    async def environment(self) -> Environment:
        """Return a new environment, which asks for its grants itself where its kind has an admission."""
        made = await self.host.environment()
        return AskedFor(made, self.asking) if self.asking else made


@asynccontextmanager
async def hosted(
    name: str, options: Mapping[str, object] | None = None, browser: BrowserSettings | None = None
) -> AsyncIterator[Hosted]:
    """Run the kind called ``name`` with ``options`` (None: those of a first look).

    Raises:
        ValueError: when there is no such kind, or its options are wrong.
        EpisodeFailed: when its host does not start.
    """
    kind = KINDS.find(name)
    settings = kind.read(options or kind.first_look, name)
    with kind.service(settings) as service:
        async with hosted_on(name, settings, service, browser or BrowserSettings()) as running:
            yield running


@asynccontextmanager
async def hosted_on(
    name: str, settings: object, service: Service[Any], browser: BrowserSettings
) -> AsyncIterator[Hosted]:
    """Run a host of the kind called ``name`` on its service, which no pool of workers uses meanwhile.

    Raises:
        EpisodeFailed: when the host does not start.
    """
    host = make_host(name, settings, service.connection, browser, Evaluators())
    try:
        await host.start()
        yield Hosted(KINDS.find(name).tasks(settings), host, Asking(service.admission) if service.admission else None)
    finally:
        await host.close()
