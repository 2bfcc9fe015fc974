"""First states on the disk: what a policy would see first of tasks that nobody played, in immutable Arrow files.

Owns the layout of these files, their writing and their reading. They lie beside the shards. Invariants: a file is
complete, named by its content and never changed, as a shard is; a prompt is exactly what the policy would be sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from records.episodes import IntArray
from replay.row_files import read_rows, write_rows
from replay.shards import ShardError

logger = logging.getLogger(__name__)

SUFFIX = ".states"
SCHEMA = pa.schema(
    [
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
    ],
    metadata={b"waymark.kind": b"first_states", b"waymark.version": b"1"},
)


@dataclass(frozen=True, slots=True)
class FirstState:
    """A task's first state: ``prompt_ids`` (P,) int32 is the prompt of its first decision."""

    task_id: str
    prompt_ids: IntArray


def write_first_states(directory: Path, states: Sequence[FirstState]) -> Path:
    """Write first states durably as one file of this folder and return its path."""
    rows = [{"task_id": state.task_id, "prompt_ids": state.prompt_ids} for state in states]
    return write_rows(directory, "first", SUFFIX, SCHEMA, rows)


def read_first_states(path: Path) -> list[FirstState]:
    """Return the first states of one file, in order.

    Raises:
        ShardError: it is damaged, foreign or of another version; ``found`` says what it is.
        FileNotFoundError: where there is no such file.
    """
    rows = read_rows(path, SCHEMA, "first states")
    return [FirstState(row["task_id"], np.asarray(row["prompt_ids"], dtype=np.int32)) for row in rows]


def first_states_in(directory: Path) -> dict[str, list[FirstState]]:
    """Return the first states of every usable file in this folder, by the files' names; others are told and skipped."""
    found = {}
    for path in sorted(directory.glob(f"[!.]*{SUFFIX}")):
        try:
            found[path.name] = read_first_states(path)
        except ShardError as error:
            logger.warning("skipped %s: %s", path, error.found)
    return found
