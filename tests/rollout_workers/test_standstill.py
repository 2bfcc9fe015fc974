"""When an agent stands still: what counts as the same, and what it costs an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from records.environment import Action, Element
from records.episodes import Source, Termination
from rollout_workers.settings import RolloutSettings
from rollout_workers.standstill import Standstill
from tests.rollout_workers.test_episode import BACK, CLICK, EXIT, SETTINGS, SPEC, TASK, Replies, TwoPages, run

LAMP, CHAIR, FIELD = Element(4, "link", "Lamp"), Element(5, "link", "Chair"), Element(9, "textbox", "Search")
DOWN, UP = (Action("scroll_down"), None), (Action("scroll_up"), None)
UNREAD = (None, None)


def click(element: Element, number: int | None = None) -> tuple[Action, Element]:
    shown = replace(element, element_id=element.element_id if number is None else number)
    return Action("click", element_id=shown.element_id), shown


def search(text: str) -> tuple[Action, Element]:
    return Action("search", text, FIELD.element_id), FIELD


def ends_at(said: Sequence[tuple[Action | None, Element | None]], repeats: int = 3, unread: int = 2) -> int | None:
    """The number of the reply, from 1, with which the episode ends."""
    standstill = Standstill(repeats, unread)
    return next((number for number, one in enumerate(said, 1) if standstill.hear(*one)), None)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ([DOWN] * 5, 3),
        ([DOWN, DOWN, UP, DOWN, DOWN], None),
        ([DOWN, UP] * 5, None),
        ([click(LAMP)] * 5, 3),
        ([click(LAMP, 1), click(LAMP, 2), click(LAMP, 3)], 3),  # other numbers, the same link
        ([click(LAMP), click(CHAIR), click(LAMP), click(LAMP)], None),
        ([(Action("click", element_id=77), None)] * 4, 3),  # nothing there has this number
        ([(Action("click", element_id=n), None) for n in (77, 78, 77, 78)], None),
        ([search("lamp")] * 4, 3),
        ([search("lamp"), DOWN, search("lamp"), click(CHAIR), search("lamp")], 5),
        ([search("lamp"), search("chair"), search("desk"), search("bed")], None),
        ([(Action("press_key", key), None) for key in ("Tab", "Tab", "Enter", "Tab")], None),
        ([(Action("wait"), None)] * 3, 3),
        ([UNREAD] * 3, 2),
        ([UNREAD, DOWN] * 3, None),
        ([DOWN, DOWN, UNREAD, DOWN], None),
        ([(Action("wait", note=note), None) for note in "abc"], 3),  # what it notes meanwhile moves nothing
    ],
)
def test_the_same_again_and_no_action_at_all_are_counted(
    said: Sequence[tuple[Action | None, Element | None]], end: int | None
) -> None:
    assert ends_at(said) == end


def test_nothing_ends_what_has_no_limit() -> None:
    assert ends_at([DOWN] * 50, repeats=0) is None
    assert ends_at([UNREAD] * 50, unread=0) is None
    assert ends_at([UNREAD] * 3, repeats=0) == 2
    assert ends_at([DOWN] * 3, unread=0) == 3


LONG = replace(SPEC, task=replace(TASK, max_steps=9))
LIMITED = replace(SETTINGS, max_repeats=3, max_unread=2, final_state=True)


@pytest.mark.parametrize(("said", "steps"), [(BACK, 3), ("nonsense", 2)])
async def test_an_episode_that_stands_still_ends_and_is_judged_without_an_answer(said: str, steps: int) -> None:
    env = TwoPages()
    played = await run(env, Replies([CLICK, *[said] * 8]), LONG, LIMITED)
    assert (played.termination, played.outcome, played.answer) == (Termination.STANDSTILL, 0.0, None)
    assert len(played.steps) == 1 + steps
    assert env.judged == [None]
    assert played.final_state is not None
    assert len(env.actions) == 1 + (steps if said == BACK else 0), "the last action was carried out"


async def test_one_that_comes_free_goes_on() -> None:
    played = await run(TwoPages(), Replies([BACK, BACK, "nonsense", BACK, BACK, EXIT]), LONG, LIMITED)
    assert (played.termination, played.outcome, len(played.steps)) == (Termination.EXIT, 1.0, 6)


async def test_without_limits_and_in_demonstrations_it_plays_to_its_last_step() -> None:
    for spec, settings in ((LONG, SETTINGS), (replace(LONG, source=Source.DEMONSTRATION), LIMITED)):
        played = await run(TwoPages(), Replies([BACK] * 9), spec, settings)
        assert (played.termination, len(played.steps)) == (Termination.MAX_STEPS, 9)


@pytest.mark.parametrize("wrong", [{"max_repeats": 1}, {"max_repeats": -1}, {"max_unread": -1}])
def test_a_limit_that_every_episode_would_reach_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RolloutSettings(**wrong)
