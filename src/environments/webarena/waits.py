"""Whether the waits of a run fit together where its episodes wait for sites.

Owns ``waits_that_do_not_fit``. A log-in takes longer than the start of an episode elsewhere, and while the sites are
reset nothing else may happen for minutes: with the deadlines that do for other environments a run would fail while it
is only waiting. Pure.
"""

from __future__ import annotations

from environments.kinds import Wanted
from environments.webarena.settings import WebArenaSettings

_RESET = "environments.webarena.deployments[].reset.timeout_s"


def waits_that_do_not_fit(settings: WebArenaSettings, wanted: Wanted) -> dict[str, str]:
    """Return what is wrong by the name of the setting: what was expected, why, and what was found."""
    starting_s = 2 * settings.login_timeout_s
    waits = "environments.webarena.login_timeout_s, twice"
    resets = [deployment.reset.timeout_s for deployment in settings.deployments if deployment.reset.kind != "none"]
    quiet_s, quiet = max([(wanted.episode_s, "rollout.episode_deadline_s"), *((s, _RESET) for s in resets)])
    hold = "environments.webarena.lease_hold_s"
    at_least = {
        "rollout.reset_deadline_s": (wanted.reset_s, starting_s, waits),
        "rollout.episode_deadline_s": (wanted.episode_s, wanted.reset_s, "rollout.reset_deadline_s"),
        "rollout.stall_timeout_s": (wanted.stall_s, quiet_s, quiet),
        hold: (settings.lease_hold_s, wanted.episode_s, "rollout.episode_deadline_s"),
    }
    return {
        name: f"expected at least {needed:g} s because of {why}, found {found:g} s"
        for name, (found, needed, why) in at_least.items()
        if found < needed
    }
