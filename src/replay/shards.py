"""Shards: immutable Arrow IPC files of trajectories, written so that a crash cannot leave half of one.

Owns what a shard is, its writing (by ``records.durable``) and its memory-mapped reading.
Invariants: a file under its final name is complete; the name ends in the first 32 hexadecimal digits of
the content's SHA-256, so that writing the same episodes twice gives one file and a damaged file betrays
itself; each record batch is one episode, so that one episode can be read without the rest. A shard is
never changed in place: arrays read from it are views of the mapped file, or of what was decompressed of a packed one
(``replay.packing``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from records.durable import NotAFile, open_file, replace_file
from records.episodes import Trajectory
from replay.schema import KIND, KIND_KEY, SCHEMA, SCHEMAS, SOURCES_KEY, VERSION_KEY, from_batch, to_batch

SUFFIX = ".arrow"
_DIGEST_IN_NAME = re.compile(r"-([0-9a-f]{32})\.[a-z]+$")
_DIGITS = 32
_ASIDE = "move it out of the folder"
_AGAIN = "delete it; its run, started again, plays again what its stages need of it"


class ShardError(Exception):
    """A file cannot be used as a shard; ``path`` says which one, the text what to do."""

    def __init__(self, path: Path, found: str, advice: str) -> None:
        super().__init__(path, found, advice)
        self.path = path
        self.found = found
        self.advice = advice

    def __str__(self) -> str:
        *earlier, newest = SCHEMAS
        versions = f"{', '.join(earlier)} or {newest}"
        return f"{self.path}: expected a trajectory shard of version {versions}, found {self.found}; {self.advice}"


class TornShardError(ShardError):
    """The file is cut short, damaged, or not readable as Arrow at all."""


class ForeignShardError(ShardError):
    """Not a shard of trajectories: sound Arrow of another kind, or no file at all."""


class ShardVersionError(ShardError):
    """The shard was written under another version of the schema."""


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """A shard that is durable: its path, the SHA-256 of its bytes, and its episode ids in order."""

    path: Path
    sha256: str
    episodes: tuple[str, ...]


def write_shard(directory: Path | str, trajectories: Sequence[Trajectory], stem: str = "shard") -> ShardInfo:
    """Write trajectories to ``directory/STEM-DIGEST.arrow`` and return once they are durable.

    Raises:
        ValueError: for no trajectories at all, or two with one episode id.
        TypeError: for arrays of the wrong type (see ``replay.schema.to_batch``).
        OSError: where the disk refuses; no file of the final name is left then.
    """
    episodes = tuple(t.episode_id for t in trajectories)
    if not episodes or len(set(episodes)) != len(episodes):
        raise ValueError(f"shard: expected at least one trajectory and distinct episode ids, found {list(episodes)}")
    return ShardInfo(*write_named(Path(directory), stem, SUFFIX, _serialise(trajectories)), episodes)


def write_named(directory: Path, stem: str, suffix: str, content: bytes) -> tuple[Path, str]:
    """Write ``directory/STEM-DIGEST.SUFFIX`` durably; return its path and the SHA-256 of its bytes."""
    digest = hashlib.sha256(content).hexdigest()
    path = directory / named_by_digest(stem, suffix, digest)
    replace_file(path, content)
    return path, digest


def named_by_digest(stem: str, suffix: str, digest: str) -> str:
    """Return the name of a file whose content has this SHA-256."""
    return f"{stem}-{digest[:_DIGITS]}{suffix}"


def digest_in_name(name: str) -> str:
    """Return the first 32 hexadecimal digits of a file's SHA-256 from its name; raise ``ValueError`` without any."""
    found = _DIGEST_IN_NAME.search(name)
    if found is None:
        raise ValueError(f"{name!r:.200}: expected a file that is named by its content")
    return found[1]


def read_shard(path: Path | str, *, verify: bool = True) -> list[Trajectory]:
    """Return all trajectories of a shard; token arrays are read-only views of the mapped file.

    ``verify`` compares the content with the digest in the file's name, where there is one.

    Raises:
        TornShardError, ForeignShardError, ShardVersionError: see there.
        FileNotFoundError: where there is no such file.
    """
    with ShardReader(path, verify=verify) as reader:
        return [reader.trajectory(position) for position in range(len(reader))]


