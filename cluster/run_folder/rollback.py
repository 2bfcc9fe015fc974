"""Back to before a damage: which stages can still stand, and how the others are set aside and done again.

Owns ``OUT/rollbacks``: a record of each rollback (``0001.json``) and beside it the folder ``0001`` with what was set
aside, each thing at the place it had in the run folder. Invariants: nothing is deleted; a record names what it moves
and is durable before anything moves, so that the next start finishes what a killed one began; at each moment the
stages that are left are those of a run that was stopped there. Whole shards stay, for their episodes need not be
played twice, but only together with the weights that decided them. Imports neither torch nor Ray.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cluster.errors import ManifestError
from cluster.monitors.monitor import Monitors
from cluster.run_folder.durable import sha256_file, write_atomic
from cluster.run_folder.layout import REPORT, ROLLBACKS, STAGES, RunFolders
from cluster.run_folder.manifest import RunManifest, changed_files
from cluster.run_folder.recorded_files import files_beside_shards, recorded_files, shard_files
from cluster.run_folder.stage_files import StageEntry, stage_folders
from cluster.run_folder.stage_results import Published, WithCheckpoint
from cluster.run_folder.starts import note_rollback
from cluster.run_folder.summary import FILE_NAME as SUMMARY
from records.durable import force_to_disk, read_text
from records.episodes import Source, newest_version
from replay.buffer import ReplayBuffer, SkippedFile

logger = logging.getLogger(__name__)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Rollback:
    """One rollback: ``stages`` are done again, after the first ``kept`` ones, because of ``why``.

    ``seconds`` is what these stages had taken; ``published`` has the SHA-256 of their weights by
    version; ``moved`` are paths under the run folder, in the order in which they are moved.
    """

    number: int
    start: int
    kept: int
    stages: tuple[tuple[int, str], ...]
    seconds: float
    why: tuple[str, ...]
    published: dict[str, str]
    moved: tuple[str, ...]
    done: bool = False

    @property
    def line(self) -> str:
        """What a person reads."""
        (phase, stage), more = self.stages[0], len(self.why) - _SHOWN
        why = [*self.why[:_SHOWN], *([f"{more} files more"] if more > 0 else [])]
        return (
            f"rolled back to before phase {phase} {stage}: {'; '.join(why)}. Done again: {len(self.stages)} of "
            f"{self.kept + len(self.stages)} stages, which took {self.seconds:.1f} s; whole episodes are kept. What "
            f"was set aside is in {ROLLBACKS}/{self.number:04d}"
        )


def roll_back(manifest: RunManifest, buffer: ReplayBuffer, monitors: Monitors) -> list[Rollback]:
    """Roll the run back to where it can go on from; finish first what a killed start began. Return what was done."""
    done = [_carry_out(manifest, monitors, begun) for begun in read_rollbacks(manifest.out) if not begun.done]
    kept, why = standing(manifest, buffer.shards)
    if why:
        planned = _plan(manifest, kept, why)
        _write(manifest.out, planned)
        done.append(_carry_out(manifest, monitors, planned))
    return done


def standing(manifest: RunManifest, shards: Collection[str]) -> tuple[int, list[str]]:
    """Return how many stages, from the first, a run can go on after, and why not after all of them.

    Every shard that they recorded must be among the usable ``shards``, every file of labels and of first states as it
    was written, and the newest of their checkpoints whole. The first stage needs nothing, so that 0 is always among the
    answers.
    """
    entries = manifest.entries()
    lost = [
        (at, name) for at, entry in enumerate(entries) for name in shard_files(entry) if Path(name).name not in shards
    ]
    lost += [(at, name) for at, entry in enumerate(entries) for name in _changed_beside(manifest.out, entry)]
    kept = min((at for at, _ in lost), default=len(entries))
    why = [f"{name} is gone or damaged" for _, name in lost]
    while kept:
        newest = max(at for at, entry in enumerate(entries[:kept]) if isinstance(entry.result, WithCheckpoint))
        changed = changed_files(manifest.out, entries[newest])
        if not changed:
            break
        kept, why = newest, why + changed
    return kept, why


def _changed_beside(out: Path, entry: StageEntry) -> list[str]:
    """Return the files of labels and of first states of a stage that are gone or have changed."""
    named = files_beside_shards(entry)
    return [n for n in named if not (out / n).is_file() or sha256_file(out / n) != entry.files[n]]


def set_unusable_aside(skipped: Iterable[SkippedFile]) -> None:
    """Rename files that cannot be read, beside what they are, once no stage depends on them."""
    for found in skipped:
        found.path.rename(found.path.with_name(found.path.name + ".unusable"))


def keep_episodes_of(version: int, checksum: str, manifest: RunManifest, buffer: ReplayBuffer) -> str:
    """Set aside what other weights of this version played, now that it is published again with this ``checksum``.

    On a machine that does not repeat exactly, an actor that is trained again is another one. Episodes that the former
    one or its successors decided are then neither trained on nor counted. Return a line that says so, or an empty one.
    """
    before = [found for found in read_rollbacks(manifest.out) if str(version) in found.published]
    if not before or before[-1].published[str(version)] == checksum:
        return ""
    aside, recorded, count = _folder(manifest.out, before[-1]), recorded_files(manifest.entries()), 0
    while shards := _decided_by(version, buffer, recorded):
        for path, episodes in shards.items():
            _move(path, aside / path.relative_to(manifest.out))
            count += episodes
        buffer.refresh()
    line = (
        f"version {version} was trained again and came out otherwise than before the rollback: {count} episodes that "
        f"the former weights decided are set aside in {ROLLBACKS}/{aside.name} and played again"
    )
    logger.warning(line)
    return line


def read_rollbacks(out: Path) -> list[Rollback]:
    """Return the records of a run's rollbacks, oldest first; raise ``ManifestError`` naming one that is damaged."""
    return [_read(path) for path in sorted(RunFolders(out).rollbacks.glob("[0-9]*.json"))]


