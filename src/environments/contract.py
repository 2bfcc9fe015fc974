"""The contract of ``Environment``, as a check that runs one.

Owns ``contract_points`` and ``check_environment``. Invariants: every environment passes it in the tests; it knows
nothing of how an environment is made; each broken promise is one line, and all of them are reported
together; every point ends, by a deadline if need be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from environments.environment import Environment
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.supervision import supervised

_PNG = b"\x89PNG\r\n\x1a\n"
_FAR = 999_999
_WANDERING = 6
POINT_DEADLINE_S = 120.0
"""Longest wait for one point where none is given, in seconds; ``waymark env check --deadline`` gives one."""


class ContractBroken(AssertionError):
    """An environment does not keep its promises; the message lists them."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the contract and what was found against it, one line each; kept where there is none."""

    promise: str
    broken: tuple[str, ...] = ()


async def check_environment(
    make_environment: Callable[[], Environment], task: Task, *, wandering: int = _WANDERING
) -> None:
    """Run ``contract_points`` over two environments and raise ``ContractBroken`` when a promise is not kept."""
    one, other = make_environment(), make_environment()
    broken = [line for point in await contract_points(one, other, task, wandering=wandering) for line in point.broken]
    if broken:
        raise ContractBroken("\n".join([f"{type(one).__name__} breaks its contract:", *broken]))


async def contract_points(
    one: Environment,
    other: Environment,
    task: Task,
    *,
    wandering: int = _WANDERING,
    deadline_s: float = POINT_DEADLINE_S,
) -> list[Point]:
    """Run two environments of one kind through ``task`` and return every point of the contract; closes both.

    ``wandering`` is the number of links and buttons that are tried; each point ends after
    ``deadline_s`` seconds. The task's start page must have at least one link or button; its evaluation must need
    no LLM judge. What an environment raises breaks the point it was raised in.
    """
    check = _Check(one, other, task, wandering, deadline_s)
    points = [
        ("a reset gives a first observation", check.reset),
        ("what is impossible is told and changes nothing", check.impossible_actions),
        ("elements can be acted on, and going back returns", check.wander),
        ("a second reset starts where the first one did", check.reset_again),
        ("two environments see nothing of each other", check.isolation),
        ("an episode is judged 0 or 1, with evidence", check.ending),
        ("an environment can be closed twice", check.close),
    ]
    return [await check.point(promise, work) for promise, work in points]


