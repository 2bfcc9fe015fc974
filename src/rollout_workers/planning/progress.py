"""Progress as a critic beside the agent sees it.

Owns ``CriticProgress``. Invariant: the critic reads the policy's own prompt, as it did when it was trained.
"""

from __future__ import annotations

import asyncio

from policy.potential import PotentialModel
from rollout_workers.agent import DecisionWriter, Turn


class CriticProgress:
    """Asks ``critic`` about the states of one episode, in the prompts of ``writer``."""

    def __init__(self, critic: PotentialModel, writer: DecisionWriter) -> None:
        self._critic = critic
        self._writer = writer

    async def of(self, turn: Turn) -> float:
        """Return the potential of a turn's state in [0, 1]; raise ``PromptTooLong`` where its prompt has no room."""
        (answer,) = await asyncio.to_thread(self._critic.ask, [self._writer.prompt(turn).ids])
        return float(answer)
