"""What a kind of pages adds to a browser slot.

Owns the ``World`` protocol. ``BrowserEnvironment`` owns the slot, the clock and what the agent does and sees; a world
gives the episode its sites and takes them back. Invariant: one instance serves one slot.
"""

from __future__ import annotations

from typing import Protocol

from environments.browser.interaction import Interaction
from environments.environment import Grant
from judges.interface import OpenVerdict
from records.environment import Action, Observation, Verdict
from records.episodes import Task


class World(Protocol):
    """The sites of one slot's episodes; whatever goes wrong there is raised as ``EpisodeFailed``.

    The act that is under way ends by ``pages.deadline``; a world names there what it waits for.
    """

    keeps_context: bool
    """Whether an episode's context stays for the next one to take over; else it is closed when the episode ends."""

    async def open(self, task: Task, pages: Interaction, grant: Grant | None) -> Observation:
        """Give the task a state of its own, the slot a context and its addresses, open the start pages and look.

        ``grant`` is what the driver admitted the episode with, None where it admits all.
        """
        ...

    async def step(self, action: Action, pages: Interaction) -> Observation:
        """Let the agent act, and look after what its action did to the world."""
        ...

    async def judge(self, task: Task, answer: str | None, pages: Interaction) -> Verdict | OpenVerdict:
        """Judge the episode."""
        ...

    async def close(self, *, judged: bool = False) -> None:
        """Give back what the episode holds, once its context is gone; ``judged`` where it ended with a verdict."""
        ...
