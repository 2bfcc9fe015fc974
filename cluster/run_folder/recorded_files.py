"""The files of episodes that stages depend on: shards, and the labels and first states beside them.

Owns which of a stage's files those are. Standard library and names only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cluster.run_folder.stage_files import StageEntry
from replay.first_states import SUFFIX as STATES_SUFFIX
from replay.labels import SUFFIX as LABELS_SUFFIX
from replay.shards import SUFFIX


def recorded_files(entries: Iterable[StageEntry]) -> dict[str, int]:
    """Return the shards and the files beside them that these stages depend on, with the first such stage's number."""
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        for name in (*shard_files(entry), *files_beside_shards(entry)):
            first.setdefault(Path(name).name, number)
    return first


def shard_files(entry: StageEntry) -> list[str]:
    """Return the shards that a stage depends on, as paths under the run folder."""
    return [name for name in entry.files if name.endswith(SUFFIX)]


def files_beside_shards(entry: StageEntry) -> list[str]:
    """Return the files of labels and of first states that a stage depends on, as paths under the run folder."""
    return [name for name in entry.files if name.endswith((LABELS_SUFFIX, STATES_SUFFIX))]
