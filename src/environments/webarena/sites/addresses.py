"""Where WebArena's sites are: addresses from the configuration or the environment, and their placeholders.

Owns ``SiteAddresses``. Invariants: tasks and records hold placeholders (``__SHOPPING__/cart``) and only the
rim sees real addresses; a base address may have a path (the shop admin's usually ends in ``/admin``); a
missing address is an error that names the variable. Pure: opens no connection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from records.placeholders import canonical, origin, placeholder, site_under

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage")
"""WebArena's sites; the environment variable of each is its name in capitals."""
_BROWSERGYM_PREFIX = "WA_"
_PLACEHOLDER = re.compile(placeholder("(" + "|".join(SITES) + ")"))


class AddressError(ValueError):
    """A site's address is missing or cannot be an address."""


@dataclass(frozen=True, slots=True)
class SiteAddresses:
    """The base address of each known site, such as ``{"shopping": "http://shop.test:7770"}``.

    Bases are kept without a closing slash.

    Raises:
        AddressError: for a site that WebArena does not have, or an address without scheme and host.
    """

    bases: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bases", {site: _checked(site, base) for site, base in self.bases.items()})

    @classmethod
    def from_environment(
        cls,
        sites: Iterable[str] = (),
        configured: Mapping[str, str] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> SiteAddresses:
        """Take each address from ``configured``, else from its variable (``SHOPPING``, else ``WA_SHOPPING``).

        ``sites`` are those that must be there; others may be absent.

        Raises:
            AddressError: naming every variable that is missing, or an address that is none.
        """
        bases = dict(configured or {})
        for site in SITES:
            found = environ.get(variable(site)) or environ.get(_BROWSERGYM_PREFIX + variable(site))
            if found and site not in bases:
                bases[site] = found
        addresses = cls(bases)
        addresses.require(sites)
        return addresses

    def require(self, sites: Iterable[str]) -> None:
        """Raise ``AddressError`` naming the variables of those ``sites`` that have no address."""
        missing = [variable(site) for site in dict.fromkeys(sites) if site not in self.bases]
        if missing:
            raise AddressError(
                f"expected addresses of the sites {', '.join(missing)}, found none; set the environment "
                f"variable{'s' if len(missing) > 1 else ''} {', '.join(missing)} (such as "
                f"{missing[0]}=http://host:port) or the same in the configuration"
            )

    def real(self, text: str) -> str:
        """Replace every placeholder in ``text`` by its site's base; raise ``AddressError`` where one has none."""
        self.require(placeholders(text))
        return _PLACEHOLDER.sub(lambda found: self.bases[found[1].lower()], text)

    def canonical(self, url: str) -> str:
        """Replace the base under which ``url`` lies by its placeholder; other addresses stay as they are."""
        return canonical(self.bases, url)

    def site_of(self, url: str) -> str | None:
        """Return the site under whose base ``url`` lies (the longest base wins), None for a foreign address."""
        return site_under(self.bases, url)

    def origins(self, sites: Iterable[str]) -> frozenset[str]:
        """Return scheme, host and port of ``sites``, for allow-lists; raise ``AddressError`` where one has none."""
        wanted = tuple(sites)
        self.require(wanted)
        return frozenset(origin(self.bases[site]) for site in wanted)


def variable(site: str) -> str:
    """Return the name of the environment variable that holds the address of ``site``."""
    return site.upper()


def placeholders(text: str) -> tuple[str, ...]:
    """Return the sites whose placeholders occur in ``text``, each once, in order."""
    return tuple(dict.fromkeys(site.lower() for site in _PLACEHOLDER.findall(text)))


def _checked(site: str, base: str) -> str:
    if site not in SITES:
        raise AddressError(f"site: expected one of {', '.join(SITES)}, found {site!r}; correct the configuration")
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
