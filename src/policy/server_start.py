"""A policy server's start: what it built, or why it is not up.

Owns ``ServerStart`` and ``StartRefused``. Ray never starts an actor again whose constructor raised, however many
restarts it has. So no server's constructor raises: one that could not build its engine lives, tells whoever asks why,
and is ended by ``policy.server_watch``, for Ray to start it afresh.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Generic, TypeVar

from policy.client import StartFailed
from records.supervision import attempted

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class StartRefused(RuntimeError):
    """What a server was told cannot be served, such as an unknown argument, or a model that cannot be read."""


class ServerStart(Generic[T]):
    """Calls ``build`` once, in the constructor, and keeps what it returns, or what it raises; ``who`` is the server."""

    def __init__(self, who: str, build: Callable[[], T]) -> None:
        built = attempted(build)
        self._reason, self._refused, self._id = "", isinstance(built, StartRefused), secrets.token_hex(8)
        if isinstance(built, Exception | asyncio.CancelledError):
            self._reason = f"{who} could not start: {type(built).__name__}: {built}"
            _LOG.error("%s", self._reason, exc_info=built)  # in the process's own log, with where it happened
        else:
            self._built = built

    def built(self) -> T:
        """Return what was built; raise ``StartFailed`` where nothing was."""
        if self._reason:
            raise StartFailed(self._reason, start=self._id, refused=self._refused)
        return self._built
