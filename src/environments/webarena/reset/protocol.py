"""Putting a deployment's sites back to their first state: what every way of doing it promises.

Owns the ``Resetter`` protocol. Invariant: a reset ends within its deadline, well or as
``EpisodeFailed(infra/reset_failed)`` with what was seen.
"""

from __future__ import annotations

from typing import Protocol

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure


class Resetter(Protocol):
    """Resets one deployment."""

    async def reset(self, deployment: str) -> None:
        """Return when the sites are in their first state and answer again.

        Raises:
            EpisodeFailed: ``infra/reset_failed``.
        """
        ...


def reset_failed(detail: str) -> EpisodeFailed:
    """Return the failure of a reset."""
    return EpisodeFailed(Failure(codes.RESET_FAILED, detail))
