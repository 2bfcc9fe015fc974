"""What a study predicts, written down before its first run.

Owns ``RECORDS/registered.json``. Invariant: what was predicted does not change after the runs began.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.predictions import Prediction
from cluster.errors import ManifestError, RecipeError
from cluster.run_folder.durable import write_atomic
from cluster.studies.design import StudyFile
from records.durable import read_text

REGISTERED = "registered.json"


def register(study: StudyFile, out: Path, records: Path) -> dict[str, Any]:
    """Write down beside the records what the study predicts, where that is not done, and return it with its date.

    Raises:
        RecipeError: the study of these records predicts something else, or has another name.
        ManifestError: runs are there and what they were to show is not, or cannot be read.
    """
    file = records / REGISTERED
    design = study.design
    sha256 = hashlib.sha256(study.content).hexdigest()
    groups = {one.group: design.groups[one.group] for one in design.predictions if one.group}
    if file.exists():
        found = _registered(file)
        said = (found["name"], found["predictions"], found.get("groups", groups))
        if said != (design.name, list(design.predictions), groups):
            raise RecipeError(
                f"{records}: has records of study {found['name']!r}, registered {found['when']}, which predicts "
                "otherwise; predictions are not changed after the runs began. Choose another --out, or other "
                "--records, for another study"
            )
        return {**found, "changed_since": found["sha256"] != sha256}
    if began := next((place for root in (records, out) for place in _began(root)), None):
        raise ManifestError(
            f"{began}: is of runs whose predictions are not in {file}; restore that file, name the --records that have "
            "it, or choose another --out"
        )
    noted = {
        "name": design.name, "predictions": list(design.predictions), "groups": groups,
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "sha256": sha256,
    }  # fmt: skip
    records.mkdir(parents=True, exist_ok=True)
    written = {**noted, "predictions": [asdict(one) for one in design.predictions]}
    write_atomic(file, json.dumps(written, indent=1, ensure_ascii=False) + "\n")
    return {**noted, "changed_since": False}


def _began(root: Path) -> Iterator[Path]:
    """Yield what runs of arms, or of the grid, left below a study's folder or its records."""
    return (place for kind in ("arms", "grid") for place in sorted((root / kind).glob("*")))


def _registered(file: Path) -> dict[str, Any]:
    """Return what was written down, by whatever version; raise ``ManifestError`` where that is not it."""
    try:
        found = json.loads(read_text(file))
        told = {name: found[name] for name in ("name", "when", "sha256", *(["groups"] if "groups" in found else []))}
        return {**told, "predictions": _predictions(found["predictions"])}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"{file}: is not what a study predicted ({type(error).__name__}: {error}); restore it, from version "
            "control or a copy: what was predicted is not written down anew"
        ) from error


def _predictions(registered: Sequence[Mapping[str, Any]]) -> list[Prediction] | None:
    """Return the predictions that were written down; None where they are none that this version knows."""
    try:
        return [Prediction(**one) for one in registered]
    except (TypeError, ValueError):
        return None
