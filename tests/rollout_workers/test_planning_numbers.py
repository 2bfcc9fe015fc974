"""What planning did, in numbers: worked by hand over two recorded episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout_workers.planning.numbers import planning_numbers
from rollout_workers.planning.state import PlanFolder, PlanState, Usage
from rollout_workers.settings import PlanningSettings
from tests.replay.test_stuck import episode


async def test_shares_and_averages_are_over_episodes(tmp_path: Path) -> None:
    stalled = episode("abcdefg", [0, 1, 1, 1, 1, 1, 1, 1])
    slow = replace(stalled, episode_id="s", steps=tuple(replace(s, policy_s=0.1 * s.index) for s in stalled.steps))
    cyclic = replace(episode("aabcd", [0, 0, 1, 2, 3, 4]), episode_id="c")
    fine = replace(episode("abcd", [0, 1, 2, 3, 4], "done"), episode_id="f")
    folder = PlanFolder(tmp_path)
    numbers = planning_numbers([slow, cyclic, fine, fine], folder, PlanningSettings())
    assert numbers == {
        "stuck_share": 0.5,
        "cycle_share": 0.25,
        "stalls": 0.5,
        "cycles": 0.25,
        "decision_s_p50": 0.0,
        "decision_s_p95": pytest.approx(0.505),
    }
    await folder.save(PlanState(episode_id="c", replans=2, retries=3))
    await folder.save(PlanState(episode_id="f", usage=Usage(questions=4, thought=1, cost_usd=0.5)))
    planned = planning_numbers([slow, cyclic, fine], folder, PlanningSettings())
    assert (planned["replans"], planned["retries"]) == (1.0, 1.5)
    assert (planned["questions"], planned["thought"], planned["cost_usd"]) == (2.0, 0.5, 0.5)


def test_no_episode_gives_no_numbers(tmp_path: Path) -> None:
    assert planning_numbers([], PlanFolder(tmp_path), PlanningSettings()) == {}
