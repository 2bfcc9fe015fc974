"""The HTTP that both SDKs ask over, with a limit on what an endpoint may send back.

Owns ``BoundedHttp``. Invariant: no more of a reply is held than ``LONGEST`` and one piece beyond, however little it was
packed into; what is over is not unpacked.
"""

from __future__ import annotations

from typing import Any

import httpx2

from judges.llm.client import Trouble
from records import failure_codes as codes

LONGEST = 4 * 2**20
"""Bytes, unpacked: many times the answer and the thoughts that a question has room for."""
_OF_THE_PACKAGE = ("content-encoding", "content-length", "transfer-encoding")


class BoundedHttp(httpx2.AsyncClient):
    """An ``AsyncClient`` that reads every reply whole, up to ``LONGEST``, and raises ``Trouble`` beyond."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request; see ``AsyncClient``. ``stream`` is not heeded: whoever asks here wants whole replies."""
        reply = await super().send(request, stream=True, **options)
        try:
            content = await _unpacked(reply)
        finally:
            await reply.aclose()
        headers = httpx2.Headers(reply.headers)
        for name in _OF_THE_PACKAGE:
            headers.pop(name, None)
        return httpx2.Response(
            reply.status_code, headers=headers, content=content, request=reply.request, extensions=reply.extensions
        )


async def _unpacked(reply: httpx2.Response) -> bytes:
    """Return the bytes of a reply; httpx2 unpacks in pieces of at most 1 MiB."""
    content = bytearray()
    async for piece in reply.aiter_bytes():
        content += piece
        if len(content) > LONGEST:
            raise Trouble(
                codes.JUDGE_NONSENSE, f"expected a reply of at most {LONGEST // 2**20} MiB, found a longer one"
            )
    return bytes(content)
