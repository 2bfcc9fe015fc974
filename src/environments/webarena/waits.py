"""Whether the waits of a run fit together where its episodes wait for sites.

Owns ``waits_that_do_not_fit``. An episode may wait minutes for its sites to be reset: with the deadlines that do for
other environments it would fail while it is only waiting. A judge that is down must not look like a slow page. Pure.
"""

from __future__ import annotations

from environments.browser.settings import BrowserSettings
from environments.webarena.settings import WebArenaSettings
from judges.settings import JudgeSettings
from rollout_workers.settings import RolloutSettings


def waits_that_do_not_fit(
    rollout: RolloutSettings, browser: BrowserSettings, settings: WebArenaSettings, judge: JudgeSettings
) -> dict[str, str]:
    """Return what is wrong by the name of the setting: what was expected, why, and what was found."""
    starting_s = settings.lease_timeout_s + 2 * settings.login_timeout_s + browser.reset_timeout_s
    waits = "webarena's waits and browser.reset_timeout_s"
    at_least = {
        "rollout.reset_deadline_s": (rollout.reset_deadline_s, starting_s, waits),
        "rollout.episode_deadline_s": (
            rollout.episode_deadline_s,
            rollout.reset_deadline_s,
            "rollout.reset_deadline_s",
        ),
        "rollout.stall_timeout_s": (rollout.stall_timeout_s, rollout.episode_deadline_s, "rollout.episode_deadline_s"),
        "webarena.lease_hold_s": (settings.lease_hold_s, rollout.episode_deadline_s, "rollout.episode_deadline_s"),
    }
    if settings.judge:
        asking = (judge.deadline_s, "judge.deadline_s")
        at_least["rollout.judge_deadline_s"] = (rollout.judge_deadline_s, *asking)
        at_least["browser.evaluate_timeout_s"] = (browser.evaluate_timeout_s, *asking)
    return {
        name: f"expected at least {needed:g} s because of {why}, found {found:g} s"
        for name, (found, needed, why) in at_least.items()
        if found < needed
    }
