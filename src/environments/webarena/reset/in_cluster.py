"""The sites' pods as the Kubernetes cluster knows them that the driver itself runs in.

Owns ``InClusterPods``. A deployment is the StatefulSets that carry its name in the label ``webarena/deployment``, in
the driver's own namespace; ``deploy/kubernetes/components/webarena`` makes them. What goes wrong is an ``OSError`` or a
``RuntimeError`` that names it.

Invariants: nobody restarts a deployment that another one holds. Its first StatefulSet says in two annotations who that
is and when it last said so, and they change by compare and swap of the resource's version. A holder counts as gone only
when it said nothing for as long as the asker itself looked, so no two clocks are compared.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from records.pod_account import ACCOUNT, PodAccount, answer, change
from records.supervision import supervised

_LOG = logging.getLogger(__name__)
_LABEL = "webarena/deployment"
_HOLDER, _BEAT = "waymark/held-by", "waymark/held-at"
_BEAT_S = 10.0
"""Fixed: a pace within ``_GONE_S``."""
_GONE_S = 45.0
"""Fixed: a holder that lives says so four times in that; one that does not loses the deployment."""
_SAY_S = 10.0
"""Fixed: what takes longer to say is said anew, within ``_GONE_S``."""
_LOOK_S = 1.0
"""Fixed: a pace within ``_GONE_S``, and before a swap that came too late is tried again."""
_CONFLICT = 409


class DeploymentInUse(RuntimeError):
    """Another run holds the deployment, and lives."""


class InClusterPods:
    """A ``Pods`` over StatefulSets; ``account`` is a service account's folder, ``transport`` stands in for the network.

    A deployment is held from its first restart until the event loop in which that ran cancels its tasks.

    Raises:
        ValueError: there is no such account here.
    """

    def __init__(self, account: Path = ACCOUNT, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._account = PodAccount(account, transport)
        self._sets = f"/apis/apps/v1/namespaces/{self._account.namespace}/statefulsets"
        self._name = f"{platform.node()} ({uuid4().hex[:8]})"
        self._beats: dict[str, asyncio.Task[None]] = {}

    async def restart(self, deployment: str) -> None:
        """See ``Pods``: hold it, and ask each StatefulSet for new pods, as ``kubectl rollout restart`` does.

        Raises:
            DeploymentInUse: another run holds it.
        """
        mark = {"waymark/reset-at": datetime.now(UTC).isoformat()}
        marked = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        async with self._account.asking() as client:
            _, *others = await self._hold(client, deployment, marked, patient=True)
            if deployment not in self._beats or self._beats[deployment].done():
                self._beats[deployment] = asyncio.create_task(self._beat(deployment))
            for name in others:
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

    async def _hold(
        self,
        client: httpx.AsyncClient,
        deployment: str,
        changes: Mapping[str, Any],
        *,
        patient: bool = False,
        end: bool = False,
    ) -> list[str]:
        """Say that this process holds a deployment, or, to ``end`` that, that nobody does; return its StatefulSets.

        In the same write the first of them is changed as ``changes`` say. A ``patient`` asker looks for ``_GONE_S``
        whether another holder is gone.
        """
        now = asyncio.get_running_loop().time
        seen: tuple[str, ...] | None = None
        ends = 0.0
        while True:
            found = await self._found(client, deployment)
            name, metadata = next((name, item["metadata"]) for name, item in found.items())
            held = tuple(metadata.get("annotations", {}).get(key, "") for key in (_HOLDER, _BEAT))
            other = held[0] not in ("", self._name)
            if other and (not patient or (seen is not None and held != seen)):
                raise DeploymentInUse(
                    f"the deployment {deployment} is in use by {held[0]}, which resets it too; wait for that run, end "
                    "it, or give this one deployments of its own"
                )
            if other and seen is None:
                seen, ends = held, now() + _GONE_S
            if not other or now() >= ends:
                beat = datetime.now(UTC).isoformat()
                said = {_HOLDER: None, _BEAT: None} if end else {_HOLDER: self._name, _BEAT: beat}
                swapped = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": said}}
                headers = {"Content-Type": "application/merge-patch+json"}
                reply = await client.patch(f"{self._sets}/{name}", json={**changes, **swapped}, headers=headers)
                if reply.status_code != _CONFLICT:
                    answer(reply)
                    return list(found)
            await asyncio.sleep(_LOOK_S)

    async def _beat(self, deployment: str) -> None:
        """Say again and again that this process holds a deployment, until it is cancelled or another one does."""
        try:
            while True:
                await asyncio.sleep(_BEAT_S)
                error = await supervised(self._say(deployment))
                if error:
                    _LOG.warning("deployment %s, held by %s: %r", deployment, self._name, error)
                if isinstance(error, DeploymentInUse):
                    return
        finally:
            error = await supervised(self._say(deployment, end=True))
            if error and not isinstance(error, DeploymentInUse):
                _LOG.warning("deployment %s was not given back: %r", deployment, error)

    async def _say(self, deployment: str, *, end: bool = False) -> None:
        async with asyncio.timeout(_SAY_S), self._account.asking() as client:
            await self._hold(client, deployment, {}, end=end)


def _rolled_out(item: Mapping[str, Any]) -> bool:
    """Whether every pod of a StatefulSet is of its newest template, and ready."""
    wanted, status = item["spec"]["replicas"], item.get("status", {})
    seen = status.get("observedGeneration", 0) >= item["metadata"]["generation"]
    return seen and status.get("updatedReplicas", 0) == status.get("readyReplicas", 0) == wanted
