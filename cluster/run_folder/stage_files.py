"""One folder for each complete stage: ``OUT/stages/0007-phase-001-rollouts/`` with ``manifest.json`` and ``COMPLETE``.

Owns their layout, their writing and their reading. Invariants: a folder appears whole or not at all, and
``COMPLETE``, which holds the SHA-256 of ``manifest.json``, is written last; each manifest names the SHA-256 of
the one before it (the first one that of the run's header), so that none can be removed, changed or put elsewhere
unnoticed, the newest one's removal apart.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from cluster.run_folder.durable import sha256_text, write_folder
from cluster.run_folder.layout import STAGES as FOLDER
from cluster.run_folder.stage_results import StageResult, read_result
from records.durable import read_text

MANIFEST = "manifest.json"
COMPLETE = "COMPLETE"
_NAME = re.compile(r"(\d{4})-phase-(\d{3,})-([a-z]+)")


@dataclass(frozen=True)
class StageEntry:
    """A complete stage: its result, the SHA-256 of each file it left, seconds it took, when it ended (UTC).

    ``after`` is the SHA-256 of the manifest before it, ``start`` the number of the start that completed it.
    """

    phase: int
    result: StageResult
    files: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    finished: str = ""
    start: int = 0
    after: str = ""

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.result.stage


@dataclass(frozen=True)
class Fault:
    """What is wrong with a stage's record; ``subject`` is its place under the run folder."""

    subject: str
    found: str


def write_stage(out: Path, number: int, entry: StageEntry) -> str:
    """Record a stage durably as the ``number``-th and return the SHA-256 of its manifest."""
    own = {name: value for name, value in vars(entry).items() if name != "result"}
    text = json.dumps({**own, "stage": entry.stage, "result": entry.result.to_json()}, indent=1) + "\n"
    digest = sha256_text(text)
    name = f"{number:04d}-phase-{entry.phase:03d}-{entry.stage}"
    write_folder(out / FOLDER / name, {MANIFEST: text, COMPLETE: digest + "\n"})
    return digest


def scan_stages(out: Path, header: str) -> tuple[list[StageEntry], str, list[Fault]]:
    """Return the stages that can be read, in order, the newest one's SHA-256, and what is wrong.

    ``header`` is the SHA-256 of the run's header. Folders whose name begins with a dot were being written when
    their run ended; they count for nothing.
    """
    entries: list[StageEntry] = []
    faults: list[Fault] = []
    digest, expected = header, 0
    for path in stage_folders(out):
        place = f"{FOLDER}/{path.name}"
        name = _NAME.fullmatch(path.name)
        text, fault = _read(path)
        entry, wrong = (None, fault) if fault else _entry(text)
        if entry is None or name is None or (entry.phase, entry.stage) != (int(name[2]), name[3]):
            faults.append(Fault(place, wrong or f"{MANIFEST} is not one of this stage"))
            digest, expected = "", expected + 1
            continue
        number = int(name[1])
        if number > expected:
            faults.append(Fault(FOLDER, f"manifest {expected:04d} is gone, though {path.name} is there"))
        elif digest and entry.after != digest:
            faults.append(Fault(place, "does not follow the manifest before it: one of the two was changed"))
        expected = number + 1
        entries.append(entry)
        digest = sha256_text(text)
    return entries, digest, faults


def stage_folders(out: Path) -> list[Path]:
    """Return the folders of the complete stages, in order."""
    folder = out / FOLDER
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def _read(path: Path) -> tuple[str, str]:
    """Return a stage's manifest as text, and what is wrong with it, or an empty text."""
    try:
        text = read_text(path / MANIFEST)
    except (OSError, ValueError) as error:
        return "", f"{MANIFEST} cannot be read ({error})"
    try:
        expected = read_text(path / COMPLETE).strip()
    except (OSError, ValueError):
        return "", f"{COMPLETE} is missing"
    if sha256_text(text) != expected:
        return "", f"{MANIFEST} does not have the SHA-256 that {COMPLETE} names: it was changed or cut short"
    return text, ""


def _entry(text: str) -> tuple[StageEntry | None, str]:
    """Return the entry that a manifest holds, or None and what is wrong with it."""
    try:
        content = json.loads(text)
        result = read_result(content["phase"], content.pop("stage"), content.pop("result"))
        return StageEntry(**{**content, "result": result}), ""
    except (TypeError, ValueError, KeyError) as error:
        return None, f"{MANIFEST} is not one of this stage: {error}"
