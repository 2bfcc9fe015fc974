"""Which page made a process grow that all pages share.

Owns ``Blame`` and ``busiest``. Chromium's own process keeps blobs, databases and histories for every page, the GPU's
process pictures; neither says whose they are. Between two looks growth is divided among the renderers by the time that
they worked meanwhile. Invariants: blamed is the one that has most of what such a process grew by; growth that is over
is blamed on nobody. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SHARED = ("browser", "GPU")
_CALM = 0.25
"""Fixed: the part of the limit below which growth is a browser's usual and gone by the next look."""


@dataclass(frozen=True)
class Process:
    """A process of Chromium as it was at one look: what it holds in MB, and how many seconds it has worked so far."""

    pid: int
    kind: str
    held_mb: int
    worked_s: float


def busiest(before: Sequence[Process], after: Sequence[Process], least_s: float) -> int:
    """Return the renderer that worked most between two looks; 0 where none worked for ``least_s``."""
    began = {one.pid: one.worked_s for one in before}
    work = {one.pid: one.worked_s - began.get(one.pid, 0.0) for one in after if one.kind == "renderer"}
    most = max(work, key=work.__getitem__, default=0)
    return most if most and work[most] >= least_s else 0


class Blame:
    """Follows the processes of one Chromium from look to look; ``limit_mb`` is what a shared one may grow by."""

    def __init__(self, limit_mb: int) -> None:
        self._limit_mb = limit_mb
        self._worked: dict[int, float] = {}
        self._shared: dict[int, _Shared] = {}

    def look(self, processes: Sequence[Process]) -> tuple[int, str] | None:
        """Take one look; return the renderer to blame for a shared process that grew too much, and why."""
        before, self._worked = self._worked, {one.pid: one.worked_s for one in processes if one.kind == "renderer"}
        work = {pid: worked - before.get(pid, 0.0) for pid, worked in self._worked.items()}
        blamed = None
        for one in processes:
            if one.kind in SHARED:
                shared = self._shared.setdefault(one.pid, _Shared(one.held_mb, one.held_mb))
                grown_mb = shared.follow(one.held_mb, work, _CALM * self._limit_mb)
                if grown_mb > self._limit_mb and shared.shares:
                    pid = max(shared.shares, key=shared.shares.__getitem__)
                    blamed = pid, f"Chromium's {one.kind} process grew by {grown_mb} MB, mostly while the page worked"
                    # The memory of a page that is ended may take a while to come back.
                    shared.settle(one.held_mb)
        return blamed


@dataclass
class _Shared:
    """What a shared process usually holds, what it held at the last look, and whose the growth is, in MB."""

    usual_mb: int
    held_mb: int
    shares: dict[int, float] = field(default_factory=dict)

    def follow(self, held_mb: int, work: Mapping[int, float], calm_mb: float) -> int:
        """Divide what it has grown by since the last look, and return what it has grown by in all."""
        growth, self.held_mb = held_mb - self.held_mb, held_mb
        self.usual_mb = min(self.usual_mb, held_mb)
        if held_mb - self.usual_mb < calm_mb:
            self.shares.clear()
        whole = sum(work.values())
        for pid, worked in work.items() if growth > 0 and whole > 0 else ():
            self.shares[pid] = self.shares.get(pid, 0.0) + growth * worked / whole
        return held_mb - self.usual_mb

    def settle(self, held_mb: int) -> None:
        """Take what is held now as the usual, until less is."""
        self.usual_mb = held_mb
        self.shares.clear()
