"""The contract of ``Environment``, as a check that runs one.

Owns ``check_environment``. Invariants: every environment passes it in the tests; it knows nothing of
how an environment is made. Each broken promise is one line; all of them are reported together.
"""

from __future__ import annotations

from collections.abc import Callable

from replay.records import Task
from rollout_workers.environment import Action, Environment, Observation, Verdict

_PNG = b"\x89PNG\r\n\x1a\n"
_FAR = 999_999
_WANDERING = 6


class ContractBroken(AssertionError):
    """An environment does not keep its promises; the message lists them."""


async def check_environment(
    make_environment: Callable[[], Environment], task: Task, *, wandering: int = _WANDERING
) -> None:
    """Run two environments through ``task`` and raise ``ContractBroken`` when a promise is not kept.

    ``wandering`` is the number of links and buttons that are tried. The task's start page must have at
    least one link; its evaluation must need no judge of meaning.
    """
    check = _Check(make_environment(), make_environment(), task, wandering)
    try:
        await check.run()
    finally:
        await check.one.close()
        await check.one.close()
        await check.other.close()
    if check.broken:
        raise ContractBroken("\n".join([f"{type(check.one).__name__} breaks its contract:", *check.broken]))


class _Check:
    def __init__(self, one: Environment, other: Environment, task: Task, wandering: int) -> None:
        self.one, self.other, self.task, self.wandering = one, other, task, wandering
        self.broken: list[str] = []

    async def run(self) -> None:
        first = await self.one.reset(self.task, seed=0, episode_id="contract-1")
        self._observation(first, "reset")
        if first.notice is not None:
            self._say(f"reset: expected no notice, found {first.notice!r}")
        await self._impossible_actions(first)
        await self._wander(first)
        again = await self.one.reset(self.task, seed=0, episode_id="contract-2")
        self._same(first, again, "a second reset gives the same first observation")
        await self._isolation(first)
        await self._ending()

    async def _impossible_actions(self, first: Observation) -> None:
        """What cannot be done is told, and nothing changes."""
        tries = [Action(kind, element_id=_FAR, argument="x") for kind in ("click", "type", "select", "hover")]
        link = next((e for e in first.elements if e.role == "link"), None)
        if link is None:
            self._say(f"reset: expected a link on the task's start page, found {[e.role for e in first.elements]}")
        else:
            tries += [Action(kind, element_id=link.element_id, argument="x") for kind in ("type", "select")]
        tries += [Action("go_backward"), Action("go_forward"), Action("switch_tab", argument="7")]
        for action in tries:
            seen = await self.one.step(action)
            self._observation(seen, action.kind)
            self._same(first, seen, f"{action.kind}, which is impossible here, leaves the page alone")
            if not seen.notice:
                self._say(f"{action.kind}: expected a notice that it could not be done, found none")
        for kind in ("wait", "scroll_down", "scroll_up", "press_enter"):
            self._observation(await self.one.step(Action(kind)), kind)

    async def _wander(self, first: Observation) -> None:
        """Every element can be acted on, and going back returns to the address one came from."""
        here = first
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
                if not value and not typed.notice:
                    self._say(f"type into {field.name!r}: expected the text or a notice, found neither")
            if there.url != here.url and element.role == "link":
                back = await self.one.step(Action("go_backward"))
                if back.notice is None and back.url != here.url:  # a link may have opened a tab without a past
                    self._say(f"go_backward from {there.url}: expected {here.url}, found {back.url}")
            here = await self.one.step(Action("wait"))

    async def _isolation(self, first: Observation) -> None:
        """What happens in one environment is not seen in another."""
        theirs = await self.other.reset(self.task, seed=0, episode_id="contract-3")
        self._same(first, theirs, "two environments start alike")
        here = await self.one.reset(self.task, seed=0, episode_id="contract-4")
        for element in [e for e in here.elements if e.role in ("link", "button")][: self.wandering]:
            here = await self.one.step(Action("click", element_id=min(element.element_id, len(here.elements) - 1)))
        self._same(theirs, await self.other.step(Action("wait")), "another environment sees nothing of it")

    async def _ending(self) -> None:
        for answer in (None, "an answer that is surely wrong"):
            await self.one.reset(self.task, seed=0, episode_id="contract-5")
            verdict = await self.one.evaluate(answer)
            if not isinstance(verdict, Verdict) or verdict.outcome not in (0.0, 1.0):
                self._say(f"evaluate({answer!r}): expected a verdict of 0 or 1, found {verdict!r}")
            elif not verdict.evidence:
                self._say(f"evaluate({answer!r}): expected evidence, found none")
        picture = await self.one.screenshot()
        if picture is not None and not picture.startswith(_PNG):
            self._say(f"screenshot: expected a PNG or None, found {picture[:8]!r}")

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
        if seen.notice is not None and ("\n" in seen.notice or not seen.notice.strip()):
            self._say(f"{what}: expected a notice of one line, found {seen.notice!r}")

    def _same(self, one: Observation, other: Observation, promise: str) -> None:
        if (one.text, one.url, one.elements) != (other.text, other.url, other.elements):
            self._say(f"{promise}: expected {one.url} with {one.text!r}, found {other.url} with {other.text!r}")

    def _say(self, line: str) -> None:
        self.broken.append(f"- {line}")
