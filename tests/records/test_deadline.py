"""One clock for an act: it is handed down, and what stood still when it ran out gives the failure its code."""

import asyncio

import pytest

from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

pytestmark = pytest.mark.asyncio


async def forever() -> None:
    await asyncio.Event().wait()


async def failure_of(work) -> Failure:
    async with asyncio.timeout(10):
        with pytest.raises(EpisodeFailed) as raised:
            await work
    return raised.value.failure


async def test_an_act_without_named_parts_fails_as_its_deadline_says() -> None:
    deadline = Deadline(0.05, codes.JUDGE_DEADLINE, "rollout.judge_deadline_s", what="the verdict")
    failure = await failure_of(deadline.run(forever()))
    assert failure == Failure(codes.JUDGE_DEADLINE, "the verdict: not done within 0.05 s (rollout.judge_deadline_s)")


@pytest.mark.parametrize("nested", [False, True], ids=["one timer", "a timer in a timer"])
async def test_the_innermost_part_that_is_waited_for_names_the_failure(nested: bool) -> None:
    deadline = Deadline(0.05, codes.JUDGE_DEADLINE, what="the verdict")

    async def judge() -> None:
        look = deadline.waiting_for(codes.STEP_TIMEOUT, "the look at the page")
        with look, deadline.waiting_for(codes.SITE_UNREACHABLE, "the sites' server"):
            await (deadline.run(forever()) if nested else forever())

    assert await failure_of(deadline.run(judge())) == Failure(
        codes.SITE_UNREACHABLE, "the sites' server: not done within 0.05 s"
    )


async def test_a_part_that_is_over_is_not_blamed() -> None:
    deadline = Deadline(0.7, what="the step")

    async def step() -> None:
        with deadline.waiting_for(codes.SITE_UNREACHABLE, "the sites' server"):
            await asyncio.sleep(0)
        with pytest.raises(OSError), deadline.waiting_for(codes.LOGIN_FAILED, "the log-in"):
            raise OSError
        await forever()

    assert (await failure_of(deadline.run(step()))).code is codes.STEP_TIMEOUT


async def test_a_part_that_used_up_the_time_is_named_although_it_ended_itself() -> None:
    deadline = Deadline(0.1, what="the verdict")

    async def verdict() -> None:
        with pytest.raises(OSError), deadline.waiting_for(codes.JUDGE_TIMEOUT, "the judge"):
            raise OSError
        await forever()

    assert (await failure_of(deadline.run(verdict()))).code is codes.JUDGE_TIMEOUT


async def test_a_wait_gets_the_smaller_of_its_own_limit_and_what_is_left() -> None:
    deadline = Deadline(0.1)
    assert deadline.left(60.0) <= 0.1
    assert deadline.left(0.01) == 0.01
    await asyncio.sleep(0.15)
    assert deadline.left() == 0.0


async def test_somebody_elses_time_out_and_cancellation_are_not_the_deadlines() -> None:
    async def impatient() -> None:
        raise TimeoutError("another clock")

    with pytest.raises(TimeoutError, match="another clock"):
        await Deadline(10).run(impatient())
    work = asyncio.ensure_future(Deadline(10).run(forever()))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
