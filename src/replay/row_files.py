"""Small tables on the disk beside the shards: immutable Arrow files of rows.

Owns how they are written and read. Invariants: a file is complete, named by its content and never changed, as a shard
is; whatever is damaged, foreign or of another version is refused with what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from records.texts import storable
from replay.shards import TornShardError, require_file, require_no_nulls, translated, verify_digest, write_named


def write_rows(folder: Path, stem: str, suffix: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows durably as one file of this folder and return its path; texts are stored as UTF-8 can hold them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([_storable(row) for row in rows], schema=schema))
    path, _ = write_named(folder, stem, suffix, bytes(sink.getvalue()))
    return path


def read_rows(path: Path, schema: pa.Schema, what: str) -> list[dict[str, Any]]:
    """Return the rows of one file, in order; ``what`` names what they are.

    Raises:
        ShardError: it is damaged, foreign or of another version; ``found`` says what it is.
        FileNotFoundError: where there is no such file.
    """
    require_file(path)
    verify_digest(path)
    with translated(path), pa.memory_map(str(path), "rb") as source:
        table = pa.ipc.open_file(source).read_all()
        if not table.schema.equals(schema, check_metadata=True):
            found = f"no file of {what} that this version writes ({table.schema.names[:5]})"
            raise TornShardError(path, found, "move it out of the folder")
        table.validate(full=True)
        for field in schema:
            for chunk in table.column(field.name).chunks:
                require_no_nulls(field, chunk)
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {name: _storable(part) for name, part in value.items()}
    return [_storable(part) for part in value] if isinstance(value, list | tuple) else value
