"""Where servers of vLLM that others started are, how each is asked by its name, and with which token.

Owns ``Place``, ``places`` and ``read_token``. Invariants: the check before a run and the run ask the same addresses in
the same way; a server hears the name that the recipe gives it, in ``Host`` and, over TLS, where its certificate is
compared; the addresses of a name are of one family, because one server has an address of each; a token is in no
message. Imports httpx only when somebody is asked.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from records.bounds import require

_LOOK_S = 5.0
"""Fixed: a server that answers at an address takes a connection in milliseconds; past it the other family is taken."""
_PORTS = {"http": 80, "https": 443}
_TOKEN = re.compile(r"[!-~]*")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True, slots=True)
class Place:
    """A server at ``url``, reached at ``address``, one of those of the URL's host; empty where the host is asked for.

    ``address`` is an IP address, or empty; as a text, a place says both.
    """

    url: str
    address: str = ""

    def __str__(self) -> str:
        return self.of("")

    def of(self, path: str) -> str:
        """Return what a message calls a path of the server."""
        return f"{self.url.rstrip('/')}{path}" + (f" at {self.address}" if self.address else "")

    @property
    def reached_at(self) -> str:
        """The URL with the address in the place of the host's name."""
        if not self.address:
            return self.url
        parts = urlsplit(self.url)
        host = f"[{self.address}]" if ":" in self.address else self.address
        return urlunsplit((parts.scheme, host + (f":{parts.port}" if parts.port else ""), parts.path, "", ""))

    @property
    def extensions(self) -> Mapping[str, str]:
        """What httpx is told with each request: the name that the certificate must have."""
        host = urlsplit(self.url).hostname
        return {"sni_hostname": host} if self.address and host and self.url.startswith("https") else {}

    def client(self, token: str) -> dict[str, Any]:
        """Return the arguments of a client of httpx that asks this server with ``token``; empty sends none.

        Authorities are those of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR``, else certifi's.

        Raises:
            OSError: ``SSL_CERT_FILE`` names no file that can be read.
        """
        import httpx

        headers = {"Host": urlsplit(self.url).netloc} if self.address else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        trusted: Any = httpx.create_ssl_context() if self.url.startswith("https") else True
        # No proxy of the environment's: the token is the server's own.
        return {"base_url": self.reached_at, "headers": headers, "verify": trusted, "trust_env": False}


def places(urls: Sequence[str], setting: str = "policy.options.urls") -> list[Place]:
    """Return one place for each address that the URLs' hosts have: a headless service names each of its servers.

    A name with addresses of both families keeps IPv4's where anybody takes a connection there, or nowhere, else IPv6's.

    Raises:
        ValueError: a host has no address; the text begins with ``setting``.
    """
    found = [place for url in urls for place in _places(url.rstrip("/"), setting)]
    return list(dict.fromkeys(found))


def _places(url: str, setting: str) -> list[Place]:
    parts = urlsplit(url)
    if _is_address(parts.hostname or ""):
        return [Place(url)]
    try:
        found = socket.getaddrinfo(parts.hostname, _port(parts), type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"{setting}: {url} names no host: {error}") from error
    by_family = [list(dict.fromkeys(str(one[4][0]) for one in found if one[0] == family)) for family in _FAMILIES]
    families = [addresses for addresses in by_family if addresses]
    if len(families) > 1 and not _takes_connections(families[0], _port(parts)):
        families = [taken for taken in families[1:] if _takes_connections(taken, _port(parts))] or families
    return [Place(url, address) for address in families[0]]


def _takes_connections(addresses: Sequence[str], port: int) -> bool:
    """Return whether anybody does, at one of the addresses."""
    ends = time.monotonic() + _LOOK_S
    for address in addresses:
        left_s = ends - time.monotonic()
        with suppress(OSError):
            if left_s > 0:
                socket.create_connection((address, port), timeout=left_s).close()
                return True
    return False


def same_server(found: Sequence[Place]) -> tuple[Place, Place] | None:
    """Return two places at the same address and port, which are one server unless a gateway tells their names apart."""
    by_end: dict[tuple[str, str], Place] = {}
    for place in found:
        parts = urlsplit(place.reached_at)
        other = by_end.setdefault((f"{parts.hostname}:{_port(parts)}", parts.path), place)
        if other is not place:
            return other, place
    return None


def untrusted(error: BaseException | None) -> bool:
    """Return whether an error comes of a certificate that is not accepted."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


UNTRUSTED = "name the host as its certificate does; for an authority of your own set SSL_CERT_FILE to its certificate"
"""What to do about one."""


def read_token(variable: str) -> str:
    """Return the token in the environment variable ``variable``, empty where it is unset.

    Raises:
        ValueError: it is none that HTTP can carry; the text names the variable alone.
    """
    token = os.environ.get(variable, "").strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{variable}: expected a token of ASCII characters without spaces, found another one")
    return token


def check_url(url: str, setting: str) -> None:
    """Refuse what is no server's address, or holds a password, which would be written into run folders.

    Raises:
        SettingError: it is none; a password is not in the text.
    """
    parts = urlsplit(url)
    try:
        plain = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        plain = False
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    require(plain, setting, "addresses such as http://host:8000", shown)
    expected = "addresses without a user, a query or a fragment"
    require(not ("@" in parts.netloc or parts.query or parts.fragment), setting, expected, shown)


def is_loopback(url: str) -> bool:
    """Whether a server's address is that of whichever machine asks."""
    host = urlsplit(url).hostname or ""
    if _is_address(host):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
