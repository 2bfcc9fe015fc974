"""The sender of published weights: it has the file, and broadcasts it to the servers that are invited.

Owns the meetings. Invariants: there is one at a time, and it is closed when its file is sent, when that failed, or when
the next is opened; nothing of the process's own groups is touched. Imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from policy.published_weights import TransferBroken
from policy.vllm.inside.waymark_broadcast import BrokenOff, Invitation, Meeting


class BroadcastSender:
    """Sends files of this machine from ``device``; receivers find it at ``host``, an address of this machine."""

    def __init__(self, device: torch.device | str, host: str) -> None:
        self._device, self._host = torch.device(device), host
        self._open: tuple[Meeting, Invitation] | None = None

    def invite(self, file: Path, devices: Sequence[str], limit_s: float) -> list[str]:
        """Open a meeting for as many receivers, which are on these kinds of device; return an invitation for each.

        They meet over NCCL where all, and the sender, are on GPUs.

        Raises:
            TransferBroken: there is no such file, or no port.
        """
        self._close()
        on_gpus = {self._device.type, *devices} == {"cuda"}
        try:
            length = file.stat().st_size
            meeting = Meeting(self._host, limit_s)
        except (OSError, RuntimeError) as error:
            raise TransferBroken(f"cannot send {file}: {error}") from error
        own = Invitation(
            self._host, meeting.port, 0, 1 + len(devices), "nccl" if on_gpus else "gloo", length, limit_s
        )  # fmt: skip
        self._open = meeting, own
        return [str(own.at(place)) for place in range(1, own.size)]

    def send(self, file: Path) -> None:
        """Send ``file`` to those that were invited last; return once all of them have it.

        Raises:
            TransferBroken: some have not; nobody was invited, or the file cannot be read.
        """
        if self._open is None:
            raise TransferBroken("nobody is invited to a broadcast")
        meeting, own = self._open
        try:
            meeting.send(file, own, self._device if own.backend == "nccl" else torch.device("cpu"))
        except (BrokenOff, OSError) as error:
            raise TransferBroken(str(error)) from error
        finally:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open[0].close()
            self._open = None
