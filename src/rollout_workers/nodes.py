"""What a pool is told of the cluster's nodes: which leave, which are gone, and whether it has to wait for one.

Owns the protocol ``Nodes`` and ``STEADY``, which is one machine. Must not import ray.
"""

from __future__ import annotations

from typing import Protocol

from records.roles import Role


class Nodes(Protocol):
    """The cluster's nodes as the driver sees them; answers at once, from what was last looked at."""

    def leaves_at(self, node: str) -> float | None:
        """Return when a node that has notice will be gone (monotonic seconds); None where it has none."""
        ...

    def gone(self, node: str) -> bool | None:
        """Whether a node is gone; None where that is not known yet."""
        ...

    def told_to_end(self, process: str) -> bool | None:
        """Whether a process that ended was told to (SIGTERM); None where that is not known yet.

        ``process`` is Ray's id of it.
        """
        ...

    def held_up(self) -> str:
        """Return why no episode can be played now although workers are ready; empty where they can."""
        ...

    def waiting(self, role: Role) -> int:
        """Return how many processes of a role wait for a node."""
        ...

    def check(self, role: Role) -> None:
        """Raise an error for the user where a role waits in vain, or has waited for too long."""
        ...


class _Steady:
    """Nodes that neither come nor go."""

    def leaves_at(self, node: str) -> float | None:
        return None

    def gone(self, node: str) -> bool | None:
        return False

    def told_to_end(self, process: str) -> bool | None:
        return False

    def held_up(self) -> str:
        return ""

    def waiting(self, role: Role) -> int:
        return 0

    def check(self, role: Role) -> None:
        return None


STEADY: Nodes = _Steady()
"""One machine, or a test's."""
