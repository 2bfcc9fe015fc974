"""Shards as earlier versions of the schema wrote them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from records.episodes import Trajectory
from replay.schema import SCHEMAS, to_batch


def write_earlier(path: Path, version: str, *trajectories: Trajectory) -> None:
    """Write a shard of an earlier version, which has no column of what came later."""
    schema = SCHEMAS[version]
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for trajectory in trajectories:
            (row,) = to_batch(trajectory).to_pylist()
            kept = [{name: value for name, value in step.items() if name != "refused"} for step in row["steps"]]
            columns = {name: row[name] for name in schema.names} | {"steps": kept}
            writer.write_batch(pa.RecordBatch.from_pylist([columns], schema=schema))
