"""The sites' pods as the Kubernetes cluster knows them that the driver itself runs in.

Owns ``InClusterPods``. A deployment is the StatefulSets that carry its name in the label ``webarena/deployment``, in
the driver's own namespace; ``deploy/kubernetes/components/webarena`` makes them. Invariant: every question has a limit,
and what goes wrong is an ``OSError`` or a ``RuntimeError`` that names it.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's token, its namespace and the cluster's certificate."""
SERVER = "https://kubernetes.default.svc"
_ANSWER_S = 30.0
"""Fixed: Kubernetes answers within seconds, or its server is gone."""
_LABEL = "webarena/deployment"


class InClusterPods:
    """A ``Pods`` over StatefulSets; ``account`` is a service account's folder, ``transport`` stands in for the network.

    Raises:
        ValueError: there is no such account here.
    """

    def __init__(self, account: Path = ACCOUNT, transport: httpx.AsyncBaseTransport | None = None) -> None:
        missing = [name for name in ("token", "namespace", "ca.crt") if not (account / name).is_file()]
        if missing:
            raise ValueError(f"expected a pod's service account in {account}, found no {', '.join(missing)}")
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
        self._sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        self._account, self._transport = account, transport

    async def restart(self, deployment: str) -> None:
        """See ``Pods``: ask each StatefulSet for new pods, as ``kubectl rollout restart`` does."""
        mark = {"waymark/reset-at": datetime.now(UTC).isoformat()}
        change = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        async with self._client() as client:
            for name in await self._found(client, deployment):
                kind = {"Content-Type": "application/merge-patch+json"}
                _answer(await client.patch(f"{self._sets}/{name}", json=change, headers=kind))

    async def pending(self, deployment: str) -> list[str]:
        """See ``Pods``: the StatefulSets whose pods are not all new and ready."""
        async with self._client() as client:
            found = await self._found(client, deployment)
            return [name for name, item in found.items() if not _rolled_out(item)]

    async def _found(self, client: httpx.AsyncClient, deployment: str) -> Mapping[str, Any]:
        reply = await client.get(self._sets, params={"labelSelector": f"{_LABEL}={deployment}"})
        items = {item["metadata"]["name"]: item for item in _answer(reply)["items"]}
        if not items:
            raise RuntimeError(f"no StatefulSet has the label {_LABEL}={deployment}")
        return items

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
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


def _answer(reply: httpx.Response) -> Any:
    if reply.is_error:
        raise RuntimeError(f"{reply.request.method} {reply.url.path}: status {reply.status_code}: {reply.text[:300]}")
    return reply.json()


def _rolled_out(item: Mapping[str, Any]) -> bool:
    """Whether every pod of a StatefulSet is of its newest template, and ready."""
    wanted, status = item["spec"]["replicas"], item.get("status", {})
    seen = status.get("observedGeneration", 0) >= item["metadata"]["generation"]
    return seen and status.get("updatedReplicas", 0) == status.get("readyReplicas", 0) == wanted
