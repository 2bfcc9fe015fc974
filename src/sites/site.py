"""What a site is: its pages, its shared data, its private state and its task templates.

Owns ``Site``, ``State``, ``Refused`` and ``Session``. Invariants: a site's base data is built once per seed and
never changed; everything an episode changes lives in a ``State`` that belongs to one session. Knows
nothing of hosts, servers or browsers (see ``sites.app``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from starlette.routing import Route

from sites.faults import Faults
from sites.task_template import TaskTemplate


class Refused(Exception):
    """A site does not do what was asked; the complaints are for the visitor."""

    def __init__(self, *complaints: str) -> None:
        super().__init__(" ".join(complaints))
        self.complaints = complaints


class State:
    """One site's private state in one session; a site derives its own and adds what visitors change."""

    def __init__(self) -> None:
        self._flashes: list[str] = []

    def flash(self, text: str) -> None:
        """Queue a message that the next rendered page shows once."""
        self._flashes.append(text)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Go through something that may be refused; if it is, the message says why."""
        try:
            yield
        except Refused as refusal:
            self.flash(str(refusal))

    def take_flashes(self) -> list[str]:
        """Return the queued messages and forget them."""
        taken, self._flashes = self._flashes, []
        return taken


@dataclass(frozen=True)
class Site:
    """One embedded web site.

    ``build(seed)`` returns the immutable base data shared by all sessions; ``new_state(data, login)``
    returns a fresh ``State`` over it (microseconds), logged in as the site's usual user when ``login``.
    ``routes`` are Starlette routes whose handlers find their state at ``request.state.session``. ``account(data)``
    returns the usual user's name and password; it is None where nobody logs in.
    """

    name: str
    routes: tuple[Route, ...]
    build: Callable[[int], Any]
    new_state: Callable[[Any, bool], State]
    templates: tuple[type[TaskTemplate], ...] = ()
    account: Callable[[Any], tuple[str, str]] | None = None


def routes_of(*modules: ModuleType) -> tuple[Route, ...]:
    """Return the routes of these modules of pages, of which the first that fits an address answers."""
    return tuple(route for module in modules for route in module.ROUTES)


@dataclass
class Session:
    """One visitor's (or episode's) states, one for each site, made when the site is first visited.

    ``faults`` is what goes wrong in it on purpose, None where nothing does. ``layout`` is the seed of the order of what
    is on its pages, None for the order in which their templates have it. ``sent`` are site and path of the forms that
    were sent, each once, in the order in which they were last sent.
    """

    token: str
    sites: Mapping[str, Site]
    data: Mapping[str, Any]
    login: frozenset[str] = frozenset()
    faults: Faults | None = None
    layout: int | None = None
    sent: dict[tuple[str, str], None] = field(default_factory=dict)
    _states: dict[str, State] = field(default_factory=dict)

    def state(self, site: str) -> State:
        """Return this session's state of ``site``."""
        if site not in self._states:
            self._states[site] = self.sites[site].new_state(self.data[site], site in self.login)
        return self._states[site]

    def note_sent(self, site: str, path: str) -> None:
        """Remember that a form was sent; those of before keep their order."""
        self.sent.pop((site, path), None)
        self.sent[site, path] = None
