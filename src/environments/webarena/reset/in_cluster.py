"""The sites' pods as the Kubernetes cluster knows them that the driver itself runs in.

Owns ``InClusterPods``. A deployment is the StatefulSets that carry its name in the label ``webarena/deployment``, in
the driver's own namespace; ``deploy/kubernetes/components/webarena`` makes them. What goes wrong is an ``OSError`` or a
``RuntimeError`` that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from records.pod_account import ACCOUNT, PodAccount, answer, change

_LABEL = "webarena/deployment"


class InClusterPods:
    """A ``Pods`` over StatefulSets; ``account`` is a service account's folder, ``transport`` stands in for the network.

    Raises:
        ValueError: there is no such account here.
    """

    def __init__(self, account: Path = ACCOUNT, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._account = PodAccount(account, transport)
        self._sets = f"/apis/apps/v1/namespaces/{self._account.namespace}/statefulsets"

    async def restart(self, deployment: str) -> None:
        """See ``Pods``: ask each StatefulSet for new pods, as ``kubectl rollout restart`` does."""
        mark = {"waymark/reset-at": datetime.now(UTC).isoformat()}
        marked = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        async with self._account.asking() as client:
            for name in await self._found(client, deployment):
                await change(client, f"{self._sets}/{name}", marked)

    async def pending(self, deployment: str) -> list[str]:
        """See ``Pods``: the StatefulSets whose pods are not all new and ready."""
        async with self._account.asking() as client:
            found = await self._found(client, deployment)
            return [name for name, item in found.items() if not _rolled_out(item)]

    async def _found(self, client: httpx.AsyncClient, deployment: str) -> Mapping[str, Any]:
        reply = await client.get(self._sets, params={"labelSelector": f"{_LABEL}={deployment}"})
        items = {item["metadata"]["name"]: item for item in answer(reply)["items"]}
        if not items:
            raise RuntimeError(f"no StatefulSet has the label {_LABEL}={deployment}")
        return items


def _rolled_out(item: Mapping[str, Any]) -> bool:
    """Whether every pod of a StatefulSet is of its newest template, and ready."""
    wanted, status = item["spec"]["replicas"], item.get("status", {})
    seen = status.get("observedGeneration", 0) >= item["metadata"]["generation"]
    return seen and status.get("updatedReplicas", 0) == status.get("readyReplicas", 0) == wanted
