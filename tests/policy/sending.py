"""A learner as far as it sends weights: a Ray actor that has the files, as ``cluster.learner_actor`` is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ray

from policy.broadcast_sender import BroadcastSender
from policy.data_planes import Broadcast
from policy.ray_client import RayWeightSender


class Sending:
    """Sends files of this machine, over loopback."""

    def __init__(self) -> None:
        self._sender = BroadcastSender("cpu", "127.0.0.1")

    def invite(self, weights: str, devices: Sequence[str], limit_s: float) -> list[str]:
        return self._sender.invite(Path(weights), devices, limit_s)

    def send(self, weights: str) -> None:
        self._sender.send(Path(weights))


def broadcast_plane() -> Broadcast:
    """A plane whose sender is an actor of its own; needs a running Ray."""
    return Broadcast(RayWeightSender(ray.remote(Sending).options(num_cpus=0).remote()))
