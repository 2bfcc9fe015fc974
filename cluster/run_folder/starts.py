"""Each start of a run's command: ``OUT/starts/0003.json`` says when it was and with which code.

Owns these files and the rule that a run goes on with the code it was last played with. A start that rolled
the run back (``cluster.run_folder.rollback``) says so in its file, and one that audited a phase names the manifest that
stood last then. Invariant: numbers only grow, so that whatever a start leaves can be told from what a later one did.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.errors import ManifestError
from cluster.run_folder.durable import write_atomic
from cluster.run_folder.versions import code_identity
from records.durable import read_json

FOLDER = "starts"


def start_files(out: Path) -> list[Path]:
    """Return the files of a run's starts, oldest first."""
    return sorted(path for path in (out / FOLDER).glob("[0-9]*.json") if path.stem.isdecimal())


def note_start(out: Path, settings: Mapping[str, Any]) -> int:
    """Note that the run is started or goes on, durably; return the start's number, from 1.

    ``settings`` are those that differ from what the run began with, by their dotted names.
    """
    files = start_files(out)
    number = int(files[-1].stem) + 1 if files else 1
    content = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "process": os.getpid(),
        "code": code_identity(),
        "settings": dict(settings),
    }
    write_atomic(out / FOLDER / f"{number:04d}.json", json.dumps(content, indent=1) + "\n")
    return number


def note_rollback(out: Path, start: int, line: str) -> None:
    """Add to a start's file, durably, what was rolled back in it and why."""
    path = out / FOLDER / f"{start:04d}.json"
    content = read_json(path)
    content.setdefault("rollbacks", []).append(line)
    write_atomic(path, json.dumps(content, indent=1) + "\n")


def note_balanced(out: Path, start: int, manifest: str) -> None:
    """Add to a start's file, durably, that the run added up when the manifest with this SHA-256 was its newest."""
    path = out / FOLDER / f"{start:04d}.json"
    content = read_json(path)
    content.setdefault("balanced", []).append(manifest)
    write_atomic(path, json.dumps(content, indent=1) + "\n")


def balanced_manifests(out: Path) -> set[str]:
    """Return the SHA-256s of the manifests after which a start found that the run added up.

    A file that cannot be read says nothing: its phase is audited again.
    """
    found: set[str] = set()
    for path in start_files(out):
        try:
            noted = read_json(path).get("balanced", [])
        except (OSError, ValueError):
            continue
        found.update(name for name in (noted if isinstance(noted, list) else ()) if isinstance(name, str))
    return found


def require_same_code(out: Path) -> None:
    """Raise ``ManifestError`` naming what has changed since the run's last start.

    Other code may give other numbers; a run that went on under it would be neither the old one nor a new one.
    """
    files = start_files(out)
    if not files:
        return
    before, now = _code(files[-1]), code_identity()
    differing = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    if differing:
        lines = [f"  {name}: was {before.get(name)}, is {now.get(name)}" for name in differing]
        raise ManifestError(
            f"{out} holds a run that was last played with other code:\n" + "\n".join(lines) + "\n"
            "put that back, or choose another --out for a new run, or go on all the same with --resume other-code"
        )


def _code(path: Path) -> dict[str, Any]:
    try:
        code = read_json(path)["code"]
        if not isinstance(code, dict):
            raise ValueError(f"code: expected an object, found a {type(code).__name__}")
    except (OSError, ValueError, KeyError) as error:
        raise ManifestError(f"cannot read {path}: {error}; restore it from a copy, or start in a new --out") from error
    return code
