"""User names and passwords of the sites' accounts, and keeping them out of everything that is written.

Owns ``Account`` and ``Secret``. Invariants: a secret has no readable ``repr`` and cannot be pickled, so it never
gets into records, settings or another process; what is said about a log-in goes through ``Account.redact``.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote, quote_plus

from environments.webarena.sites.addresses import variable
from records.durable import read_text

_HIDDEN = "[hidden]"


class Secret:
    """A text that only ``reveal`` shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return _HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret stays in the process that read it")


@dataclass(frozen=True, slots=True)
class Account:
    """One account of a site."""

    username: Secret
    password: Secret

    def redact(self, text: str) -> str:
        """Return ``text`` without the account's name and password, also as they stand in addresses, JSON and HTML."""
        for secret in (self.password.reveal(), self.username.reveal()):
            for written in sorted(_written(secret), key=len, reverse=True):
                text = text.replace(written, _HIDDEN)
        return text


def _written(secret: str) -> set[str]:
    """Return the ways in which a secret may stand in a text."""
    coded = {quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    return {secret, *coded, html.escape(secret), html.escape(secret, quote=False)}


class CredentialsMissing(ValueError):
    """A site's account is not configured, or its file cannot be read; the message says what to set."""


class Accounts:
    """The accounts by site, from a file and from the environment."""

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        self._accounts = dict(accounts)

    @classmethod
    def load(cls, path: str = "", environ: Mapping[str, str] = os.environ) -> Accounts:
        """Read the JSON file ``path`` (``WebArenaSettings.credentials_file``), then variables as ``REDDIT_PASSWORD``.

        Raises:
            CredentialsMissing: where the file cannot be read as that.
        """
        found = {site: _account(entry, site, path) for site, entry in _read(path).items()} if path else {}
        for name, username in environ.items():
            site = name.removesuffix("_USERNAME").lower()
            password = environ.get(f"{variable(site)}_PASSWORD")
            if name.endswith("_USERNAME") and username and password and site not in found:
                found[site] = Account(Secret(username), Secret(password))
        return cls(found)

    def __contains__(self, site: str) -> bool:
        return site in self._accounts

    def of(self, site: str) -> Account:
        """Return the account of a site; raise ``CredentialsMissing`` naming the variables to set."""
        if site not in self._accounts:
            name = variable(site)
            raise CredentialsMissing(
                f"no account for {site}: set {name}_USERNAME and {name}_PASSWORD, or put it into a file and name that "
                "in environments.webarena.credentials_file"
            )
        return self._accounts[site]


def _read(path: str) -> Mapping[str, object]:
    try:
        data = json.loads(read_text(Path(path).expanduser()))
    except (OSError, ValueError) as error:
        # Not chained and not quoted: a JSON error may cite the text.
        reason = (error.strerror or "it is no file") if isinstance(error, OSError) else "it is no JSON"
        raise CredentialsMissing(f"environments.webarena.credentials_file {path}: cannot be read: {reason}") from None
    if not isinstance(data, dict):
        raise CredentialsMissing(
            f"environments.webarena.credentials_file {path}: expected an object by site, found a {type(data)}"
        )
    return data


def _account(entry: object, site: str, path: str) -> Account:
    known = {"username", "password"}
    if not isinstance(entry, dict) or set(entry) != known or not all(isinstance(v, str) and v for v in entry.values()):
        raise CredentialsMissing(f"{path}: {site}: expected username and password, two texts, found something else")
    return Account(Secret(entry["username"]), Secret(entry["password"]))
