"""Settings of the embedded sites."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from records.bounds import at_least, one_of, require, times
from sites.chains.settings import ChainSettings
from sites.faults import FaultSettings

FAMILIES = ("templates", "chains")


@dataclass(frozen=True)
class SitesSettings:
    """Which tasks are drawn, from which sites, from which seed the sites are made, and how they are served."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("memory_mb", "max_sessions", "start_timeout_s", "hang_timeout_s")

    names: tuple[str, ...] = ("shop", "forum")
    """Sites that tasks are drawn from, and collections of further tasks over them: ``across`` (tasks over several of
    the sites), ``scripted`` (on pages that need their scripts) and ``errands`` (of many parts, 11 to 30 steps). The
    server serves all sites."""
    family: str = "templates"
    """Which tasks are drawn: those of the ``templates`` of the named sites and collections, or ``chains``, composed of
    small things to do on the named sites."""
    chains: ChainSettings = field(default_factory=ChainSettings)
    """Which chains are drawn, where ``family`` is ``chains``."""
    seed: int = 0
    """Seed of the sites' base data (products, threads, users); tasks are drawn over the same data."""
    memory_mb: int = 250
    """Memory of the process that serves the sites, in MiB, for the resource plan."""
    max_sessions: int = 1024
    """Most sessions (one for each running episode) that the server keeps open at a time."""
    start_timeout_s: float = 30.0
    """Longest wait for the site server to answer after its start, seconds."""
    hang_timeout_s: float = 6.0
    """Longest wait for the site server's sign of life, seconds; past it the server is killed and started afresh. Less
    than ``browser.navigation_timeout_s``, so that no agent takes the outage for a slow page."""
    faults: FaultSettings = field(default_factory=FaultSettings)
    """What goes wrong on purpose in every episode in the browser."""

    def __post_init__(self) -> None:
        """Refuse no sites, a site twice, and waits of nothing."""
        require(0 < len(self.names) == len({*self.names}), "names", "at least one site, each once", list(self.names))
        one_of(self, "family", FAMILIES)
        at_least(self, 0, "seed")
        at_least(self, 1, "max_sessions", "memory_mb")
        times(self)
