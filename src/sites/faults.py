"""What real sites do to their visitors: slow pages, server errors, a log-in that runs out.

Owns ``FaultSettings``, the draws of one session, and the page that says that a log-in ran out. Invariants:
a session's faults depend on its token and the settings' seed alone, so that an episode played again, which
has another token, meets others; a request that fails has changed nothing; an evaluator, who opens pages
by their address, never meets the log-in page.
"""

from __future__ import annotations

import asyncio
import html
import random
import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from records.bounds import at_least, require, share

RENEW = "/_frame/renew"
"""Address that the button on the log-in page posts to."""
_EXPIRED = """<!doctype html><title>Session expired</title><h1>Session expired</h1>
<p>Your session has expired. Log in again to go on.</p>
<form method="post" action="{action}"><button>Log in again</button></form>"""
_INSIDE = re.compile(r"/(?![/\\])[^\x00-\x20]*")


@dataclass(frozen=True)
class FaultSettings:
    """How often a session's requests meet what makes real sites hard; without settings, never."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    error_share: float = 0.0
    """Share of the requests that are answered with a server error (500 or 503)."""
    slow_share: float = 0.0
    """Share of the requests that wait ``slow_s`` before they are answered."""
    slow_s: float = 1.5
    """How long a slow page takes, in seconds."""
    expiry_share: float = 0.0
    """Share of the pages opened from a page at which the log-in has run out and must be renewed (browser only)."""
    seed: int = 0
    """Seed of the draws, together with the session's token."""

    def __post_init__(self) -> None:
        """Refuse shares that are none, and a wait that no deadline would survive."""
        share(self, "error_share", "slow_share", "expiry_share")
        together = self.error_share + self.slow_share + self.expiry_share
        require(together <= 1, "error_share", "at most 1 together with slow_share and expiry_share", together)
        require(0 <= self.slow_s <= 60, "slow_s", "0 to 60 seconds", self.slow_s)
        at_least(self, 0, "seed")

    @classmethod
    def from_json(cls, value: Any) -> FaultSettings:
        """Return the settings in a JSON object; raise ``ValueError`` for anything but known names and numbers."""
        known = [field.name for field in fields(cls)]
        numbers = isinstance(value, dict) and all(
            isinstance(number, (int, float)) and not isinstance(number, bool) for number in value.values()
        )
        if not numbers or set(value) - set(known):
            raise ValueError(f"expected numbers for some of {', '.join(known)}, found {value!r}")
        return cls(**value)


class Faults:
    """The faults of one session."""

    def __init__(self, settings: FaultSettings, token: str) -> None:
        self._settings = settings
        self._rng = random.Random(f"faults/{settings.seed}/{token}")
        self._expired = self._renewed = False

    async def meet(self, request: Request) -> Response | None:
        """Return what the request is answered with instead of its page, or None; may take ``slow_s``."""
        if request.url.path == RENEW:
            return self._renew(request)
        # Pages opened from a page say so; an address typed in, as evaluators do, and scripts are let through.
        from_a_page = request.headers.get("sec-fetch-site") == "same-origin" and _is_page(request)
        if self._expired and from_a_page:
            return _expired_page(request)
        # A renewed log-in lasts for the page that it was renewed for, or nobody would ever get through.
        fresh, self._renewed = self._renewed and from_a_page, self._renewed and not from_a_page
        draw, settings = self._rng.random(), self._settings
        if draw < settings.error_share:
            return PlainTextResponse("The server could not answer", status_code=self._rng.choice((500, 503)))
        draw -= settings.error_share
        if draw < settings.slow_share:
            await asyncio.sleep(settings.slow_s)
            return None
        draw -= settings.slow_share
        if draw < settings.expiry_share and from_a_page and not fresh and request.method == "GET":
            self._expired = True
            return _expired_page(request)
        return None

    def _renew(self, request: Request) -> Response:
        self._expired, self._renewed = False, True
        wanted = request.query_params.get("next", "/")
        return RedirectResponse(wanted if _INSIDE.fullmatch(wanted) else "/", status_code=303)


def _is_page(request: Request) -> bool:
    return request.headers.get("sec-fetch-dest") == "document"


def _expired_page(request: Request) -> Response:
    """Say that the log-in ran out; a form that was sent meanwhile is lost, as on most sites."""
    wanted = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        wanted = f"{wanted}?{request.url.query}"
    action = html.escape(f"{RENEW}?{urlencode({'next': wanted})}")
    return Response(_EXPIRED.format(action=action), status_code=401, media_type="text/html")
