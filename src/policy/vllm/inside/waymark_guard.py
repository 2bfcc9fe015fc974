"""Lets only those in who know the server's token, on every path but the health check.

Owns ``TokenGuard``, an ASGI middleware that vLLM is told by ``--middleware``. vLLM's own key guards the paths of
requests, not those that change weights. A second token, which follows from the server's and not the other way round,
opens the path of replies alone: it is what rollout workers know.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

VARIABLE = "WAYMARK_VLLM_TOKEN"
_OPEN = ("/health",)
_REPLIES = ("/inference/v1/generate",)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class TokenGuard:
    """Answers 401 to requests without ``Authorization: Bearer TOKEN``; the token is an environment variable's.

    The token of replies is the one that ``policy.vllm.api.reply_token`` makes of it.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        token = os.environ[VARIABLE]
        self._all = f"Bearer {token}".encode()
        self._replies = f"Bearer {hmac.new(token.encode(), b'replies', 'sha256').hexdigest()}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in _OPEN or self._knows(scope):
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"this server answers its own run only\n"})

    def _knows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        for_replies = scope["path"] in _REPLIES and hmac.compare_digest(given[0], self._replies)
        return for_replies or hmac.compare_digest(given[0], self._all)
