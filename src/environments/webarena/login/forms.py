"""How one logs in at each of WebArena's sites, as data.

Owns ``LoginForm`` and the table for the sites' published containers. Selectors are CSS and are only handed
to the browser. A site without an entry has no log-in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from environments.webarena.settings import LoginFormSettings


@dataclass(frozen=True, slots=True)
class LoginForm:
    """One site's log-in.

    ``path`` follows the site's base address; the form there is found by its password field, or first by its field for
    the user name where the password is asked for in a second step. ``logout`` matches the path by which one logs out:
    a page that has a link or a form to it is logged in. ``logged_out`` selects what only a logged-out page has.
    ``lifetime_s`` is how long a session lasts at most, in seconds, where its cookies do not say less. ``logged_in``
    selects something else that only a logged-in page has, and ``refused`` the message about a wrong log-in; both may
    be empty. A site that shows its form again has refused as well.
    """

    path: str
    logged_out: str
    logout: re.Pattern[str]
    lifetime_s: float
    logged_in: str = ""
    refused: str = ""

    @classmethod
    def of(cls, told: LoginFormSettings) -> LoginForm:
        """Return the form that the settings describe."""
        leads_out = re.compile(told.logout)
        return cls(told.path, told.logged_out, leads_out, told.lifetime_s, told.logged_in, told.refused)


LOGIN_FORMS: Mapping[str, LoginForm] = {
    "shopping": LoginForm(
        path="/customer/account/login/",
        logged_out='.authorization-link a[href*="/customer/account/login"]',
        logout=re.compile(r"/customer/account/logout"),
        lifetime_s=3000.0,
        refused=".message-error",
    ),
    "shopping_admin": LoginForm(
        path="",
        logged_out='form input[name="login[password]"]',
        logout=re.compile(r"/auth/logout"),
        lifetime_s=1800.0,
        refused=".message-error",
    ),
    "reddit": LoginForm(
        path="/login",
        logged_out='.site-nav a[href$="/login"]',
        logout=re.compile(r"^/logout"),
        lifetime_s=3000.0,
        refused=".alert--bad, .form-error-list",
    ),
    "gitlab": LoginForm(
        path="/users/sign_in",
        logged_out='.header-content a[href*="/users/sign_in"], form[action*="/users/sign_in"]',
        logout=re.compile(r"/users/sign_out"),
        lifetime_s=3000.0,
        logged_in=".header-user-avatar",
        refused=".flash-alert, .gl-alert-danger",
    ),
}
"""Paths and marks as in the templates of Magento, Postmill and GitLab; another theme may need its own entry."""
