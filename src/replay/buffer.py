"""The replay buffer: an index of a folder of shards, rebuilt by scanning it.

Owns the index in memory and nothing on disk: the shards are the truth. Invariants: the index is the same
for the same set of shards, in whatever order they were written; each episode id is there once; a shard that
comes late, from a worker that was taken for dead, never takes the place of one that was recorded before; unusable
files are skipped and reported, never fatal; trajectories are read when they are asked for.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from records.episodes import EpisodeHeader, Source, Trajectory
from records.failures import FailureKind
from replay.shards import SUFFIX, ShardError, ShardReader, translated

logger = logging.getLogger(__name__)

_COLUMNS = (*(field.name for field in fields(EpisodeHeader)), "outcome", "failure")


@dataclass(frozen=True, slots=True)
class Entry(EpisodeHeader):
    """Where an episode lies, and what can be asked about it without reading its steps."""

    outcome: float | None
    failure: FailureKind | None
    shard: Path
    position: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that is not a usable shard, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """An episode id that came up more than once: the shard whose record counts, and one that does not."""

    episode_id: str
    used: Path
    ignored: Path


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan found: usable shards, episodes, skipped files, and duplicates."""

    shards: int
    episodes: int
    skipped: tuple[SkippedFile, ...]
    duplicates: tuple[Duplicate, ...]


