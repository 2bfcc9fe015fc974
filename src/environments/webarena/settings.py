"""What an environment over WebArena's containers can be told: where they are, how they are reset, how long to wait.

Owns ``WebArenaSettings`` and its parts. Invariants: every wait is finite; no password is ever here (see
``login.accounts``), because settings are written into run folders; imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urlsplit

from environments.webarena.sites.addresses import SITES as WEBARENA_NAMES
from records.bounds import one_of, times

_SITE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*(?<!_root)")
RESET_KINDS = ("none", "http", "command", "kubernetes")


@dataclass(frozen=True)
class ResetSettings:
    """How one deployment's sites are put back to their first state."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    kind: str = "none"
    """``http`` (a reset server), ``command``, ``kubernetes`` (new pods), or ``none``: then tasks that change a site are
    refused."""

    url: str = ""
    """Address of the reset server, such as ``http://host:7565``; it answers ``/reset`` and ``/status``."""

    command: tuple[str, ...] = ()
    """Program and arguments that reset the sites and end with 0 when these are ready; no shell reads them."""

    pods: str = ""
    """``module:name`` of a function that makes an ``environments.webarena.reset.kubernetes.Pods``, which restarts the
    sites' pods. Empty: the StatefulSets in the driver's namespace whose label ``webarena/deployment`` names the
    deployment."""

    timeout_s: float = 600.0
    """Longest wait for a reset, in seconds; with Docker it takes 3 to 5 minutes."""

    def __post_init__(self) -> None:
        one_of(self, "kind", RESET_KINDS)
        if self.kind == "http" and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"reset.url: expected an address such as http://host:7565, found {self.url!r}")
        if "@" in urlsplit(self.url).netloc:
            raise ValueError(
                "reset.url: expected an address without a password, found an '@' in it; it is shown in logs"
            )
        if self.kind == "command" and not self.command:
            raise ValueError("reset.command: expected a program and its arguments, found nothing")
        times(self)


@dataclass(frozen=True)
class DeploymentSettings:
    """One set of site containers that is reset as a whole."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str = "default"
    """Name in logs and host aliases: lower-case letters, digits and hyphens."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """Base address of each site, such as ``shopping: http://shop.test:7770``; the first deployment takes what is
    left out from the environment variables ``SHOPPING``, ``REDDIT`` and so on."""

    extra_origins: tuple[str, ...] = ()
    """Origins that pages may load from but the agent may not visit, such as the map's tile server."""

    reset: ResetSettings = ResetSettings()
    """How this deployment is reset."""

    def __post_init__(self) -> None:
        """Refuse passwords in addresses: settings are shown and kept in run folders."""
        for where, address in [*self.addresses.items(), *(("extra_origins", extra) for extra in self.extra_origins)]:
            if "@" in urlsplit(address).netloc:
                raise ValueError(f"{where}: expected an address without a password, found one with an account in it")


@dataclass(frozen=True)
class SiteSettings:
    """A site beside WebArena's own seven."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    read_only: bool = False
    """Whether an agent can leave nothing behind there, so that episodes never have it alone."""


@dataclass(frozen=True)
class LoginFormSettings:
    """How one logs in at a site whose form lies in a page; selectors are CSS."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    path: str = "/login"
    """Follows the site's base address; the form is found there by its password field."""

    logout: str = "/logout"
    """Regular expression for the path by which one logs out: a page that leads there is logged in."""

    logged_out: str = "input[type=password]"
    """Selects what only a page has that is not logged in."""

    logged_in: str = ""
    """Selects what only a logged-in page has, where no link leads to ``logout``."""

    refused: str = ""
    """Selects the message about a wrong log-in; a form that is shown again is a refusal as well."""

    lifetime_s: float = 1800.0
    """How long a session lasts at most, in seconds, where its cookies do not say less."""

    def __post_init__(self) -> None:
        times(self)
        try:
            re.compile(self.logout)
        except re.error as error:
            raise ValueError(f"logout: expected a regular expression, found {self.logout!r}: {error}") from error


@dataclass(frozen=True)
class WebArenaSettings:
    """Episodes on WebArena's own sites."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "deployments", "credentials_file", "lease_hold_s", "login_timeout_s", "login_load_timeout_s",
        "login_margin_s",
    )  # fmt: skip

    task_files: Mapping[str, str] = field(default_factory=dict)
    """WebArena's JSON task file of each split that the run uses, such as ``train`` and ``test``; ``start-pages`` in
    place of a file stands for tasks to look at the sites' start pages."""

    deployments: tuple[DeploymentSettings, ...] = (DeploymentSettings(),)
    """The sets of containers (``name``, ``addresses``, ``extra_origins``, ``reset``: see docs/environments.md);
    several of them play tasks that change a site side by side."""

    sites: Mapping[str, SiteSettings] = field(default_factory=dict)
    """Sites beside WebArena's own, by names such as ``wiki``: task files then say ``"sites": ["wiki"]`` and
    ``__WIKI__/page``, and ``deployments[].addresses`` or the variable ``WIKI`` says where it is."""

    login_forms: Mapping[str, LoginFormSettings] = field(default_factory=dict)
    """How one logs in at these sites, or at one of WebArena's that has another theme."""

    fresh_at_start: bool = False
    """Whether the sites are known to be in their first state; otherwise the first lease of each deployment that can
    be reset begins with a reset."""

    writes: Mapping[str, bool] = field(default_factory=dict)
    """Task ids for which the rule that tells changing from reading tasks is wrong, with the right answer."""

    credentials_file: str = ""
    """JSON file ``{"shopping": {"username": …, "password": …}}``; it is asked before ``SHOPPING_USERNAME``,
    ``SHOPPING_PASSWORD`` and so on."""

    lease_hold_s: float = 1800.0
    """Longest time that one episode may keep its sites, in seconds; past it they are taken back and reset."""

    login_timeout_s: float = 60.0
    """Longest wait for a logged-in session, in seconds."""

    login_load_timeout_s: float = 5.0
    """Longest wait for the scripts and pictures of a log-in page, in seconds; past it the form is looked for all the
    same, and what its scripts would have done with it is lost."""

    login_margin_s: float = 300.0
    """Life that a session must have left to be lent to an episode, in seconds; otherwise a new one is made."""

    def __post_init__(self) -> None:
        names = [deployment.name for deployment in self.deployments]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"deployments: expected at least one and different names, found {names}")
        for name in self.sites:
            if not _SITE.fullmatch(name) or name in WEBARENA_NAMES:
                raise ValueError(
                    f"sites: expected names such as wiki, of letters a-z, digits and single underscores, and none of "
                    f"{', '.join(WEBARENA_NAMES)}, found {name!r}"
                )
        if unknown := [name for name in self.login_forms if name not in (*WEBARENA_NAMES, *self.sites)]:
            raise ValueError(f"login_forms: {', '.join(unknown)}: no such site; name it in environments.webarena.sites")
        times(self, may_be_zero=("login_margin_s",))
