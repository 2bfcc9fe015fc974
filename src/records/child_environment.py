"""The environment of processes that handle what pages send, or stand beside those that do.

Owns the list of variables that they inherit. Invariant: what is not listed here, tokens and passwords among it, reaches
no browser, no guard and no site server. Standard library only.
"""

from __future__ import annotations

import os

_INHERITED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
    "CHROME_DEVEL_SANDBOX", "PLAYWRIGHT_BROWSERS_PATH", "PLAYWRIGHT_NODEJS_PATH",
    "PLAYWRIGHT_HOST_PLATFORM_OVERRIDE", "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS",
})  # fmt: skip
_MARKS = frozenset({"WAYMARK_BROWSER_OWNER", "WAYMARK_TEST_SUITE", "WAYMARK_BENCHMARK_RUN"})
"""By which whoever started a process finds it again; other names of Waymark's may be those of tokens."""
_INHERITED_KINDS = ("LC_", "XDG_", "FONTCONFIG_")


def inherited() -> dict[str, str]:
    """Return the variables of this process that such a process may have."""
    named = _INHERITED | _MARKS
    return {name: value for name, value in os.environ.items() if name in named or name.startswith(_INHERITED_KINDS)}
