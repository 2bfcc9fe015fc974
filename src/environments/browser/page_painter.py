"""Screenshots for a browser that draws nothing: a copy of the page is drawn in a second Chromium.

Owns the painting Chromium, started at the first screenshot. Invariants: the copy runs no scripts and
reaches no host; it shows what the page's document and the state of its controls say (pictures and
style sheets that lie outside the document are missing: runs that need those set ``paint``).
"""

from __future__ import annotations

import asyncio
import secrets

from playwright.async_api import Browser, Page, Playwright

from environments.browser import chromium
from environments.browser.sandbox import sandboxed
from environments.browser.settings import BrowserSettings
from records.child_environment import inherited

COPY = """(() => {
  const copy = document.documentElement.cloneNode(true);
  const controls = "input,textarea,option";
  const live = document.querySelectorAll(controls), drawn = copy.querySelectorAll(controls);
  live.forEach((control, i) => {
    if (control.localName === "textarea") drawn[i].textContent = control.value;
    else if (control.localName === "option") drawn[i].toggleAttribute("selected", control.selected);
    else if (["checkbox", "radio"].includes(control.type)) drawn[i].toggleAttribute("checked", control.checked);
    else if (control.type !== "file") drawn[i].setAttribute("value", control.value);
  });
  copy.querySelectorAll("script").forEach(script => script.remove());
  return "<!doctype html>" + copy.outerHTML;
})()"""
"""Expression that yields a page's HTML with the state of its controls written into it."""

_DRAW_S = 10.0
"""Fixed: a copy has no scripts and loads nothing; the act that asks for it has its own deadline."""


class PagePainter:
    """A Chromium that draws copies of pages, one at a time."""

    def __init__(self, settings: BrowserSettings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._browser: Browser | None = None
        self._page: Page | None = None

    async def draw(self, playwright: Playwright, html: str) -> bytes:
        """Return a PNG of the viewport with this page in it; raises Playwright's errors."""
        settings = self._settings
        async with self._lock:
            if self._page is None or self._browser is None or not self._browser.is_connected():
                executable = chromium.find(settings.executable)
                self._browser = await playwright.chromium.launch(
                    executable_path=executable,
                    chromium_sandbox=await sandboxed(settings, executable),
                    args=chromium.launch_flags(f"painter-{secrets.token_hex(4)}", paint=True),
                    env={**inherited()},
                    timeout=settings.launch_timeout_s * 1000,
                )
                context = await self._browser.new_context(
                    viewport={"width": settings.viewport_width, "height": settings.viewport_height},
                    java_script_enabled=False,
                    offline=True,
                )
                self._page = await context.new_page()
            await self._page.set_content(html, timeout=_DRAW_S * 1000, wait_until="commit")
            return await self._page.screenshot(timeout=_DRAW_S * 1000)

    async def close(self) -> None:
        """End the drawing Chromium, where there is one; raises Playwright's errors."""
        browser, self._browser, self._page = self._browser, None, None
        if browser is not None:
            await browser.close()
