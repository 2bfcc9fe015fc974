"""The part of an audit that looks at files: manifests in an unbroken chain, every file as it was recorded.

Pure functions of a ``AuditedRun``; nothing is written. Imports neither torch nor Ray.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from cluster.audit.record import AuditedRun, AuditPart, Key, place
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.layout import ROLLBACKS, kept_checkpoints
from cluster.run_folder.metrics_log import FILE_NAME as METRICS
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.stage_files import StageEntry
from cluster.run_folder.stage_results import (
    OPENING,
    POSSIBLE,
    POSSIBLE_BEFORE,
    WHERE_NEEDED,
    FirstStatesOpened,
    Labelled,
    TasksChosen,
)
from cluster.run_folder.summary import FILE_NAME as SUMMARY
from records.durable import read_text
from replay.first_states import SUFFIX as STATES_SUFFIX
from replay.first_states import read_first_states
from replay.labels import SUFFIX as LABELS_SUFFIX
from replay.shards import SUFFIX, ShardError


def check_manifests(run: AuditedRun) -> AuditPart:
    """Each stage has a whole manifest, in the order of the algorithm, and none that left traces is gone."""
    part = AuditPart("manifests", looked_at=len(run.entries))
    for fault in run.faults:
        part.require(False, fault.subject, fault.found)
    for begun in run.rollbacks:
        unfinished = "is not finished; the run's command, started again, does the rest"
        part.require(begun.done, f"{ROLLBACKS}/{begun.number:04d}", unfinished)
    phases = int(run.header["config"]["run"]["phases"])
    found = list(run.entries)
    before = [stage for stage in POSSIBLE_BEFORE if run.opens or stage not in OPENING]
    possible = [(0, stage) for stage in before] + [(p, stage) for p in range(1, phases + 1) for stage in POSSIBLE]
    absent = WHERE_NEEDED - ({Labelled.stage} if run.judges else set())
    expected = [key for key in possible if key[1] not in absent or key in found]
    if not run.faults:
        unlike = [(e, f) for e, f in zip(expected, found, strict=False) if e != f]
        for wanted, other in unlike[:1]:
            part.require(False, place(other), f"stands where {place(wanted)} must come first")
    for key in sorted(_left_traces(part, run) - set(found), key=possible.index):
        part.require(False, place(key), "is in metrics.jsonl or in the summary, but its manifest is gone")
    return part


def check_files(run: AuditedRun) -> AuditPart:
    """Each file that a manifest names has the SHA-256 that it names; what is no longer kept may be gone."""
    part = AuditPart("files")
    keep = int(run.header["config"]["run"]["keep_checkpoints"])
    for number, entry in enumerate(run.entries.values()):
        complete = _last_complete(run, number)
        checkpoints = _kept_names(complete, keep)
        for name, digest in entry.files.items():
            path = run.out / name
            if path.is_file():
                part.require(sha256_file(path) == digest, name, "has changed since it was recorded")
            elif _is_needed(entry, name, complete, keep, checkpoints):
                part.require(False, name, f"is gone; {place((entry.phase, entry.stage))} left it")
    return part


def check_shards(run: AuditedRun) -> AuditPart:
    """Each shard can be read and holds what its name says; each record was imported, found, or dispatched each time."""
    part = AuditPart("shards", looked_at=len(run.buffer.shards))
    for skipped in run.buffer.scan.skipped:
        part.require(False, _relative(skipped.path, run.out), skipped.reason)
    for episode_id, count in sorted(run.records.items()):
        leases = run.leases[episode_id] + run.is_imported(episode_id) + (episode_id in run.found)
        part.require(
            count <= leases,
            f"episode {episode_id}",
            f"is stored {count} times, but was dispatched {leases} times; {_where(run, episode_id)}",
        )
    return part


def check_first_states(run: AuditedRun) -> AuditPart:
    """Each training task whose first page was opened has one first state on the disk, each other one a reason."""
    part = AuditPart("first states")
    for key, entry in run.entries.items():
        opened = entry.result
        if not isinstance(opened, FirstStatesOpened):
            continue
        held: set[str] = set()
        for name in opened.state_files:
            try:
                held |= {state.task_id for state in read_first_states(run.buffer.directory / name)}
            except (OSError, ShardError) as error:
                part.require(False, name, str(error))
        counted = f"{opened.opened} first states were counted, the files hold {len(held)}"
        part.require(len(held) == opened.opened, place(key), counted)
        both = sorted(held & opened.absent.keys())
        part.require(not both, place(key), f"tasks {both[:3]} have a first state and a reason why they have none")
    return part


def _left_traces(part: AuditPart, run: AuditedRun) -> set[Key]:
    """Return the stages that the metrics or the summary know to be complete."""
    known = set()
    try:
        known = {(line.get("phase"), line.get("stage")) for line in read_metrics(run.out)}
    except OSError as error:
        part.require(False, METRICS, str(error))
    stages = {(phase, stage) for phase, stage in known if isinstance(phase, int) and isinstance(stage, str)}
    try:
        summary = json.loads(read_text(run.out / SUMMARY))
        stages |= {(phase["phase"], stage) for phase in summary["phases"] for stage in phase["seconds"]}
    except (OSError, ValueError, KeyError, TypeError):
        return stages
    return stages


def _last_complete(run: AuditedRun, number: int) -> int:
    """Return the last phase that was complete after the stage of this number, phases that were rolled back included."""
    before = [stage for found in run.rollbacks if number < found.kept for stage in found.stages]
    return max((phase for phase, stage in [*run.entries, *before] if stage == TasksChosen.stage), default=0)


def _kept_names(complete: int, keep: int) -> set[str]:
    return set(kept_checkpoints(complete, keep)) if complete else set()


def _is_needed(entry: StageEntry, name: str, complete: int, keep: int, checkpoints: Iterable[str]) -> bool:
    """Return whether a file must still be there when ``complete`` is the last complete phase."""
    if name.endswith((SUFFIX, LABELS_SUFFIX, STATES_SUFFIX)) or not complete or entry.phase > complete:
        return True
    if name.startswith("checkpoints/"):
        return name.split("/")[1] in checkpoints
    return entry.phase > complete - keep  # published weights


def _where(run: AuditedRun, episode_id: str) -> str:
    """Return the shards that hold records of an episode."""
    shards = {run.buffer.entry(episode_id).shard}
    shards |= {d.ignored for d in run.buffer.scan.duplicates if d.episode_id == episode_id}
    return "it is in " + " and ".join(sorted(path.name for path in shards))


def _relative(path: Path, out: Path) -> str:
    return path.relative_to(out).as_posix() if path.is_relative_to(out) else str(path)
