"""What a run was made with: Python, packages, git commit, machine.

Owns reading versions without importing the packages, so that a manifest costs milliseconds.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "transformers", "ray", "playwright", "pyarrow", "numpy", "safetensors", "tokenizers", "pydantic")


def package_version(name: str) -> str | None:
    """Return the installed version of a distribution, or None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def git_commit(folder: Path, timeout_s: float = 5.0) -> str | None:
    """Return the commit of the checkout that holds ``folder``, with ``-dirty`` after it where tracked files differ."""
    try:
        commit = _git(folder, timeout_s, "rev-parse", "HEAD")
        changed = _git(folder, timeout_s, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def versions() -> dict[str, str | None]:
    """Return ``{"python", "platform", "waymark", "commit", <package>…}``; None where something is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "platform": platform.platform()}
    found["waymark"] = package_version("waymark")
    found["commit"] = git_commit(Path(__file__).resolve().parent)
    found.update({name: package_version(name) for name in PACKAGES})
    return found


def _git(folder: Path, timeout_s: float, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=True, env=quiet
    ).stdout.strip()
