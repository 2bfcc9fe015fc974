"""What a run was made with: Python, packages, git commit, machine, and Waymark's own code.

Owns reading versions without importing the packages, so that a manifest costs milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata, util
from pathlib import Path

PACKAGES = ("torch", "transformers", "ray", "playwright", "pyarrow", "numpy", "safetensors", "tokenizers", "pydantic")

CODE = (
    "cluster", "curriculum", "environments", "judges", "learner", "plugs", "policy", "records", "replay",
    "rollout_workers", "sites",
)  # fmt: skip
"""Waymark's packages that a run's numbers come from."""
_GIT_TIMEOUT_S = 5.0
"""Fixed: without an answer the manifest has no commit, and the sources' hash says the same."""
_SOURCES = {".py", ".js", ".html", ".j2"}


def package_version(name: str) -> str | None:
    """Return the installed version of a distribution, or None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def git_commit(folder: Path, timeout_s: float = _GIT_TIMEOUT_S) -> str | None:
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


@cache
def code_identity() -> dict[str, str | None]:
    """Return what a run's numbers depend on beside its recipe: packages by version, Waymark's sources by SHA-256."""
    found: dict[str, str | None] = {"python": ".".join(platform.python_version_tuple()[:2])}
    found.update({name: package_version(name) for name in PACKAGES})
    digest = hashlib.sha256()
    for package in CODE:
        spec = util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            for path in sorted(p for p in Path(place).rglob("*") if p.suffix in _SOURCES):
                digest.update(f"{package}/{path.relative_to(place).as_posix()}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    found["waymark's sources"] = digest.hexdigest()[:16]
    return found


def _git(folder: Path, timeout_s: float, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=True, env=quiet
    ).stdout.strip()
