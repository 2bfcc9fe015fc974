"""Logged-in sessions, lent to one episode at a time.

Owns ``LoginSessions``. Invariants: a session is lent to one episode only, because sites handle the requests of one
session one after the other and an agent that logs out ends it; a session that may expire during an episode is
not lent; per site, one log-in runs at a time; every wait ends; a session is lent in the epoch of its deployment in
which it was made, and in no other: a reset ends the sessions of before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from environments.webarena.login.form_login import StoredLogin
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

Key = tuple[str, str]
"""A deployment's name and a site's."""


@dataclass(frozen=True, slots=True, eq=False)
class LoginSession:
    """A session that an episode has borrowed.

    ``epoch`` is the deployment's (``SiteLease.epochs``); ``expires_at`` is in seconds since 1970.
    """

    key: Key
    epoch: str
    expires_at: float
    state: dict[str, Any] = field(repr=False)


class LoginSessions:
    """Lends sessions and makes new ones where none is free."""

    def __init__(
        self,
        log_in: Callable[[str, str], Awaitable[StoredLogin]],
        *,
        lifetime_s: Callable[[str], float],
        margin_s: float,
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Log in with ``log_in(deployment, site)``; ``lifetime_s(site)`` is how long a session may be used."""
        self._log_in, self._lifetime_s, self._clock = log_in, lifetime_s, clock
        self._margin_s, self._timeout_s = margin_s, timeout_s
        self._free: dict[Key, list[LoginSession]] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self.logins = 0
        """How many log-ins succeeded."""

    async def lend(self, deployment: str, site: str, epoch: str) -> LoginSession:
        """Return a session of this epoch with at least the margin left to live.

        Raises:
            EpisodeFailed: ``infra/login_failed``, also when it is not had within the deadline.
        """
        key = (deployment, site)
        try:
            async with asyncio.timeout(self._timeout_s), self._locks.setdefault(key, asyncio.Lock()):
                return self._take(key, epoch) or await self._new(key, epoch)
        except TimeoutError as error:
            detail = f"{site} of {deployment}: no session within {self._timeout_s:g} s"
            raise EpisodeFailed(Failure(codes.LOGIN_FAILED, detail)) from error

    def give_back(self, session: LoginSession, *, usable: bool) -> None:
        """Take a session back; one that is not usable (logged out, expired, or in doubt) is forgotten."""
        if usable:
            self._free.setdefault(session.key, []).append(session)

    def _take(self, key: Key, epoch: str) -> LoginSession | None:
        free = self._free.get(key, [])
        while free:
            session = free.pop()
            if session.epoch == epoch and session.expires_at - self._clock() >= self._margin_s:
                return session
        return None

    async def _new(self, key: Key, epoch: str) -> LoginSession:
        began = self._clock()
        login = await self._log_in(*key)
        self.logins += 1
        ends = began + self._lifetime_s(key[1])
        if login.expires_at is not None:
            ends = min(ends, login.expires_at)
        return LoginSession(key, epoch, ends, login.state)
