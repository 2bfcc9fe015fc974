"""Playing an application's tasks by scripts, each a list of what to do to what by its name.

Owns ``Move`` and ``play``. An element is found by its exact name, and by its role where a move says one; the last move
may be the answer. Invariant: what is played is an episode like any other, through the environment's own interface.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from environments.environment import Environment
from judges.interface import OpenVerdict
from records.environment import Action, Element, Observation, Verdict
from records.episodes import Task


@dataclass(frozen=True, slots=True)
class Move:
    """One thing to do: ``kind`` and ``text`` as an ``Action`` has them, and the target by ``name`` and ``role``.

    A ``name`` that ends with ``…`` is the beginning of one; ``to`` names the second element of a drag.
    """

    kind: str
    name: str = ""
    text: str | None = None
    role: str | None = None
    nth: int = 0
    to: str = ""

    def action(self, seen: Observation) -> Action:
        """Return the action on a page; raise ``LookupError`` where the element is not there."""
        number = found(seen, self.name, self.role, self.nth).element_id if self.name else None
        text = str(found(seen, self.to, None, 0).element_id) if self.to else self.text
        return Action(self.kind, text, number)


def found(seen: Observation, name: str, role: str | None, nth: int) -> Element:
    """Return the element that a move names."""
    if not name.endswith("…"):
        return seen.find(name, role, nth)
    hits = [e for e in seen.elements if e.name.startswith(name[:-1]) and role in (None, e.role)]
    if nth >= len(hits):
        raise LookupError(f"no element {name!r} (role {role}, nth {nth}) on {seen.url}:\n{seen.text}")
    return hits[nth]


_MOVE = re.compile(
    r"(?P<kind>[a-z_]+)(?: (?P<role>[a-z]+):)?(?: (?P<name>[^=]*?))?(?: \[(?P<nth>\d+)\])?(?: = (?P<text>.*))?"
)


def moves(script: str) -> tuple[Move, ...]:
    """Read a script, a move a line: ``kind role: name [nth] = text``, where all but the kind may be left out.

    ``drag name = other`` drags to another element.
    """
    made = []
    for line in filter(None, map(str.strip, script.splitlines())):
        parts = _MOVE.fullmatch(line)
        if parts is None:
            raise ValueError(f"expected kind role: name [nth] = text, found {line!r}")
        kind, text = parts["kind"], parts["text"]
        text = None if text is None else text.replace("\\n", "\n")
        to = (text or "") if kind == "drag" else ""
        told = None if kind == "drag" else text
        made.append(Move(kind, parts["name"] or "", told, parts["role"], int(parts["nth"] or 0), to))
    return tuple(made)


@dataclass(slots=True)
class Played:
    """An episode: its verdict, the pages that were seen, and the milliseconds of each step."""

    verdict: Verdict
    seen: list[Observation] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)


Look = Callable[[Observation, Action | None], Awaitable[None]]
"""Called with each page that an episode shows, and with the action that is about to be done there."""


async def play(env: Environment, task: Task, script: Sequence[Move], look: Look | None = None) -> Played:
    """Play an episode by its script; nothing is done where the script is empty."""
    seen = await env.reset(task)
    played, answer = Played(Verdict(0.0), [seen]), None
    for move in script:
        if move.kind == "exit":
            answer = move.text
            break
        action = move.action(seen)
        if look is not None:
            await look(seen, action)
        started = time.perf_counter()
        seen = await env.step(action)
        played.step_ms.append(1000 * (time.perf_counter() - started))
        played.seen.append(seen)
    if look is not None:
        await look(seen, None)
    verdict = await env.evaluate(answer)
    if isinstance(verdict, OpenVerdict):
        raise RuntimeError(f"{task.task_id}: asks a judge of meaning")
    played.verdict = verdict
    return played
