"""Requests to the sites' own interfaces, which evaluators make for state that no page shows.

Owns ``SiteHttp`` and ``site_functions``. Invariants: only the given sites are reached, redirects and proxies
are not followed; every request ends within its time; tokens, accounts and bodies are in no message.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Never
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from environments.addresses import EpisodeAddresses
from environments.webarena.login.accounts import Accounts, CredentialsMissing
from judges.functions import FUNCTIONS, PageFunction
from judges.shop_functions import shop_functions
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure, FailureCode
from records.placeholders import site_under

_MAX_BYTES = 4_000_000
_ADMINISTRATOR = "shopping_admin"


class SiteHttp:
    """``judges.interface.HttpClient`` for the sites at ``addresses``; each request ends by ``deadline``."""

    def __init__(self, addresses: EpisodeAddresses, deadline: Deadline) -> None:
        self._addresses, self._deadline = addresses, deadline

    async def json(
        self, method: str, url: str, *, query: Mapping[str, str] | None = None, token: str = "", body: object = None
    ) -> Any:
        """See ``HttpClient.json``."""
        request = Request(self._real(url) + (f"?{urlencode(query)}" if query else ""), method=method)
        request.add_header("Accept", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with self._deadline.waiting_for(codes.SITE_TIMEOUT, f"{method} {url}"):
                content = await self._deadline.run(asyncio.to_thread(_send, request, self._deadline.left()))
        except HTTPError as error:
            error.close()
            raise _failed(codes.SITE_API_REFUSED, f"{method} {url}: expected status 200, found {error.code}") from error
        except (OSError, HTTPException) as error:
            raise _failed(codes.SITE_UNREACHABLE, f"{method} {url}: {error}") from error
        try:
            return json.loads(content, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise _failed(codes.SITE_API_UNEXPECTED, f"{method} {url}: expected JSON, found something else") from error

    def _real(self, url: str) -> str:
        real = self._addresses.real(url)
        if site_under(self._addresses.bases, real) is None:
            raise _failed(codes.EVALUATION_URL_REFUSED, f"{url} is not on the task's sites")
        return real


def _no_number(word: str) -> Never:
    """Refuse ``NaN`` and ``Infinity``, which are no JSON."""
    raise ValueError(f"found {word}")


def site_functions(addresses: EpisodeAddresses, accounts: Accounts, deadline: Deadline) -> Mapping[str, PageFunction]:
    """Return every function that WebArena's task files may name, for an episode on the sites at ``addresses``."""

    def administrator() -> Mapping[str, str]:
        try:
            account = accounts.of(_ADMINISTRATOR)
        except CredentialsMissing as error:
            raise _failed(codes.LOGIN_FAILED, str(error)) from error
        return {"username": account.username.reveal(), "password": account.password.reveal()}

    return {**FUNCTIONS, **shop_functions(SiteHttp(addresses, deadline), administrator)}


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return None, which makes a redirect an error."""


def _send(request: Request, timeout_s: float) -> bytes:
    opener = build_opener(ProxyHandler({}), _NoRedirects())
    with opener.open(request, timeout=timeout_s) as answer:
        content: bytes = answer.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise HTTPException(f"more than {_MAX_BYTES} bytes")
    return content


def _failed(code: FailureCode, detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(code, detail))
