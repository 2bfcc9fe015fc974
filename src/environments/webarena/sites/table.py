"""Which sites there are: WebArena's own, and those that a recipe adds in ``environments.webarena.sites``.

Owns ``SiteTable``. Invariant: every site has a name of its own, which is a placeholder's in lower case. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from environments.webarena.login.forms import LOGIN_FORMS, LoginForm
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.addresses import SITES

NEVER_CHANGED = ("map", "wikipedia", "homepage")
"""Sites of WebArena on which an agent has no account and can leave nothing behind."""


@dataclass(frozen=True, slots=True)
class SiteTable:
    """The names of all sites, those on which nothing can be changed, and how one logs in at the others."""

    names: tuple[str, ...]
    never_changed: tuple[str, ...]
    forms: Mapping[str, LoginForm]

    @classmethod
    def of(cls, settings: WebArenaSettings) -> SiteTable:
        """Return WebArena's sites and those that the settings add; a log-in of theirs takes the place of ours."""
        reading = (name for name, site in settings.sites.items() if site.read_only)
        forms = {name: LoginForm.of(told) for name, told in settings.login_forms.items()}
        return cls((*SITES, *settings.sites), (*NEVER_CHANGED, *reading), {**LOGIN_FORMS, **forms})


WEBARENA_SITES = SiteTable(SITES, NEVER_CHANGED, LOGIN_FORMS)
"""WebArena's own seven."""
