"""Which addresses an episode on WebArena's sites may reach, and under which names the browser knows them.

Owns ``Deployment`` and ``WebArenaAddresses``. Invariants: an episode reaches the origins of its task's sites and
no others; two sites whose session cookies have one name never share a host name in one episode, because
cookies do not tell ports apart; records only see placeholders. Pure: opens no connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from environments.addresses import EpisodeAddresses, proxy_bypass
from environments.webarena.sites.addresses import SiteAddresses
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.placeholders import origin, placeholder, site_under

SAME_SESSION_COOKIE = ("shopping", "reddit")
"""Sites that both keep their session in the cookie ``PHPSESSID``."""
FOLLOWS_ITS_NAME = ("reddit",)
"""Sites among them that write their links relative to the name they were asked under, so that they take an alias."""
_ALIAS_SUFFIX = "webarena.test"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_ROOT = "_root"
_PORTS = {"http": 80, "https": 443}


class WebArenaAddresses(EpisodeAddresses):
    """The base addresses of one episode's sites, and the origins that its pages may also load from.

    A base may have a path (``http://shop.test:7780/admin``). What lies on its origin but outside that path is
    written ``__SHOPPING_ADMIN_ROOT__/…``.
    """

    def __init__(self, bases: Mapping[str, str], extra_origins: Iterable[str] = ()) -> None:
        roots = {f"{site}{_ROOT}": origin(base) for site, base in bases.items() if urlsplit(base).path.strip("/")}
        super().__init__({**bases, **roots})
        self._extra = tuple(origin(extra) for extra in extra_origins)
        longest = sorted(self.bases.items(), key=lambda item: (-len(item[1]), item[0].endswith(_ROOT)))
        self._by_length = tuple(longest)

    @property
    def bypass(self) -> str:
        """Chromium's proxy bypass list: everything else goes to a proxy that refuses."""
        return proxy_bypass(_with_port(found) for found in (*self.origins, *self._extra))

    def site_of(self, url: str) -> str | None:
        """Return the site under whose base, else on whose origin ``url`` lies, None for a foreign address."""
        site = site_under(self.bases, url)
        return site and site.removesuffix(_ROOT)

    def canonical_text(self, text: str) -> str:
        """Replace the base addresses inside a text, such as a page's HTML or an answer, by placeholders."""
        for site, base in self._by_length:
            text = re.sub(re.escape(base) + r"(?![\w-]|[.:]\w)", placeholder(site), text)
        return text


@dataclass(frozen=True)
class Deployment:
    """One set of sites: ``addresses`` as the browser asks for them, and ``real_addresses`` for everybody else.

    ``aliases`` lead from the browser's made-up host names to real ones.
    """

    name: str
    addresses: SiteAddresses
    real_addresses: SiteAddresses
    aliases: Mapping[str, str]
    extra_origins: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, addresses: SiteAddresses, extra_origins: Iterable[str] = ()) -> Deployment:
        """Give a site that would clash with another on its host name an alias, where it can have one.

        Raises:
            ValueError: for a name that cannot be part of a host name.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"deployment name: expected letters a-z, digits and inner hyphens, found {name!r}")
        bases = {site: _as_browsers_write(base) for site, base in addresses.bases.items()}
        aliases: dict[str, str] = {}
        for first, second in clashes(bases):
            site = next((s for s in (second, first) if s in FOLLOWS_ITS_NAME), None)
            parts = urlsplit(bases[site]) if site else None
            if site is None or parts is None or parts.scheme != "http":
                continue  # a certificate would not name the alias; tasks with both sites are refused
            alias = f"{site}.{name}.{_ALIAS_SUFFIX}"
            aliases[alias] = parts.hostname or ""
            bases[site] = f"http://{alias}:{parts.port or _PORTS['http']}{parts.path}".rstrip("/")
        return cls(name, replace(addresses, bases=bases), addresses, aliases, tuple(extra_origins))


def clashes(bases: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of sites that share a host name and the name of their session cookie."""
    sharing = [site for site in SAME_SESSION_COOKIE if site in bases]
    pairs = [(a, b) for index, a in enumerate(sharing) for b in sharing[index + 1 :]]
    return [(a, b) for a, b in pairs if urlsplit(bases[a]).hostname == urlsplit(bases[b]).hostname]


def episode_addresses(sites: Mapping[str, Deployment]) -> WebArenaAddresses:
    """Return the addresses of an episode that has each of ``sites`` from this deployment.

    Raises:
        EpisodeFailed: ``task/hosts_clash`` when two of the sites would overwrite each other's session cookie.
    """
    bases = {site: deployment.addresses.bases[site] for site, deployment in sites.items()}
    for a, b in clashes(bases):
        detail = (
            f"{a} and {b} are both on {urlsplit(bases[a]).hostname} and would overwrite each other's cookie PHPSESSID; "
            "give them different host names (two DNS names of one machine are enough)"
        )
        raise EpisodeFailed(Failure(codes.HOSTS_CLASH, detail))
    extra = {found for deployment in sites.values() for found in deployment.extra_origins}
    return WebArenaAddresses(bases, sorted(extra))


def resolver_rules(deployments: Iterable[Deployment]) -> str:
    """Return Chromium's host resolver rules: aliases lead to real hosts, and names of no deployment do not resolve."""
    rules: list[str] = []
    known: set[str | None] = set()
    for deployment in deployments:
        rules += [f"MAP {alias} {real}" for alias, real in deployment.aliases.items()]
        known.update(urlsplit(base).hostname for base in deployment.addresses.bases.values())
        known.update(urlsplit(extra).hostname for extra in deployment.extra_origins)
        known -= set(deployment.aliases)
    excluded = [f"EXCLUDE {host}" for host in sorted(filter(None, known))]
    return ", ".join([*rules, "MAP * ~NOTFOUND", *excluded])


def _as_browsers_write(base: str) -> str:
    """Return the address with its host in lower case and without the port that its scheme implies."""
    parts = urlsplit(base)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path}".rstrip("/")


def _with_port(found: str) -> str:
    parts = urlsplit(found)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"
