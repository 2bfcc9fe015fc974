"""The part of an audit that counts: episodes, what was trained on, and the ledger of what was dispatched.

Pure functions of a ``AuditedRun``, of one phase or of all; nothing is written. Imports neither torch nor Ray.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.audit.record import AuditedRun, AuditPart, Key, place
from cluster.run_folder.ledger import Found, LedgerLine
from cluster.run_folder.stage_results import (
    ActorTrained,
    Cloned,
    Evaluated,
    Published,
    ReplayFiltered,
    RolloutsPlayed,
    WithEpisodes,
)
from records.episodes import Source, Trajectory, newest_version
from rollout_workers.leases import Event

_SOURCES = {"rollouts": Source.ROLLOUT, "evaluate": Source.EVALUATION}


@dataclass(frozen=True, slots=True)
class StageLedger:
    """What became of the attempts of one stage, in all starts together."""

    leased: int
    completed: int
    failed: dict[str, int]
    requeued: dict[str, int]
    cut_short: int
    found: int = 0

    @classmethod
    def of(cls, lines: Iterable[LedgerLine]) -> StageLedger:
        """Count the events; a lease that has no end was cut short by the end of its start."""
        events: Counter[Event | Found] = Counter()
        failures: dict[Event | Found, Counter[str]] = {Event.FAIL: Counter(), Event.REQUEUE: Counter()}
        for line in lines:
            events[line.event] += 1
            if line.event in failures:
                failures[line.event][line.failure] += 1
        ended = events[Event.COMPLETE] + events[Event.FAIL] + events[Event.REQUEUE]
        return cls(
            leased=events[Event.LEASE],
            completed=events[Event.COMPLETE],
            failed=dict(failures[Event.FAIL]),
            requeued=dict(failures[Event.REQUEUE]),
            cut_short=events[Event.LEASE] - ended,
            found=events[Found.FOUND],
        )


def check_episodes(run: AuditedRun, phases: Collection[int]) -> AuditPart:
    """Dispatched is completed plus failed by kind; each completed episode is stored, judged, and in one stage only."""
    part = AuditPart("episodes")
    seen: dict[str, Key] = {}
    for key, entry in run.entries.items():
        named = {name.rpartition("/")[2] for name in entry.files}
        for episode_id in run.episodes(key):
            first = seen.setdefault(episode_id, key)
            if key[0] in phases:
                part.require(first == key, f"episode {episode_id}", f"is counted in {place(first)} and {place(key)}")
                _check_stored(part, run, key, named, episode_id)
        if key[0] in phases and isinstance(entry.result, Cloned):
            for episode_id in entry.result.imported:
                _check_stored(part, run, key, named, episode_id)
        if key[0] in phases and isinstance(entry.result, WithEpisodes):
            _check_counts(part, run, key, entry.result)
    return part


def check_training(run: AuditedRun, phases: Collection[int]) -> AuditPart:
    """Each trained step belongs to a stored episode with a verdict, played by the version that was published then."""
    part = AuditPart("training")
    for phase in sorted(phases):
        if published := run.result(phase, Published):
            _check_published(part, run, phase, published)
            _check_versions(part, run, (phase, Evaluated.stage), [phase])
        if played := run.result(phase, RolloutsPlayed):
            _check_rollouts(part, run, phase, played)
        if replay := run.result(phase, ReplayFiltered):
            _check_replayed(part, run, phase, replay)
            if trained := run.result(phase, ActorTrained):
                _check_amount(part, run, phase, replay, trained)
    return part


def check_ledger(run: AuditedRun, phases: Collection[int]) -> AuditPart:
    """Each attempt that was dispatched has one end, and each completed episode an attempt that can have made it.

    Or a start found it: one that began before the stage was complete, and after it can have been played.
    """
    part = AuditPart("ledger", looked_at=sum(line.phase in phases for line in run.ledger))
    if run.ledger_fault:
        part.require(False, "ledger", run.ledger_fault)
    for key, entry in run.entries.items():
        if key[0] in phases and isinstance(entry.result, WithEpisodes):
            _check_stage_ledger(part, run, key, entry.start, entry.result)
    return part


def _check_stored(part: AuditPart, run: AuditedRun, key: Key, named: Collection[str], episode_id: str) -> None:
    """An episode lies in one of the shards that its stage ``named``, with a verdict and as what it was played for."""
    subject = f"episode {episode_id}"
    if episode_id not in run.buffer:
        part.require(False, subject, f"is counted in {place(key)}, but no shard holds it")
        return
    found = run.buffer.entry(episode_id)
    part.require(found.shard.name in named, subject, f"lies in {found.shard.name}, which {place(key)} does not name")
    source = _SOURCES.get(key[1], Source.DEMONSTRATION)
    right = found.outcome in (0.0, 1.0) and found.phase == key[0] and found.source is source
    part.require(
        right,
        subject,
        f"expected a verdict, phase {key[0]} and source {source}; found outcome {found.outcome}, phase {found.phase} "
        f"and source {found.source}",
    )


def _check_counts(part: AuditPart, run: AuditedRun, key: Key, played: WithEpisodes) -> None:
    ids = [episode_id for episode_id in played.episodes if episode_id in run.buffer]
    failed = sum(played.failures.values())
    completed = len(set(played.episodes))
    part.require(
        played.dispatched == completed + failed,
        place(key),
        f"{played.dispatched} episodes were dispatched, but {completed} are completed and {failed} failed",
    )
    successes = sum(run.buffer.entry(episode_id).outcome == 1.0 for episode_id in ids)
    part.require(
        successes == played.successes,
        place(key),
        f"{played.successes} successes were counted, but the shards hold {successes}",
    )
    for split, counted in played.splits.items() if isinstance(played, Evaluated) else ():
        outcomes = [e.outcome for e in map(run.buffer.entry, ids) if e.split == split and e.outcome is not None]
        mean = sum(outcomes) / len(outcomes) if outcomes else None
        same = counted.n == len(outcomes) and (mean == counted.success or _close(mean, counted.success))
        part.require(
            same,
            f"{place(key)}, split {split}",
            f"success {counted.success} over {counted.n} episodes was counted, the shards hold {mean} over "
            f"{len(outcomes)}",
        )


def _check_published(part: AuditPart, run: AuditedRun, phase: int, published: Published) -> None:
    weights, files = published.weights, run.entries[phase, published.stage].files
    part.require(
        weights.version == phase and files.get(weights.path) == weights.checksum,
        place((phase, published.stage)),
        f"expected version {phase} with the SHA-256 of its file, found version {weights.version} with another",
    )


def _check_rollouts(part: AuditPart, run: AuditedRun, phase: int, played: RolloutsPlayed) -> None:
    """Rollouts were decided by the newest weights, or by older ones as far as the run lets them; their ages add up."""
    key, newest = (phase, played.stage), newest_version(Source.ROLLOUT, phase)
    decided = _check_versions(part, run, key, range(max(newest - run.max_staleness, 0), newest + 1))
    if run.max_staleness:
        found = {str(newest - version): steps for version, steps in sorted(decided.items(), reverse=True)}
        counted = f"steps by staleness {played.staleness} were counted, the shards hold {found}"
        part.require(found == played.staleness, place(key), counted)


def _check_versions(part: AuditPart, run: AuditedRun, key: Key, versions: Sequence[int]) -> Counter[int]:
    """Each episode of a stage was decided by one of these versions, the newest of which was published before.

    Returns:
        How many steps each version decided.
    """
    ids = [episode_id for episode_id in run.episodes(key) if episode_id in run.buffer]
    if ids and not run.result(versions[-1], Published):
        part.require(False, place(key), f"was played by version {versions[-1]}, whose publication is not recorded")
    decided: Counter[int] = Counter()
    for trajectory in run.buffer.stream(ids):
        problem = _wrong_step(trajectory, versions)
        part.require(not problem, f"episode {trajectory.episode_id}", problem)
        decided.update(step.policy_version for step in trajectory.steps)
    return decided


def _wrong_step(trajectory: Trajectory, versions: Sequence[int]) -> str:
    """Return what is wrong with the first step of an episode that is not as it must be, or an empty text."""
    if not trajectory.steps:
        return "has no step"
    expected = " or ".join(str(version) for version in versions)
    first = trajectory.steps[0].policy_version
    for position, step in enumerate(trajectory.steps):
        if step.index != position:
            return f"step {position} has the number {step.index}"
        if step.policy_version not in versions:
            return f"step {position} was decided by version {step.policy_version}, expected version {expected}"
        if step.policy_version != first:
            return f"step {position} was decided by version {step.policy_version}, the first one by {first}"
        if not len(step.action_ids) or not bool(np.isfinite(step.logprobs).all()):
            return f"step {position} has no tokens, or a log-probability that is not a number"
    return ""


def _check_replayed(part: AuditPart, run: AuditedRun, phase: int, replay: ReplayFiltered) -> None:
    earlier = {episode_id for p in range(phase) for episode_id in run.episodes((p, RolloutsPlayed.stage))}
    kept = {episode_id: list(steps) for episode_id, steps in replay.kept.items()}
    stored = [episode_id for episode_id in kept if episode_id in run.buffer]
    for episode_id in kept:
        part.require(
            episode_id in earlier and episode_id in run.buffer,
            f"episode {episode_id}",
            f"is replayed in phase {phase}, but is no stored rollout of an earlier phase",
        )
    for trajectory in run.labelled.stream(stored):
        steps = kept[trajectory.episode_id]
        right = trajectory.outcome == 1.0 and all(0 <= step < len(trajectory.steps) for step in steps)
        part.require(
            right,
            f"episode {trajectory.episode_id}",
            f"is replayed in phase {phase} with steps {steps}; it has {len(trajectory.steps)} steps and outcome "
            f"{trajectory.outcome}",
        )


def _check_amount(part: AuditPart, run: AuditedRun, phase: int, replay: ReplayFiltered, trained: ActorTrained) -> None:
    given = len(run.episodes((phase, RolloutsPlayed.stage))) + len(replay.kept)
    used = trained.metrics.rollouts + trained.metrics.replayed + trained.metrics.left_out
    part.require(
        used == given, place((phase, trained.stage)), f"the learner was given {given} episodes, but accounts for {used}"
    )


def _check_stage_ledger(part: AuditPart, run: AuditedRun, key: Key, start: int, played: WithEpisodes) -> None:
    """Hold the ledger of a stage that was completed in ``start`` against what the stage says of itself."""
    lines = run.lines[key]
    last = StageLedger.of(line for line in lines if line.start == start)
    part.require(
        last.cut_short == 0,
        place(key),
        f"{last.leased} attempts were made in the start that completed it; {last.cut_short} of them have no end",
    )
    # Twice in two starts is possible: the shard was damaged between them, and the episode played again.
    ends = Counter((line.episode, line.start) for line in lines if line.event is Event.COMPLETE)
    for (episode_id, ended), times in ends.items():
        found = f"was completed {times} times in {place(key)}, start {ended}"
        part.require(times == 1, f"episode {episode_id}", found)
    # A stage that was rolled back need not ask for the same episodes again: other weights fail at other tasks.
    since = run.rolled_back_in(key)
    completed = {episode_id for episode_id, ended in ends if ended >= since}
    done = set(played.episodes)
    leased = {line.episode for line in lines if line.event is Event.LEASE}
    found_in = {line.episode: line.start for line in reversed(lines) if line.event is Found.FOUND}
    for episode_id in sorted(done - leased):
        problem = _not_found(run, key, start, found_in.get(episode_id))
        part.require(not problem, f"episode {episode_id}", problem)
    for episode_id in sorted(completed - done):
        part.require(False, f"episode {episode_id}", f"was completed, but is not counted in {place(key)}")
    failed = Counter(
        line.failure for line in lines if line.event is Event.FAIL and line.start == start and line.episode not in done
    )
    part.require(
        dict(failed) == played.failures,
        place(key),
        f"failures {played.failures} were counted, the ledger has {dict(failed)}",
    )


def _not_found(run: AuditedRun, key: Key, completed_in: int, found_in: int | None) -> str:
    """Return why a start cannot have found an episode that nobody dispatched, or an empty text."""
    if found_in is None:
        return f"was never dispatched in {place(key)}"
    if found_in > completed_in:
        return f"was found by start {found_in}, but {place(key)} was completed in start {completed_in}"
    if not _begun_before(run, key, found_in):
        return f"was found by start {found_in}, before which nobody can have played it in {place(key)}"
    return ""


def _begun_before(run: AuditedRun, key: Key, start: int) -> bool:
    """Whether an earlier start got so far that it can have played episodes of a stage: to what decides them."""
    if key[1] not in _SOURCES:
        return start > 1
    source = _SOURCES[key[1]]
    oldest = max(newest_version(source, key[0]) - (run.max_staleness if source is Source.ROLLOUT else 0), 0)
    if any(str(oldest) in found.published and found.start <= start for found in run.rollbacks):
        return True
    published = run.entries.get((oldest, Published.stage))
    return published is not None and published.start < start


def _close(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, abs_tol=1e-9)
