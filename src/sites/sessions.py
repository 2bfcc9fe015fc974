"""Sessions by token: who sees which private state.

Owns opening, resetting and dropping sessions, and the bound on their number. Invariants: the base
data is built once for each seed and shared; two tokens never share a state; an unknown token is an error and never
a fresh state, so that a restarted server cannot pass for an episode in which nothing happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from sites.faults import Faults, FaultSettings
from sites.kept import SEEDS_KEPT
from sites.site import Session, Site

PUBLIC = "public"
"""The session of a person who visits ``<site>.localhost`` without a token; it always exists."""
_TOKEN = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class SessionError(Exception):
    """A session cannot be had; ``status`` is the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class SessionStore:
    """All sessions of one server over base data of ``seed``; ``faults`` are those of sessions that ask for none."""

    def __init__(self, sites: Mapping[str, Site], seed: int, limit: int, faults: FaultSettings | None = None) -> None:
        self.sites = dict(sites)
        self.data: dict[str, Any] = {name: site.build(seed) for name, site in self.sites.items()}
        self._limit = limit
        self._faults = faults
        self._build = lru_cache(maxsize=SEEDS_KEPT * len(sites))(
            lambda name, data_seed: self.sites[name].build(data_seed)
        )
        self._sessions: dict[str, Session] = {}
        self.reset(PUBLIC)

    def __len__(self) -> int:
        return len(self._sessions)

    def reset(
        self,
        token: str,
        login: Iterable[str] = (),
        sites: Iterable[str] | None = None,
        faults: FaultSettings | None = None,
        data_seed: int | None = None,
    ) -> Session:
        """Open ``token`` afresh, logged in at the sites in ``login``; whatever it held before is gone.

        ``sites`` are those that it may visit, all by default; ``faults`` default to the server's. The public
        session has none of its own accord. With a ``data_seed`` its data and its layout are of that seed, in place of
        the server's data, which every layout has as it is; ``prepare`` builds them beforehand.
        Raises ``SessionError`` (400) for a bad token or site, (503) when too many sessions are open.
        """
        wanted, visited = frozenset(login), frozenset(self.sites if sites is None else sites)
        if not _TOKEN.fullmatch(token):
            raise SessionError(400, f"a token is 1-63 lower-case letters, digits or inner hyphens, found {token!r}")
        if unknown := visited - set(self.sites):
            raise SessionError(400, f"no sites {sorted(unknown)}: the sites are {sorted(self.sites)}")
        if unknown := wanted - visited:
            raise SessionError(400, f"cannot log in at {sorted(unknown)}: the sites are {sorted(visited)}")
        if token not in self._sessions and len(self._sessions) >= self._limit:
            raise SessionError(503, f"{self._limit} sessions are open, which is the limit: drop those that ended")
        own = {name: site for name, site in self.sites.items() if name in visited}
        chosen = faults or (None if token == PUBLIC else self._faults)
        data = self.data if data_seed is None else {name: self._build(name, data_seed) for name in own}
        drawn = Faults(chosen, token) if chosen else None
        self._sessions[token] = Session(token, own, data, wanted, drawn, data_seed)
        return self._sessions[token]

    def prepare(self, sites: Iterable[str], data_seed: int) -> None:
        """Build the data of ``sites`` of this seed, which takes tenths of a second, for the session to come."""
        for name in sites:
            if name in self.sites:
                self._build(name, data_seed)

    def drop(self, token: str) -> bool:
        """Forget ``token``; return whether it was there. The public session is reset instead."""
        if token == PUBLIC:
            self.reset(PUBLIC)
            return True
        return self._sessions.pop(token, None) is not None

    def get(self, token: str) -> Session:
        """Return the open session of ``token``; raise ``SessionError`` (410) when there is none."""
        session = self._sessions.get(token)
        if session is None:
            raise SessionError(410, f"no session {token!r} is open here: reset it through the control API first")
        return session
