"""Chromium's own sandbox, which keeps a page that took over its process from the worker's files, processes and memory.

Owns whether a Chromium is started with it. Invariant: with ``auto`` it is off only where Chromium itself says that it
can have none here; whoever asks for it ``always`` gets it or no browser.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from environments.browser.settings import BrowserSettings
from records.child_environment import inherited

_START_S = 20.0
"""Fixed: an empty page is written down in a second; a start that takes longer says nothing of sandboxes."""
_SAID = (b"No usable sandbox", b"without --no-sandbox is not supported", b"Failed to move to new namespace")
"""What Chromium prints before it gives up for want of a sandbox."""
AS_ROOT = "the user is root, for whom Chromium has none"
NO_NAMESPACES = "this machine, or its container, lets users make no namespaces"


async def sandboxed(settings: BrowserSettings, executable: Path) -> bool:
    """Return whether to start this Chromium with its sandbox."""
    if settings.sandbox == "auto":
        return not await asyncio.to_thread(why_none, executable)
    return settings.sandbox == "always"


@cache
def why_none(executable: Path) -> str:
    """Return why Chromium can have no sandbox here, for this user; empty where it has one, or where that is not known.

    Asked once a process, for it starts a Chromium; of a user that is root nothing is asked.
    """
    if not sys.platform.startswith("linux"):
        return ""
    if os.geteuid() == 0:
        return AS_ROOT
    with tempfile.TemporaryDirectory(prefix="waymark-sandbox-", ignore_cleanup_errors=True) as profile:
        command = [str(executable), "--headless", f"--user-data-dir={profile}", "--dump-dom", "about:blank"]
        try:
            done = subprocess.run(command, env=inherited(), timeout=_START_S, capture_output=True, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return NO_NAMESPACES if any(said in done.stderr for said in _SAID) else ""