class _Check:
    def __init__(self, one: Environment, other: Environment, task: Task, wandering: int, deadline_s: float) -> None:
        self.one, self.other, self.task, self.wandering = one, other, task, wandering
        self.deadline_s = deadline_s
        self.broken: list[str] = []
        self._first: Observation | None = None

    async def point(self, promise: str, work: Callable[[], Coroutine[Any, Any, None]]) -> Point:
        """Run one point and return what was found."""
        self.broken = []
        raised: BaseException | None
        try:
            async with asyncio.timeout(self.deadline_s):
                raised = await supervised(work())
        except TimeoutError as error:
            raised = error
        if raised is not None:
            self._say(f"raised {type(raised).__name__}: {str(raised) or f'no end after {self.deadline_s:g} s'}")
        return Point(promise, tuple(self.broken))

    @property
    def first(self) -> Observation:
        """The first observation of the first reset."""
        if self._first is None:
            raise LookupError("not tried, because there was no first observation")
        return self._first

    async def reset(self) -> None:
        """An episode starts with an observation and nothing to tell."""
        self._first = await self.one.reset(self.task, seed=0, episode_id="contract-1", deadline=self._soon())
        self._observation(self.first, "reset")
        if self.first.feedback is not None:
            self._say(f"reset: expected no feedback, found {self.first.feedback!r}")

    async def reset_again(self) -> None:
        """Whatever happened meanwhile, an episode starts as the one before did."""
        again = await self.one.reset(self.task, seed=0, episode_id="contract-2", deadline=self._soon())
        self._same(self.first, again, "a second reset gives the same first observation")

    async def close(self) -> None:
        """Release everything; once more does no harm."""
        await self.one.close()
        await self.one.close()
        await self.other.close()

    async def impossible_actions(self) -> None:
        """What cannot be done is told, and nothing changes."""
        first = self.first
        tries = [Action(kind, element_id=_FAR, argument="x") for kind in ("click", "type", "select", "hover")]
        link = next((e for e in first.elements if e.role in ("link", "button")), None)
        if link is None:
            roles = [element.role for element in first.elements]
            self._say(f"reset: expected a link or a button on the task's start page, found {roles}")
        else:
            tries += [Action(kind, element_id=link.element_id, argument="x") for kind in ("type", "select")]
        tries += [Action("go_backward"), Action("go_forward"), Action("switch_tab", argument="7")]
        for action in tries:
            seen = await self.one.step(action, self._soon())
            self._observation(seen, action.kind)
            self._same(first, seen, f"{action.kind}, which is impossible here, leaves the page alone")
            if not seen.feedback:
                self._say(f"{action.kind}: expected feedback that it could not be done, found none")
            if not seen.refused:
                self._say(f"{action.kind}: expected refused=True where it could not be done, found False")
        for kind in ("wait", "scroll_down", "scroll_up", "press_enter"):
            self._observation(await self.one.step(Action(kind), self._soon()), kind)

    async def wander(self) -> None:
        """Every element can be acted on, and going back returns to the address one came from."""
        here = self.first
        for number in range(self.wandering):
            links = [e for e in here.elements if e.role in ("link", "button")]
            if not links:
                break
            element = links[(number * 7 + 1) % len(links)]
            there = await self.one.step(Action("click", element_id=element.element_id))
            self._observation(there, f"click on {element.role} {element.name!r}")
            for field in [e for e in there.elements if e.role in ("textbox", "searchbox")][:1]:
                typed = await self.one.step(Action("type", "abc", field.element_id))
                value = typed.elements[field.element_id].value
                if not value and not typed.feedback:
                    self._say(f"type into {field.name!r}: expected the text or feedback, found neither")
            if there.url != here.url and element.role == "link":
                back = await self.one.step(Action("go_backward"))
                if back.feedback is None and back.url != here.url:  # a link may have opened a tab without a past
                    self._say(f"go_backward from {there.url}: expected {here.url}, found {back.url}")
            here = await self.one.step(Action("wait"))

    async def isolation(self) -> None:
        """What happens in one environment is not seen in another."""
        theirs = await self.other.reset(self.task, seed=0, episode_id="contract-3", deadline=self._soon())
        self._same(self.first, theirs, "two environments start alike")
        here = await self.one.reset(self.task, seed=0, episode_id="contract-4", deadline=self._soon())
        for element in [e for e in here.elements if e.role in ("link", "button")][: self.wandering]:
            here = await self.one.step(Action("click", element_id=min(element.element_id, len(here.elements) - 1)))
        self._same(theirs, await self.other.step(Action("wait")), "another environment sees nothing of it")

    async def ending(self) -> None:
        """Episodes end with a verdict, and their last page can be drawn where there are pixels."""
        for answer in (None, "an answer that is surely wrong"):
            await self.one.reset(self.task, seed=0, episode_id="contract-5", deadline=self._soon())
            verdict = await self.one.evaluate(answer, self._soon())
            if not isinstance(verdict, Verdict) or verdict.outcome not in (0.0, 1.0):
                self._say(f"evaluate({answer!r}): expected a verdict of 0 or 1, found {verdict!r}")
            elif not verdict.evidence:
                self._say(f"evaluate({answer!r}): expected evidence, found none")
        picture = await self.one.screenshot(self._soon())
        if picture is not None and not picture.startswith(_PNG):
            self._say(f"screenshot: expected a PNG or None, found {picture[:8]!r}")

    def _soon(self) -> Deadline:
        return Deadline(self.deadline_s)

    def _observation(self, seen: Observation, what: str) -> None:
        """Check what holds for every observation."""
        lines = seen.text.split("\n")
        for number, element in enumerate(seen.elements):
            if element.element_id != number:
                self._say(f"{what}: expected element ids from 0 in order, found {element.element_id} at {number}")
            elif not any(f'id="{number}"' in line or line.rsplit(" ", 1)[-1] == str(number) for line in lines):
                self._say(f"{what}: element {number} ({element.role} {element.name!r}) is not in the text")
        if not seen.url.startswith("__"):
            self._say(f"{what}: expected a canonical url such as __SHOP__/…, found {seen.url!r}")
        if seen.page_text != " ".join(seen.page_text.split()):
            self._say(f"{what}: expected page_text with white space collapsed")
        if seen.feedback is not None and ("\n" in seen.feedback or not seen.feedback.strip()):
            self._say(f"{what}: expected feedback of one line, found {seen.feedback!r}")

    def _same(self, one: Observation, other: Observation, promise: str) -> None:
        if (one.text, one.url, one.elements) != (other.text, other.url, other.elements):
            self._say(f"{promise}: expected {one.url} with {one.text!r}, found {other.url} with {other.text!r}")

    def _say(self, line: str) -> None:
        self.broken.append(f"- {line}")
