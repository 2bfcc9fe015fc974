"""Installing an application's packages into a folder of the user's cache, once for each list of versions.

Owns ``installed``. Invariants: a folder is there whole or not at all; registries are asked through pip and npm only,
and no package runs a script of its own while it is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.applications.application import Application

_INSTALL_S = 900.0


class NotInstalled(RuntimeError):
    """The packages cannot be installed here; the message says why."""


def cache_folder() -> Path:
    """Return where packages are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "waymark" / "applications"


def installed(app: Application) -> Path:
    """Return the folder with the packages of ``app``, after installing them where they are not there.

    Raises:
        NotInstalled: where the registry cannot be reached, or pip or npm is not here.
    """
    key = hashlib.sha256("\n".join([*app.pip, *app.npm]).encode()).hexdigest()[:12]
    folder = cache_folder() / f"{app.name}-{key}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        if app.pip:
            _run(app, [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), *app.pip])
        if app.npm:
            npm = shutil.which("npm")
            if npm is None:
                raise NotInstalled(f"{app.name}: npm is not on the path")
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
            _run(app, [npm, "install", "--prefix", str(made), *quiet, *app.npm])
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():  # nobody else made it meanwhile
                raise
    return folder


def _run(app: Application, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{app.name}: {command[0]}: {error}") from error
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())[-300:]
        raise NotInstalled(f"{app.name}: {Path(command[0]).name} ended with {done.returncode}: {words}")
