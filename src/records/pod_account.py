"""The account that a pod has with its Kubernetes cluster, and the questions that it may ask there.

Owns ``PodAccount``. Invariant: every question has a limit, and what goes wrong is an ``OSError`` or a ``RuntimeError``
that names it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's token, its namespace and the cluster's certificate."""
SERVER = "https://kubernetes.default.svc"
_ANSWER_S = 30.0
"""Fixed: Kubernetes answers within seconds, or its server is gone."""


class PodAccount:
    """The service account in the folder ``account``; ``transport`` stands in for the network.

    Raises:
        ValueError: there is no such account here.
    """

    def __init__(self, account: Path = ACCOUNT, transport: httpx.AsyncBaseTransport | None = None) -> None:
        missing = [name for name in ("token", "namespace", "ca.crt") if not (account / name).is_file()]
        if missing:
            raise ValueError(f"expected a pod's service account in {account}, found no {', '.join(missing)}")
        self.namespace = (account / "namespace").read_text(encoding="utf-8").strip()
        self._account, self._transport = account, transport

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client with the token as it is now: Kubernetes changes it every hour."""
        token = (self._account / "token").read_text(encoding="utf-8").strip()
        verify = ssl.create_default_context(cafile=str(self._account / "ca.crt")) if self._transport is None else True
        try:
            async with httpx.AsyncClient(
                base_url=SERVER,
                headers={"Authorization": f"Bearer {token}"},
                verify=verify,
                timeout=_ANSWER_S,
                trust_env=False,
                transport=self._transport,
            ) as client:
                yield client
        except httpx.HTTPError as error:
            raise OSError(f"{SERVER} does not answer: {error!r}") from error


async def change(client: httpx.AsyncClient, path: str, merged: Mapping[str, Any]) -> None:
    """Merge ``merged`` into the object at ``path``."""
    answer(await client.patch(path, json=merged, headers={"Content-Type": "application/merge-patch+json"}))


def answer(reply: httpx.Response) -> Any:
    """Return what Kubernetes answers; raise ``RuntimeError`` where it refuses."""
    if reply.is_error:
        raise RuntimeError(f"{reply.request.method} {reply.url.path}: status {reply.status_code}: {reply.text[:300]}")
    return reply.json()
