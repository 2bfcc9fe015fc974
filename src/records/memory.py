"""One part of what a process holds in memory: the record behind the plan of ``waymark check``."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20
TORCH_PROCESS_MIB = 400
"""A process with torch and transformers loaded and no model (measured: 368 MiB, torch for CPUs)."""


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """``mib`` of memory at its peak and what it is for; ``on_gpu`` says whether a GPU holds it or the host."""

    name: str
    mib: int
    on_gpu: bool
    why: str

    @classmethod
    def of_bytes(cls, name: str, count: int, on_gpu: bool, why: str) -> MemoryPart:
        """Return a part of ``count`` bytes, rounded up to MiB."""
        return cls(name, -(-count // MIB), on_gpu, why)
