"""What a finished run decided and learned, as digests and numbers that can be kept in a file.

Owns the choice of facts. Reads Arrow and JSON and none of Waymark's own code, so that a run of another commit can be
read as well. Left out is what a clock or a scheduler decides: times, speeds, workers, which episodes share a shard.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

Facts = dict[str, dict[str, Any]]
"""Facts by kind, and within a kind by name."""

_RENAMED = {"subgoals": "milestones", "final_subgoals": "final_milestones", "notice": "feedback"}
"""Columns that were called otherwise in shards of version 1."""
_BY_CHANCE = {"worker", "seconds", "browser_s", "policy_s", "group"}
_LATER = {"refused", "final_state"}
"""Columns that earlier versions of shards do not have; without a value they say nothing."""
_SPEEDS = ("seconds", "tokens_per_s")


def run_facts(out: Path) -> Facts:
    """Return the facts of the run folder ``out``: its episodes, its numbers by phase, its weights."""
    return {
        "episodes": dict(_episodes(out / "episodes")),
        "numbers": dict(_numbers(json.loads((out / "summary.json").read_text(encoding="utf-8"))["phases"])),
        "tensors": {path.relative_to(out).as_posix(): _sha256(path) for path in sorted(out.rglob("*.safetensors"))},
    }


def _episodes(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each episode's id and a digest of everything in it, token ids and log-probabilities included."""
    for path in sorted(folder.rglob("*.arrow")):
        with pa.memory_map(str(path), "rb") as source:
            rows = pa.ipc.open_file(source).read_all().to_pylist()
        for row in rows:
            yield row["episode_id"], hashlib.sha256(json.dumps(_kept(row), sort_keys=True).encode()).hexdigest()[:24]


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        told = {name: held for name, held in value.items() if held or name not in _LATER}
        return {_RENAMED.get(name, name): _kept(held) for name, held in told.items() if name not in _BY_CHANCE}
    return [_kept(held) for held in value] if isinstance(value, list) else value


def _numbers(phases: list[dict[str, Any]]) -> Iterator[tuple[str, float | None]]:
    """Yield the losses, statistics and results of each phase; the shortest text that gives a number back names it."""
    for phase in phases:
        kept = {name: value for name, value in phase.items() if name != "env_steps_per_second"}
        for name, value in _leaves(kept, f"phase {phase['phase']}"):
            if not any(part in _SPEEDS for part in name.split(".")):
                yield name, value


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _leaves(held, f"{name}.{key}")
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from _leaves(held, f"{name}.{index}")
    else:
        yield name, value


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:24]
