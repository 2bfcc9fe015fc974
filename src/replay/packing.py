"""Packing: the many small shards of a stage become few compressed ones, which hold the same records.

Owns ``pack`` and ``tidy``. A packed shard is a shard: named by its content, one record batch an episode, compressed by
zstd, and it names the shards that it was made from (its *sources*) in its own metadata. Invariants: no record is in
memory beside one other; a packed shard counts once a stage has recorded it, and its sources are removed only then; one
that was not recorded is removed while its sources are there. So a kill at any moment leaves every record.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from records.durable import force_to_disk
from replay.buffer import ReplayBuffer
from replay.schema import SCHEMA, SOURCES_KEY, as_written_now
from replay.shards import SUFFIX, ShardReader, named_by_digest

STEM = "packed"
_LARGEST = 256 << 20
"""Bytes of sources in one packed shard: large enough that few are left, small enough to be fetched side by side."""
_ZSTD_LEVEL = 3


def pack(buffer: ReplayBuffer, episode_ids: Collection[str], recorded: Collection[str]) -> list[str]:
    """Write packed shards of the unrecorded shards that hold nothing but these episodes; return the new files' names.

    ``recorded`` are file names that earlier stages depend on: they stay as they are. ``buffer`` knows the new shards
    afterwards, and the sources are still there.
    """
    tidy(buffer, recorded)
    wanted = set(episode_ids)
    free = {path: ids for path, ids in buffer.held().items() if path.name not in recorded}
    sources = sorted(path for path, ids in free.items() if path.parent == buffer.directory and set(ids) <= wanted)
    names = [_write(buffer.directory, group).name for group in _grouped(sources)]
    buffer.refresh()
    return names


def tidy(buffer: ReplayBuffer, recorded: Collection[str]) -> None:
    """Remove what a recorded packed shard was made from, and packed shards that no stage recorded in time."""
    gone: list[Path] = []
    for path, names in buffer.packed().items():
        sources = [path.with_name(name) for name in sorted(names)]
        there = [source for source in sources if source.is_file()]
        if path.name in recorded:
            gone += [source for source in there if source.name not in recorded]
        elif there == sources:
            gone.append(path)
    for path in gone:
        path.unlink(missing_ok=True)
    if gone:
        buffer.refresh()


def _grouped(sources: Sequence[Path]) -> Iterator[list[Path]]:
    group: list[Path] = []
    size = 0
    for path in sources:
        group.append(path)
        size += path.stat().st_size
        if size >= _LARGEST:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Hashing:
    """A file that hashes what is written to it, so that nothing is read again."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, content: Any) -> int:
        """Write and hash."""
        self.digest.update(content)
        return int(self._file.write(content))

    def flush(self) -> None:
        """Hand what is written to the system."""
        self._file.flush()


def _write(directory: Path, sources: Sequence[Path]) -> Path:
    """Write one packed shard durably, batch by batch."""
    named = {**(SCHEMA.metadata or {}), SOURCES_KEY: json.dumps([path.name for path in sources]).encode()}
    schema = SCHEMA.with_metadata(named)
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", _ZSTD_LEVEL))
    scratch = directory / f".{STEM}.{uuid4().hex}.tmp"
    try:
        with scratch.open("xb") as file:
            hashing = _Hashing(file)
            with pa.ipc.new_file(pa.PythonFile(hashing, mode="w"), schema, options=options) as writer:
                for path in sources:
                    with ShardReader(path, verify=False) as reader:  # the digest was compared when it was indexed
                        for batch in reader.batches():
                            writer.write_batch(as_written_now(batch))
            file.flush()
            os.fsync(file.fileno())
        path = directory / named_by_digest(STEM, SUFFIX, hashing.digest.hexdigest())
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    force_to_disk(directory)
    return path
