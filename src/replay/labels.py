"""Labels on the disk: immutable Arrow files of what judges said of stored episodes, found again by scanning a folder.

Owns the layout of these files, their writing and the index over them. Invariants: a file is complete, named by its
content and never changed, as a shard is; a label belongs to one record of an episode and names that record's shard, so
that an episode that is played again is judged again; of several labels by one judge on one subject the first recorded
counts, then the first by its file's name, whatever is written later; unusable files are skipped and reported.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from records.labels import Label, LabelSubject
from replay.buffer import Entry, SkippedFile
from replay.row_files import read_rows, write_rows
from replay.shards import ShardError, translated

logger = logging.getLogger(__name__)

SUFFIX = ".labels"
SCHEMA = pa.schema(
    [
        pa.field("episode_id", pa.string(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("judge", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("values", pa.list_(pa.float32()), nullable=False),
        pa.field("shape", pa.list_(pa.int32()), nullable=False),
        pa.field("decision_threshold", pa.float64(), nullable=False),
        pa.field("descriptions", pa.list_(pa.string()), nullable=False),
        pa.field("evidence", pa.string(), nullable=False),
        pa.field("cost_usd", pa.float64(), nullable=False),
    ],
    metadata={b"waymark.kind": b"labels", b"waymark.version": b"1"},
)
_PLAIN = ("episode_id", "judge", "model", "prompt", "decision_threshold", "evidence", "cost_usd")
_Key = tuple[str, str, str, LabelSubject]


@dataclass(frozen=True, slots=True)
class StoredLabel:
    """A label, and the name of the shard that holds the record of the episode that was judged."""

    label: Label
    shard: str

    @property
    def key(self) -> _Key:
        """What there is one label for."""
        return self.label.episode_id, self.shard, self.label.judge, self.label.subject


class LabelStore:
    """Index of all label files in a folder."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._files: dict[Path, list[StoredLabel]] = {}
        self._labels: dict[_Key, tuple[Label, Path]] = {}
        self._recorded: dict[str, int] = {}
        self.skipped: tuple[SkippedFile, ...] = ()
        self.refresh()

    def record(self, files: Mapping[str, int]) -> None:
        """Let the labels in these files count before others, from now on: names with the first stage's number."""
        self._recorded = dict(files)
        self.refresh()

    def refresh(self) -> None:
        """Index files that are new, forget those that are gone, and try skipped files again; each is logged once."""
        skipped: list[SkippedFile] = []
        known, self._files = self._files, {}
        for path in sorted(self.directory.glob(f"[!.]*{SUFFIX}")):
            try:
                self._files[path] = known.get(path) or read_labels(path)
            except FileNotFoundError:
                logger.info("%s was removed while the folder was scanned", path)
            except ShardError as error:
                skipped.append(SkippedFile(path, error.found))
                if skipped[-1] not in self.skipped:
                    logger.warning("skipped %s: %s", path, error.found)
        self.skipped = tuple(skipped)
        self._labels = {}
        for path in sorted(self._files, key=lambda path: (self._recorded.get(path.name, math.inf), path.name)):
            for stored in self._files[path]:
                self._labels.setdefault(stored.key, (stored.label, path))

    def find(self, entry: Entry, judge: str, subject: LabelSubject) -> Label | None:
        """Return a judge's label of this record of an episode, None where there is none."""
        found = self._found(entry, judge, subject)
        return None if found is None else found[0]

    def file(self, entry: Entry, judge: str, subject: LabelSubject) -> Path | None:
        """Return the file that holds this label, None where there is none."""
        found = self._found(entry, judge, subject)
        return None if found is None else found[1]

    def judges(self, subject: LabelSubject) -> tuple[str, ...]:
        """Return the names of all judges with labels of this subject, sorted."""
        return tuple(sorted({judge for _, _, judge, about in self._labels if about is subject}))

    def write(self, stem: str, labels: Sequence[StoredLabel]) -> Path:
        """Write labels durably as one file of this folder and return its path; they are in the index then."""
        path = write_rows(self.directory, stem, SUFFIX, SCHEMA, [_row(stored) for stored in labels])
        self.refresh()
        return path

    def _found(self, entry: Entry, judge: str, subject: LabelSubject) -> tuple[Label, Path] | None:
        return self._labels.get((entry.episode_id, entry.shard.name, judge, subject))


def read_labels(path: Path) -> list[StoredLabel]:
    """Return the labels of one file, in order.

    Raises:
        ShardError: it is damaged, foreign or of another version; ``found`` says what it is.
    """
    rows = read_rows(path, SCHEMA, "labels")
    with translated(path):
        return [_stored(row) for row in rows]


def _row(stored: StoredLabel) -> dict[str, Any]:
    label = stored.label
    return {
        **{name: getattr(label, name) for name in _PLAIN},
        "shard": stored.shard,
        "subject": str(label.subject),
        "values": label.values.ravel(),
        "shape": list(label.values.shape),
        "descriptions": list(label.descriptions),
    }


def _stored(row: Mapping[str, Any]) -> StoredLabel:
    label = Label(
        **{name: row[name] for name in _PLAIN},
        subject=LabelSubject(row["subject"]),
        values=np.asarray(row["values"], dtype=np.float32).reshape(row["shape"]),
        descriptions=tuple(row["descriptions"]),
    )
    return StoredLabel(label, row["shard"])