class ReplayBuffer:
    """Index of all shards under a folder; evaluation episodes are held but never offered for training."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._shards: dict[Path, list[Entry]] = {}
        self._sources: dict[Path, frozenset[str]] = {}
        self._entries: dict[str, Entry] = {}
        self._recorded: dict[str, int] = {}
        self.scan = Scan(0, 0, (), ())
        self.refresh()

    def record(self, shards: Mapping[str, int]) -> None:
        """Let the records in these shards count before any other of the same episodes, from now on.

        ``shards`` are all that were recorded: file names with the number of the first stage that did. A late record may
        lie in a shard that a later stage needs for another episode; so of two recorded ones the earlier stage's counts.
        """
        self._recorded = dict(shards)
        self.refresh()

    @property
    def shards(self) -> frozenset[str]:
        """File names of the usable shards."""
        return frozenset(path.name for path in self._shards)

    def held(self) -> dict[Path, tuple[str, ...]]:
        """Return the episode ids in each usable shard, those that do not count included."""
        return {path: tuple(entry.episode_id for entry in entries) for path, entries in self._shards.items()}

    def packed(self) -> dict[Path, frozenset[str]]:
        """Return the packed shards (``replay.packing``), with the names of those that each was made from."""
        return {path: self._sources[path] for path in self._shards if self._sources[path]}

    def refresh(self) -> Scan:
        """Index shards that are new, forget those that are gone, and try skipped files again; each is logged once."""
        skipped: list[SkippedFile] = []
        present = sorted(self.directory.rglob(f"*{SUFFIX}")) if self.directory.exists() else []
        known, self._shards = self._shards, {}
        for path in present:
            try:
                if path not in known:
                    known[path], self._sources[path] = _index(path)
                self._shards[path] = known[path]
            except FileNotFoundError:
                logger.info("%s was removed while the folder was scanned", path)
            except ShardError as error:
                skipped.append(SkippedFile(path, str(error)))
                if skipped[-1] not in self.scan.skipped:
                    logger.warning("skipped %s", error)
        duplicates = self._resolve()
        self.scan = Scan(len(self._shards), len(self._entries), tuple(skipped), tuple(duplicates))
        return self.scan

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, episode_id: str) -> bool:
        return episode_id in self._entries

    def entry(self, episode_id: str) -> Entry:
        """Return what the index knows of an episode; raise ``LookupError`` where it is unknown."""
        if episode_id not in self._entries:
            raise LookupError(
                f"episode {episode_id}: expected it in one of {len(self._shards)} shards under {self.directory}, "
                "found nothing; refresh the buffer, or run the episode again"
            )
        return self._entries[episode_id]

    def ids(
        self,
        *,
        sources: Collection[Source] = tuple(Source),
        phases: Collection[int] | None = None,
    ) -> tuple[str, ...]:
        """Return the ids of all episodes of these sources and phases (None: all), sorted."""
        return tuple(e.episode_id for e in self._select(sources, phases))

    def successes(
        self, *, sources: Collection[Source] = (Source.ROLLOUT,), phases: Collection[int] | None = None
    ) -> tuple[str, ...]:
        """Return the ids of successes (the buffer B of MiRA's Alg. 2), sorted."""
        return tuple(e.episode_id for e in self._select(sources, phases) if e.outcome == 1.0)

    def failures(
        self, *, sources: Collection[Source] = (Source.ROLLOUT,), phases: Collection[int] | None = None
    ) -> tuple[Entry, ...]:
        """Return the episodes judged a failure (F of MiRA's Alg. 2), not those without verdict, by their ids."""
        return tuple(e for e in self._select(sources, phases) if e.outcome is not None and e.outcome != 1.0)

    def trajectory(self, episode_id: str) -> Trajectory:
        """Return one episode; raise ``LookupError`` where it is unknown."""
        return self.trajectories([episode_id])[0]

    def trajectories(self, episode_ids: Iterable[str], *, pages: bool = True) -> list[Trajectory]:
        """Return episodes in the order asked for, opening each shard once; raise ``LookupError`` for unknown ids.

        Without ``pages`` their steps' observations are empty (``ShardReader.trajectory``).
        """
        entries = [self.entry(episode_id) for episode_id in episode_ids]
        by_shard: dict[Path, set[int]] = {}
        for entry in entries:
            by_shard.setdefault(entry.shard, set()).add(entry.position)
        found: dict[tuple[Path, int], Trajectory] = {}
        for path, positions in by_shard.items():
            with ShardReader(path, verify=False) as reader:  # the digest was compared when it was indexed
                found.update({(path, at): reader.trajectory(at, pages=pages) for at in sorted(positions)})
        return [found[entry.shard, entry.position] for entry in entries]

    def stream(self, episode_ids: Iterable[str]) -> Iterator[Trajectory]:
        """Yield episodes shard by shard, holding one at a time; raise ``LookupError`` for unknown ids at once."""
        by_shard: dict[Path, list[int]] = {}
        for entry in map(self.entry, episode_ids):
            by_shard.setdefault(entry.shard, []).append(entry.position)
        return self._read(by_shard)

    @staticmethod
    def _read(by_shard: Mapping[Path, list[int]]) -> Iterator[Trajectory]:
        for path, positions in by_shard.items():
            with ShardReader(path, verify=False) as reader:  # the digest was compared when it was indexed
                yield from map(reader.trajectory, sorted(positions))

    def _select(self, sources: Collection[Source], phases: Collection[int] | None) -> list[Entry]:
        chosen = (e for e in self._entries.values() if e.source in sources and (phases is None or e.phase in phases))
        return sorted(chosen, key=lambda entry: entry.episode_id)

    def _resolve(self) -> list[Duplicate]:
        """Let one record count for each episode id: the first recorded, then those with a verdict, then by name."""
        self._entries, duplicates = {}, []
        everything = [entry for entries in self._shards.values() for entry in entries]
        for entry in sorted(everything, key=self._precedence):
            used = self._entries.setdefault(entry.episode_id, entry)
            if used is not entry and not self._is_one_record(used, entry):
                duplicates.append(Duplicate(entry.episode_id, used.shard, entry.shard))
        return duplicates

    def _is_one_record(self, one: Entry, other: Entry) -> bool:
        """Return whether one of them lies in a packed shard that was made from the other's, which is removed next."""
        return other.shard.name in self._sources[one.shard] or one.shard.name in self._sources[other.shard]

    def _precedence(self, entry: Entry) -> tuple[str, float, bool, str, int]:
        shard = entry.shard.name
        return entry.episode_id, self._recorded.get(shard, math.inf), entry.outcome is None, shard, entry.position


def _index(path: Path) -> tuple[list[Entry], frozenset[str]]:
    """Return the episodes of a shard, and the names of those that it was made from."""
    with ShardReader(path) as reader:
        entries = []
        for position in range(len(reader)):
            row = reader.header(position, _COLUMNS)
            failure = row.pop("failure")
            with translated(path):
                kind = None if failure is None else FailureKind(failure["kind"])
                row["source"] = Source(row["source"])
            entries.append(Entry(**row, failure=kind, shard=path, position=position))
        return entries, frozenset(reader.sources)