def _plan(manifest: RunManifest, kept: int, why: list[str]) -> Rollback:
    """Return what must move so that only the first ``kept`` stages are left, the newest stage first."""
    out, entries = manifest.out, manifest.entries()
    needed = {"/".join(name.split("/")[:2]) for entry in entries[:kept] for name in entry.files}
    made = [path.relative_to(out).as_posix() for path in RunFolders(out).learned()]
    stages = [f"{STAGES}/{path.name}" for path in reversed(stage_folders(out)[kept:])]
    gone = entries[kept:]
    published = [entry.result.weights for entry in gone if isinstance(entry.result, Published)]
    earlier = read_rollbacks(out)
    return Rollback(
        number=earlier[-1].number + 1 if earlier else 1,
        start=manifest.start,
        kept=kept,
        stages=tuple((entry.phase, entry.stage) for entry in gone),
        seconds=sum(entry.seconds for entry in gone),
        why=tuple(why),
        published={str(weights.version): weights.checksum for weights in published},
        moved=(SUMMARY, REPORT, *stages, *(name for name in made if name not in needed)),
    )


def _carry_out(manifest: RunManifest, monitors: Monitors, planned: Rollback) -> Rollback:
    """Move everything, or what a killed start left to move, and note that it is done."""
    aside = _folder(manifest.out, planned)
    monitors.set_aside(planned.stages, aside)
    for name in planned.moved:
        _move(manifest.out / name, aside / name)
    manifest.reload()
    logger.warning(planned.line)
    note_rollback(manifest.out, manifest.start, planned.line)
    done = replace(planned, done=True)
    _write(manifest.out, done)
    return done


def _decided_by(version: int, buffer: ReplayBuffer, recorded: Collection[str]) -> dict[Path, int]:
    """Return the shards, recorded ones left out, with episodes that this version or a later one decided; how many."""
    found: dict[Path, int] = {}
    for entry in map(buffer.entry, buffer.ids(sources=[Source.ROLLOUT, Source.EVALUATION])):
        decided = newest_version(entry.source, entry.phase)
        if decided >= version and entry.shard.name not in recorded:
            found[entry.shard] = found.get(entry.shard, 0) + 1
    return found


def _folder(out: Path, record: Rollback) -> Path:
    return RunFolders(out).rollbacks / f"{record.number:04d}"


def _move(source: Path, target: Path) -> None:
    """Move a file or folder durably, where it was not moved already."""
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        force_to_disk(target.parent)
        force_to_disk(source.parent)


def _write(out: Path, record: Rollback) -> None:
    write_atomic(_folder(out, record).with_suffix(".json"), json.dumps(asdict(record), indent=1) + "\n")


def _read(path: Path) -> Rollback:
    try:
        found = Rollback(**json.loads(read_text(path)))
        stages = tuple((int(phase), str(stage)) for phase, stage in found.stages)
        outside = [name for name in found.moved if Path(name).is_absolute() or ".." in Path(name).parts]
        if outside:
            raise ValueError(f"{outside[0]!r} is not a place in the run folder")
        return replace(found, stages=stages, why=tuple(found.why), moved=tuple(found.moved))
    except (OSError, ValueError, TypeError) as error:
        raise ManifestError(f"cannot read {path}: {error}; restore it from a copy, or start in a new --out") from error