class ShardReader:
    """An open shard, episode by episode; nothing is read from the disk before it is asked for.

    Arrays of a trajectory stay valid after the reader is closed: they keep the mapping alive.
    """

    def __init__(self, path: Path | str, *, verify: bool = True) -> None:
        self.path = Path(path)
        require_file(self.path)
        if verify:
            verify_digest(self.path)
        with ExitStack() as opened:
            with translated(self.path):
                self._source = opened.enter_context(pa.memory_map(str(self.path), "rb"))
                self._reader = pa.ipc.open_file(self._source)
            _check_schema(self.path, self._reader.schema)
            self._headers: dict[tuple[str, ...], Any] = {}
            self._opened = opened.pop_all()

    def __enter__(self) -> ShardReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self._reader.num_record_batches)

    def close(self) -> None:
        """Release the file; safe to call twice."""
        self._opened.close()

    def header(self, position: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return some of an episode's own columns as plain values; no other column is read, nor decompressed."""
        batch = self._batch(position, self._projected(tuple(columns)))
        with translated(self.path):
            return {name: batch.column(name)[0].as_py() for name in columns}

    def trajectory(self, position: int, *, pages: bool = True) -> Trajectory:
        """Return one episode; its token arrays are read-only views of the shard's memory.

        ``pages`` False leaves the observations empty, half of a record or more, which learning does not read.
        """
        batch = self._batch(position, self._reader)
        with translated(self.path):
            return from_batch(batch, pages=pages)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield each episode's record as it is."""
        for position in range(len(self)):
            yield self._batch(position, self._reader)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the shards that a packed one was made from (``replay.packing``); none for others."""
        with translated(self.path):
            names = json.loads((self._reader.schema.metadata or {}).get(SOURCES_KEY, b"[]"))
            if not isinstance(names, list) or any(type(name) is not str or Path(name).name != name for name in names):
                raise ValueError("its sources are no list of names of files")
            return tuple(names)

    def _projected(self, columns: tuple[str, ...]) -> Any:
        """Return a reader of these columns alone."""
        if columns not in self._headers:
            numbers = sorted(SCHEMA.get_field_index(name) for name in columns)
            with translated(self.path):
                options = pa.ipc.IpcReadOptions(included_fields=numbers)
                self._headers[columns] = pa.ipc.open_file(self._source, options=options)
        return self._headers[columns]

    def _batch(self, position: int, reader: Any) -> pa.RecordBatch:
        with translated(self.path):
            batch = reader.get_batch(position)
            batch.validate(full=True)
            for field, column in zip(batch.schema, batch.columns, strict=True):
                require_no_nulls(field, column)
        if batch.num_rows != 1:
            raise _torn(self.path, f"{batch.num_rows} rows in record batch {position} instead of one")
        return batch


def require_no_nulls(field: pa.Field, values: pa.Array) -> None:
    """Refuse nulls where the schema allows none, which Arrow's own validation does not; raise ``ValueError``."""
    if not field.nullable and values.null_count:
        raise ValueError(f"{field.name} is null")
    if pa.types.is_struct(field.type):
        for number in range(field.type.num_fields):
            part = field.type.field(number)
            there = values.filter(values.is_valid()) if values.null_count else values
            require_no_nulls(part, there.field(part.name))
    elif pa.types.is_list(field.type):
        require_no_nulls(field.type.value_field, values.flatten())


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what Arrow raises on damaged bytes into ``TornShardError``; the disk's own errors pass."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        # ArrowInvalid, bad UTF-8 and unknown enum values are ValueErrors; what is null or of another kind a TypeError.
        raise _torn(path, f"unreadable Arrow data ({error})") from error
    except pa.ArrowException as error:
        raise _torn(path, f"unreadable Arrow data ({error})") from error
    except OSError as error:
        # Arrow reports damaged messages as OSError without an error number; the disk's own have one.
        if error.errno is not None:
            raise
        raise _torn(path, f"unreadable Arrow data ({error})") from error


def _serialise(trajectories: Sequence[Trajectory]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        for trajectory in trajectories:
            writer.write_batch(to_batch(trajectory))
    return bytes(sink.getvalue())


def require_file(path: Path) -> None:
    """Refuse what could not be read as a file, and a link that leads nowhere."""
    try:
        open_file(path).close()
    except NotAFile as error:
        raise ForeignShardError(path, str(error).rpartition("found ")[2], _ASIDE) from error
    except OSError as error:
        if path.is_symlink():
            raise ForeignShardError(path, f"a link that leads nowhere ({error.strerror})", _ASIDE) from error
        raise


def verify_digest(path: Path) -> None:
    """Compare a file's content with the digest in its name, where there is one; raise ``TornShardError``."""
    named = _DIGEST_IN_NAME.search(path.name)
    if named is None:
        return
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest[:_DIGITS] != named[1]:
        raise _torn(path, f"content with digest {digest[:_DIGITS]} under a name that says {named[1]}")


def _check_schema(path: Path, schema: pa.Schema) -> None:
    if (schema.metadata or {}).get(KIND_KEY) != KIND:
        raise ForeignShardError(path, f"Arrow data of another kind ({schema.names[:5]}…)", _ASIDE)
    version = _version(schema)
    if version not in SCHEMAS:
        raise ShardVersionError(path, f"version {version!r}", "read it with the release that wrote it")
    if not schema.equals(SCHEMAS[version]):
        raise TornShardError(path, "other columns than this version has", _AGAIN)


def _version(schema: pa.Schema) -> str:
    return (schema.metadata or {}).get(VERSION_KEY, b"").decode("utf-8", "replace")


def _torn(path: Path, found: str) -> TornShardError:
    return TornShardError(path, found, _AGAIN)
