"""The run's numbers as one JSON file, ``OUT/summary.json``.

Owns the schema that benchmarks and users read; it is described field by field in
``docs/reference/summary.md`` and only ever grows within one ``schema`` number. Invariants: a number
that does not exist is ``null``, never 0 and never NaN; the file is replaced whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.results import EpisodeCounts, PhaseSummary
from cluster.errors import ManifestError
from cluster.run_folder.durable import write_atomic
from judges.llm.accounts import ModelAccount
from records.durable import NotAFile, read_json, read_text
from records.json_numbers import finite

SCHEMA = 1
FILE_NAME = "summary.json"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The run; ``complete`` says whether each phase of the recipe is in it.

    ``seconds`` is its stages' wall time, each in the start that completed it.
    ``judging`` is what each language model was asked, and what it cost.
    """

    name: str
    config_hash: str
    seeds: dict[str, int]
    versions: dict[str, str | None]
    phases: tuple[PhaseSummary, ...]
    episodes: EpisodeCounts
    complete: bool = False
    seconds: float = 0.0
    judging: tuple[ModelAccount, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the summary in the documented schema."""
        data = asdict(self)
        counts = data.pop("episodes")
        data["episodes"] = {
            "dispatched": counts["dispatched"],
            "completed": counts["completed"],
            "by_failure": counts["failed"],
        }
        written: dict[str, Any] = finite({"schema": SCHEMA, **data})
        return written


def write_summary(out: Path, summary: RunSummary) -> Path:
    """Write ``OUT/summary.json`` and return its path."""
    path = out / FILE_NAME
    write_atomic(path, _text(summary))
    return path


def renew_summary(out: Path, summary: RunSummary) -> bool:
    """Write ``OUT/summary.json`` where it is gone or says anything else; return whether it was written."""
    try:
        whole = read_text(out / FILE_NAME) == _text(summary)
    except (FileNotFoundError, NotAFile, ValueError):
        whole = False
    if not whole:
        write_summary(out, summary)
    return not whole


def read_summary(out: Path) -> dict[str, Any]:
    """Return the JSON of a run's summary; raise ``ManifestError`` where it is missing or of another schema."""
    path = out / FILE_NAME
    try:
        data = read_json(path)
    except (OSError, ValueError) as error:
        raise ManifestError(f"cannot read {path}: {error}") from error
    if data.get("schema") != SCHEMA:
        raise ManifestError(f"{path}: expected summary schema {SCHEMA}, found {data.get('schema')}")
    return data


def _text(summary: RunSummary) -> str:
    return json.dumps(summary.to_json(), indent=1, allow_nan=False) + "\n"
