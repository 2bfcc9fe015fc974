"""Resetting a deployment whose sites run as pods of a Kubernetes cluster.

Owns ``KubernetesReset`` and the ``Pods`` protocol, by which it reaches the cluster: ``in_cluster.InClusterPods``,
unless a recipe names its own (``reset.pods``). Invariant: one deadline bounds the whole reset, whatever the cluster
does.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from environments.webarena.reset.protocol import reset_failed


class Pods(Protocol):
    """The pods of one deployment's sites, as somebody who may restart them sees them."""

    async def restart(self, deployment: str) -> None:
        """Replace all pods of the deployment by new ones from the sites' images, and return when that has begun."""
        ...

    async def pending(self, deployment: str) -> list[str]:
        """Return the pods that are not ready, those that are to go included; none when the sites answer."""
        ...


class KubernetesReset:
    """A ``Resetter`` that replaces a deployment's pods and waits until all of them are ready."""

    def __init__(self, pods: Pods, *, timeout_s: float, poll_s: float) -> None:
        self._pods, self._timeout_s, self._poll_s = pods, timeout_s, poll_s

    async def reset(self, deployment: str) -> None:
        """See ``Resetter``."""
        waiting = ["all"]
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._pods.restart(deployment)
                while waiting:
                    waiting = await self._pods.pending(deployment)
                    if waiting:
                        await asyncio.sleep(self._poll_s)
        except TimeoutError as error:
            detail = f"{deployment}: pods not ready within {self._timeout_s:g} s: {', '.join(waiting)}"
            raise reset_failed(detail) from error
        except (OSError, ValueError, RuntimeError) as error:
            raise reset_failed(f"{deployment}: the cluster: {type(error).__name__}: {error}") from error
