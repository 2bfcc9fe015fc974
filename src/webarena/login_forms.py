"""How one logs in at each of WebArena's sites, as data.

Owns ``LoginForm`` and the table for the sites' published containers. Selectors are CSS and are only handed
to the browser. A site without an entry has no log-in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoginForm:
    """One site's log-in.

    ``path`` follows the site's base address. ``username`` and ``password`` select the fields; ``submit`` the
    button, or Enter is pressed in the password field where it is empty. ``logged_in`` selects something that only a
    logged-in page has, ``refused`` the message about wrong credentials (may be empty), ``logged_out`` what
    only a logged-out page has. ``logout`` matches the path by which one logs out. ``lifetime_s`` is how long a
    session lasts at most, in seconds, where its cookies do not say less.
    """

    path: str
    username: str
    password: str
    logged_in: str
    logged_out: str
    logout: re.Pattern[str]
    lifetime_s: float
    submit: str = ""
    refused: str = ""


LOGIN_FORMS: Mapping[str, LoginForm] = {
    "shopping": LoginForm(
        path="/customer/account/login/",
        username='.login-container input[name="login[username]"]',
        password='.login-container input[name="login[password]"]',
        logged_in='[href*="/customer/account/logout"]',
        logged_out='.authorization-link a[href*="/customer/account/login"]',
        logout=re.compile(r"/customer/account/logout"),
        lifetime_s=3000.0,
        refused=".message-error",
    ),
    "shopping_admin": LoginForm(
        path="",
        username='input[name="login[username]"]',
        password='input[name="login[password]"]',
        logged_in='[href*="/auth/logout"]',
        logged_out='form input[name="login[password]"]',
        logout=re.compile(r"/auth/logout"),
        lifetime_s=1800.0,
        refused=".message-error",
    ),
    "reddit": LoginForm(
        path="/login",
        username='input[name="_username"]',
        password='input[name="_password"]',
        logged_in='[href*="/logout"], [action*="/logout"]',
        logged_out='.site-nav a[href$="/login"]',
        logout=re.compile(r"^/logout"),
        lifetime_s=3000.0,
        refused=".alert--bad, .form-error-list",
    ),
    "gitlab": LoginForm(
        path="/users/sign_in",
        username='input[name="user[login]"]',
        password='input[name="user[password]"]',
        logged_in='.header-user-avatar, [href*="/users/sign_out"]',
        logged_out='.header-content a[href*="/users/sign_in"], form[action*="/users/sign_in"]',
        logout=re.compile(r"/users/sign_out"),
        lifetime_s=3000.0,
        refused=".flash-alert, .gl-alert-danger",
    ),
}
"""Written from the sites' own page sources; a changed theme needs its own entry."""
