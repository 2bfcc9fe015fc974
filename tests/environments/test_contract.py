"""The contract check finds environments that break their promises."""

from dataclasses import replace

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from environments.contract import ContractBroken, check_environment
from environments.environment import Grant
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from tests.environments.lab_site import lab_app, lab_task


class Silent(BrowserlessEnvironment):
    """Tells the agent nothing."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        return replace(await super().step(action, deadline), feedback=None)


class Obliging(BrowserlessEnvironment):
    """Tells what could not be done, and says that it was done."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        return replace(await super().step(action, deadline), refused=False)


class Renumbering(BrowserlessEnvironment):
    """Numbers elements from one."""

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        seen = await super().reset(task, seed=seed, episode_id=episode_id, deadline=deadline)
        return replace(seen, elements=tuple(replace(e, element_id=e.element_id + 1) for e in seen.elements))


class Leaking(BrowserlessEnvironment):
    """Starts a second episode where the first one ended."""

    started = False

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        if self.started:
            return await self.step(Action("wait"), deadline)
        self.started = True
        return await super().reset(task, seed=seed, episode_id=episode_id, deadline=deadline)


class RealAddresses(BrowserlessEnvironment):
    """Shows real addresses."""

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        seen = await super().step(action, deadline)
        return replace(seen, url=seen.url.replace("__LAB__", "http://lab.localhost"))


class Undecided(BrowserlessEnvironment):
    """Gives half a verdict."""

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict:
        return Verdict(0.5, ("perhaps",))


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Silent, "expected feedback that it could not be done, found none"),
        (Obliging, "expected refused=True where it could not be done, found False"),
        (Renumbering, "expected element ids from 0 in order, found 1 at 0"),
        (Leaking, "a second reset gives the same first observation"),
        (RealAddresses, "expected a canonical url"),
        (Undecided, "expected a verdict of 0 or 1"),
    ],
)
async def test_a_broken_promise_is_named(kind: type[BrowserlessEnvironment], complaint: str) -> None:
    app = lab_app()
    with pytest.raises(ContractBroken, match=complaint) as caught:
        await check_environment(lambda: kind(app), lab_task())
    assert str(caught.value).startswith(f"{kind.__name__} breaks its contract:")


async def test_an_environment_that_keeps_it_passes() -> None:
    app = lab_app()
    await check_environment(lambda: BrowserlessEnvironment(app), lab_task())
