"""The one interface between an episode and the world it runs in.

Owns the ``Environment`` protocol. Invariants: an environment serves one episode at a time; an act ends by the deadline
that the episode gives it, and names what stood still where it knows that (``Deadline.waiting_for``); ``evaluate`` is
called once, at the end; whatever goes wrong below it is raised as ``records.failures.EpisodeFailed`` with a typed
failure, never returned as an observation or a verdict. ``environments.contract`` checks all of this by running it.
"""

from __future__ import annotations

from typing import Protocol

from judges.interface import OpenVerdict
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task


class Grant:
    """The right to play one episode; an environment notes in it what its admission must know of the episode."""

    __slots__ = ()


class Environment(Protocol):
    """One place like a browser, in which one episode runs at a time."""

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        """Start an episode on a state of its own and return the first observation.

        ``grant`` is what the driver admitted the episode with (``environments.admission``), None where it admits all.
        """
        ...

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        """Apply one action other than ``exit`` and return what is there afterwards."""
        ...

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict | OpenVerdict:
        """Judge the episode; ``answer`` is the exit message, None when the agent never exited.

        It is also asked where the task seems to be at fault: a state that is gone is raised before the task is blamed.
        What the judge of its host leaves open is returned as it is: whoever asked settles it, when the environment may
        be playing the next episode already.
        """
        ...

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        """Return a PNG of the current page, or None where the environment has no pixels."""
        ...

    async def close(self) -> None:
        """Release everything; safe to call twice."""
        ...
