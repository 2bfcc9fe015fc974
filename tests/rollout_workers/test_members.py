"""What the pool does for each worker follows from what it last heard of it."""

from __future__ import annotations

from rollout_workers.members import Care, Member, MemberState
from rollout_workers.settings import RolloutSettings

SETTINGS = RolloutSettings(hang_timeout_s=10, replace_after_s=20, start_timeout_s=30)


def ready(now: float) -> Member:
    member = Member("worker-0", since=0.0)
    member.enter(MemberState.READY, now)
    return member


def test_a_new_member_is_started_once_and_then_waited_for() -> None:
    member = Member("worker-0", since=5.0)
    assert member.care(5.0, SETTINGS) is Care.START
    member.asked_to_start = True
    assert member.care(1000.0, SETTINGS) is Care.NOTHING


def test_a_member_whose_start_failed_waits_before_the_next_try() -> None:
    member = Member("worker-0", since=0.0, asked_to_start=True)
    member.enter(MemberState.STARTING, 7.0)
    assert member.care(6.9, SETTINGS) is Care.NOTHING
    assert member.care(7.0, SETTINGS) is Care.START


def test_a_restarted_member_that_does_not_start_is_killed() -> None:
    member = ready(0.0)
    member.enter(MemberState.STARTING, 50.0)
    member.asked_to_start = True
    assert member.care(80.0, SETTINGS) is Care.NOTHING
    assert member.care(80.1, SETTINGS) is Care.KILL


def test_silence_first_brings_a_question_and_then_the_end() -> None:
    member = ready(100.0)
    assert member.care(100.5, SETTINGS) is Care.NOTHING
    assert member.care(101.0, SETTINGS) is Care.HEARTBEAT
    member.last_asked = 101.0
    assert member.care(101.5, SETTINGS) is Care.NOTHING
    assert member.care(110.1, SETTINGS) is Care.KILL


def test_a_dead_member_gets_time_to_come_back_and_is_then_replaced() -> None:
    member = ready(0.0)
    member.enter(MemberState.DOWN, 100.0)
    assert member.care(120.0, SETTINGS) is Care.NOTHING
    assert member.care(120.1, SETTINGS) is Care.REPLACE


def test_a_member_that_ray_has_given_up_is_replaced_at_once() -> None:
    member = ready(0.0)
    member.gone = True
    member.enter(MemberState.DOWN, 100.0)
    assert member.care(100.0, SETTINGS) is Care.REPLACE
