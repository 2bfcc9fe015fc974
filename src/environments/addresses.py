"""Which addresses an episode may reach, and the translation between placeholders and real addresses.

Owns ``EpisodeAddresses``. Invariants: an address outside the episode's own sites is never allowed;
records only ever see canonical addresses (``__SHOP__/cart``). Pure: the network-level refusal that
rests on it is set up by ``browser.process`` (see ``embedded_bypass``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.placeholders import canonical, origin

_PLACEHOLDER = re.compile(r"__([A-Z0-9_]+?)__")


class EpisodeAddresses:
    """The base addresses of one episode's sites, such as ``{"shop": "http://shop.e1.localhost:8000"}``."""

    def __init__(self, bases: Mapping[str, str]) -> None:
        self.bases = {site: base.rstrip("/") for site, base in bases.items()}
        self._origins = {origin(base): site for site, base in self.bases.items()}

    @classmethod
    def embedded(cls, sites: tuple[str, ...], token: str, port: int | None = None) -> EpisodeAddresses:
        """Addresses of the embedded sites for one session ``token``; ``port`` None where nothing is served."""
        end = f".{token}.localhost" + (f":{port}" if port else "")
        return cls({site: f"http://{site}{end}" for site in sites})

    @property
    def origins(self) -> tuple[str, ...]:
        """Scheme, host and port of each site."""
        return tuple(self._origins)

    def real(self, canonical: str) -> str:
        """Replace every placeholder by its site's base address.

        Raises:
            EpisodeFailed: ``task/unknown_site`` when a placeholder names a site the episode does not have.
        """
        return _PLACEHOLDER.sub(self._base, canonical)

    def canonical(self, url: str) -> str:
        """Replace the longest base under which ``url`` lies by its placeholder; other addresses stay as they are."""
        return canonical(self.bases, url)

    def allows(self, url: str) -> bool:
        """Whether the address is on one of the episode's sites, with its scheme and port; what is no address is not."""
        try:
            return origin(url) in self._origins
        except ValueError:
            return False

    def _base(self, match: re.Match[str]) -> str:
        site = match.group(1).lower()
        if site not in self.bases:
            known = ", ".join(sorted(self.bases))
            detail = f"{match.group(0)} names no site of this task; its sites are {known}"
            raise EpisodeFailed(Failure(codes.UNKNOWN_SITE, detail))
        return self.bases[site]


def embedded_bypass(token: str, port: int) -> str:
    """Return Chromium's proxy bypass list: only the session's own addresses go past a proxy that refuses everything.

    Which of its sites a session may visit is for the site server to say, so that one context serves episodes on any
    sites.
    """
    return proxy_bypass([f"http://*.{token}.localhost:{port}"])


def proxy_bypass(origins: Iterable[str]) -> str:
    """Return Chromium's proxy bypass list for origins with their ports, and for WebSockets to the same host and port.

    ``<-loopback>`` first takes away Chromium's built-in exception for ``localhost``.
    """
    hosts = {origin: origin.partition("://")[2] for origin in origins}
    rules = (f"{origin},ws://{host},wss://{host}" for origin, host in hosts.items())
    return ",".join(["<-loopback>", *rules])
