"""Finding, installing and starting flags of the one browser that is used: Chromium.

Owns the order of the search (explicit setting, Playwright's own, headless-shell, chromium) and the
launch flags. Invariants: installing is tried by ``ensure`` only (``make setup``), each attempt with a
time limit; what cannot be had is told in one sentence that says what to do.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

from records.terminal import printable

_LOG = logging.getLogger(__name__)

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PLAYWRIGHT = (
    "chromium_headless_shell-*/*/headless_shell",
    "chromium_headless_shell-*/*/chrome-headless-shell",
    "chromium-*/*/chrome",
    "chromium-*/*/Chromium.app/Contents/MacOS/Chromium",
)
# The last --disable-features wins, so this repeats what Playwright disables and matters to us.
_DISABLED_FEATURES = (
    "RenderDocument", "RenderDocumentCompositorReuse", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DeferRendererTasksAfterInput", "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding",
    "PreconnectToSearch", "ThirdPartyStoragePartitioning", "Translate",
)  # fmt: skip
INSTALL_TIMEOUT_S = 300.0
"""Fixed: whoever has a slower network installs a browser by hand, as the error says."""
_START_S = 60.0
"""Fixed: to say its version takes a browser a second, and a minute on a machine that is busy with other things."""
_APT_PACKAGES = ("chromium-headless-shell", "chromium")


class BrowserMissing(RuntimeError):
    """No usable Chromium; the message says in one sentence what to do."""


def find(explicit: str = "") -> Path:
    """Return the browser to use.

    Raises:
        BrowserMissing: when the explicit path does not exist, or when nothing is found.
    """
    if explicit:
        path = Path(explicit).expanduser()
        if path.is_file() and os.access(path, os.X_OK):
            return path
        raise BrowserMissing(
            f"browser.executable is {explicit!r}, which is no executable file; correct it, or leave it empty"
        )
    installed = (Path(place) for name in _NAMES if (place := shutil.which(name)))
    found = _playwrights() or next(installed, None)
    if found is None:
        raise BrowserMissing(
            "no Chromium was found; run `playwright install chromium-headless-shell`, or install your system's package "
            "(Debian, Ubuntu: `apt-get install chromium-headless-shell` or `chromium`), or set browser.executable"
        )
    return found


def ensure(explicit: str = "", timeout_s: float = INSTALL_TIMEOUT_S) -> Path:
    """Return the browser to use, trying to install one where there is none, or where the one found does not start.

    ``timeout_s`` bounds each of the two attempts: Playwright's download, then apt as root.

    Raises:
        BrowserMissing: when none is found that starts and none could be installed.
    """
    if explicit:
        return find(explicit)
    attempts = [[sys.executable, "-m", "playwright", "install", "chromium-headless-shell"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        attempts += [["apt-get", "install", "-y", "-q", "--no-install-recommends", name] for name in _APT_PACKAGES]
    for command in [None, *attempts]:
        if command is not None:
            _run(command, timeout_s)
        try:
            found = find()
        except BrowserMissing as error:
            missing = error
            continue
        wrong = _why_not_started(found)
        if not wrong:
            return found
        missing = BrowserMissing(
            f"{found} does not start ({wrong}); where libraries are missing, `playwright install-deps chromium` as root"
            " installs them, or your system's package of Chromium"
        )
    raise missing


def _why_not_started(browser: Path) -> str:
    """Return why a browser cannot say its version, in a line; empty where it can."""
    try:
        done = subprocess.run([browser, "--version"], timeout=_START_S, capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return printable(str(error))
    said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return printable(said[-1]) if done.returncode else ""


LOOPBACK_ONLY = "MAP * ~NOTFOUND, EXCLUDE *.localhost, EXCLUDE localhost, EXCLUDE 127.0.0.1"
"""Host resolver rules under which names outside ``*.localhost`` do not resolve at all."""


def launch_flags(
    browser_id: str, paint: bool = True, resolver_rules: str = LOOPBACK_ONLY, *, script_memory_mb: int = 0
) -> list[str]:
    """Return Chromium's flags beyond Playwright's defaults (which must stay: they let fast navigations through).

    ``resolver_rules`` say which names resolve, and WebRTC may not go past the proxy. A new frame
    host for every document (``RenderDocument``) would cost a quarter of each page load, a process of its own for
    the network a twentieth. Tasks that wait for the frame after an input (``DeferRendererTasksAfterInput``) would
    wait 50 ms where none is drawn. With ``paint`` off no
    frame is ever drawn: cheaper, but no screenshots, and what a page waits for by frames is told by the page script;
    pages get no WebGL then, which nobody would see and whose memory, in a process that all pages share, has no limit.
    ``script_memory_mb`` bounds the script objects of a page; 0 leaves V8's own limit.
    ``browser_id`` marks the process, so that it can be found.
    """
    return [
        *([] if paint else ["--disable-threaded-compositing", "--disable-smooth-scrolling", "--disable-3d-apis"]),
        "--num-raster-threads=1",
        f"--disable-features={','.join(_DISABLED_FEATURES)}",
        "--enable-features=NetworkServiceInProcess2",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        f"--host-resolver-rules={resolver_rules}",
        *([f"--js-flags=--max-old-space-size={script_memory_mb}"] if script_memory_mb else []),
        _mark(browser_id),
    ]


def processes(browser_id: str) -> list[int]:
    """Return the process ids of the browser started for ``browser_id`` (Linux; elsewhere an empty list)."""
    mark, found = _mark(browser_id).encode(), []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in arguments and not any(a.startswith(b"--type=") for a in arguments):
            found.append(int(entry.parent.name))
    return sorted(found)


def _mark(browser_id: str) -> str:
    return f"--waymark-browser={browser_id}"


def _playwrights() -> Path | None:
    root = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or {
        "darwin": "~/Library/Caches/ms-playwright",
        "win32": "~/AppData/Local/ms-playwright",
    }.get(sys.platform, "~/.cache/ms-playwright")
    for pattern in _PLAYWRIGHT:
        found = sorted(Path(root).expanduser().glob(pattern))
        if found:
            return found[-1]
    return None


def _run(command: list[str], timeout_s: float) -> None:
    _LOG.info("no browser yet: %s", " ".join(command))
    try:
        done = subprocess.run(command, timeout=timeout_s, capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        _LOG.warning("%s: %s", command[0], error)
        return
    if done.returncode:
        _LOG.warning(
            "%s ended with %d: %s", " ".join(command), done.returncode, (done.stderr or done.stdout)[-300:].strip()
        )


def main() -> int:
    """Make sure that there is a browser (``python -m environments.browser.chromium``); 0 when there is one."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        _LOG.info("browser: %s", ensure())
    except BrowserMissing as error:
        _LOG.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
