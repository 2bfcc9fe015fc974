"""What a browser worker can be told about its browser and its waits.

Owns ``BrowserSettings``. Invariants: every wait is finite; imports only the standard library, so
that the configuration can embed it without a browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from records.bounds import at_least, one_of, require, times

_WIDEST_PX = 10_000_000
"""What Chromium's device emulation takes."""


@dataclass(frozen=True)
class BrowserSettings:
    """How pages are opened, acted on and shown to the agent."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "executable", "sandbox", "page_memory_mb", "episodes_per_context", "launch_timeout_s", "close_timeout_s",
    )  # fmt: skip

    executable: str = ""
    """Path of a Chromium or headless-shell binary; empty looks for Playwright's, then for installed ones."""

    sandbox: str = "auto"
    """Whether Chromium's own sandbox stands between a page's process and the worker's machine: ``auto`` (where Chromium
    can have one: not as root, not where users may make no namespaces, as in most containers), ``always`` (or no
    browser) or ``never``."""

    paint: bool = False
    """Whether Chromium draws frames. Without it a page load costs a quarter less; screenshots are then drawn from a
    copy of the page, ``requestAnimationFrame`` is a timer, animations end within the step (those longer than
    ``settle_timeout_s`` once their time has passed), and observers of size or intersection are called by a script."""

    trusted_input: bool = True
    """Whether mouse and keyboard are the browser's own, which pages cannot tell from a person's; otherwise actions are
    DOM events, which cost a little less, press what is covered as well, and leave ``:hover`` styles alone."""

    observation_format: str = "waymark"
    """How a page is written down: ``waymark`` (short) or ``webrl`` (with boxes; needs a real browser)."""

    viewport_only: bool = False
    """Whether only what lies in the viewport is shown (real browser only)."""

    viewport_width: int = 1280
    """Width of the page area, in CSS pixels."""

    viewport_height: int = 720
    """Height of the page area, in CSS pixels."""

    max_observation_chars: int = 20_000
    """Longest observation text, in characters; the rest is cut at a line and said to be missing."""

    max_tabs: int = 4
    """Most tabs an episode may have open; a further one is closed and the agent told."""

    page_memory_mb: int = 1500
    """Most memory that the process of a context's pages may hold, in MB; past it that process is ended and the episode
    has failed as ``infra/page_memory`` (Linux). Twice a second is looked; script objects alone never get past it. A
    process that all pages share may grow by as much, and then the page is ended that worked most meanwhile."""

    episodes_per_context: int = 50
    """Episodes after which a browser context is replaced; Playwright keeps every request for as long as it lives."""

    launch_timeout_s: float = 30.0
    """Longest wait for Chromium to start, in seconds."""

    navigation_timeout_s: float = 8.0
    """Longest wait for a page that an action opens, in seconds; past it loading is stopped."""

    settle_timeout_s: float = 2.0
    """Longest wait for a page to become quiet after an action, in seconds."""

    look_timeout_s: float = 5.0
    """Longest time that the page script looks at a page, in seconds; what it has not come to by then is not shown."""

    wait_action_s: float = 1.0
    """How long the agent's own Wait action waits, in seconds."""

    close_timeout_s: float = 10.0
    """Longest wait for a page, context or browser to close, in seconds."""

    def __post_init__(self) -> None:
        """Refuse a format that does not exist, sizes of no page, and waits of nothing."""
        one_of(self, "observation_format", ("waymark", "webrl"))
        one_of(self, "sandbox", ("auto", "always", "never"))
        at_least(self, 1, "viewport_width", "viewport_height", "max_observation_chars", "max_tabs", "page_memory_mb")
        at_least(self, 1, "episodes_per_context")
        for name in ("viewport_width", "viewport_height"):
            require(getattr(self, name) <= _WIDEST_PX, name, f"at most {_WIDEST_PX} px", getattr(self, name))
        times(self)

    @property
    def shows_whole_page(self) -> bool:
        """Whether an observation holds the page beyond the viewport, so that scrolling shows nothing new."""
        return not self.viewport_only and self.observation_format != "webrl"
