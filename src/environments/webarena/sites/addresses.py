"""Where WebArena's sites are: addresses from the configuration or the environment, and their placeholders.

Owns ``SiteAddresses``. Invariants: tasks and records hold placeholders (``__SHOPPING__/cart``) and only the
rim sees real addresses; a base address may have a path (the shop admin's usually ends in ``/admin``); a
missing address is an error that names the variable. Pure: opens no connection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from records.placeholders import placeholder

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
"""WebArena's sites; the environment variable of each is its name in capitals."""
_BROWSERGYM_PREFIX = "WA_"


class AddressError(ValueError):
    """A site's address is missing or cannot be an address."""


@dataclass(frozen=True, slots=True)
class SiteAddresses:
    """The base address of each known site, such as ``{"shopping": "http://shop.test:7770"}``.

    Bases are kept without a closing slash.

    Raises:
        AddressError: for a site that there is not, or an address without scheme and host.
    """

    bases: Mapping[str, str]
    names: tuple[str, ...] = SITES
    """The sites that there are."""

    def __post_init__(self) -> None:
        checked = {site: _checked(site, base, self.names) for site, base in self.bases.items()}
        object.__setattr__(self, "bases", checked)

    @classmethod
    def from_environment(
        cls,
        configured: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
        names: tuple[str, ...] = SITES,
    ) -> SiteAddresses:
        """Take each address from ``configured``, else from its variable (``SHOPPING``, else ``WA_SHOPPING``).

        Raises:
            AddressError: for a site that WebArena does not have, or an address that is none.
        """
        bases = dict(configured or {})
        for site in names:
            found = environ.get(variable(site)) or environ.get(_BROWSERGYM_PREFIX + variable(site))
            if found and site not in bases:
                bases[site] = found
        return cls(bases, names)


def variable(site: str) -> str:
    """Return the name of the environment variable that holds the address of ``site``."""
    return site.upper()


def placeholders(text: str, names: Sequence[str] = SITES) -> tuple[str, ...]:
    """Return the sites whose placeholders occur in ``text``, each once, in order."""
    found = re.findall(placeholder(f"({'|'.join(names)})"), text)
    return tuple(dict.fromkeys(site.lower() for site in found))


def _checked(site: str, base: str, names: tuple[str, ...]) -> str:
    if site not in names:
        raise AddressError(f"site: expected one of {', '.join(names)}, found {site!r}; correct the configuration")
    parts = urlsplit(base)
    if parts.username is not None or parts.password is not None:
        # Not quoted: it is shown in logs and kept in run folders.
        raise AddressError(f"{variable(site)}: expected an address without a password, found one with an account in it")
    if (
        parts.scheme not in ("http", "https")
        or not _port_is_one(parts)
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise AddressError(
            f"{variable(site)}: expected an address such as http://host:port, found {base!r}; correct the variable"
        )
    return base.rstrip("/")


def _port_is_one(parts: SplitResult) -> bool:
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False
