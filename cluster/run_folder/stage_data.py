"""What stages leave in the manifest, as plain JSON, and the run's summary made from it.

Owns the shapes of stage data. Pure. Invariants: every episode a stage asked for is judged or among its
failures; what can be derived from the manifest is derived, never stored twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.metrics import Rate
from analysis.results import EpisodeCounts, GroupResult, PhaseSummary, ReplayResult, SplitResult
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_files import StageEntry
from cluster.run_folder.summary import RunSummary
from records.failures import Failure
from replay.buffer import ReplayBuffer
from replay.shards import SUFFIX
from rollout_workers.report import RolloutReport
from rollout_workers.spec import EpisodeSpec

WARM_START = ("clone", "critics", "publish", "evaluate")
"""The stages before RL, phase 0, in order."""
PHASE = ("rollouts", "replay", "critics", "actor", "publish", "evaluate", "curriculum")
"""The stages of each phase after it, in order."""


@dataclass(frozen=True, slots=True)
class JudgedEpisode:
    """An episode that was asked for, with its outcome."""

    task_id: str
    site: str
    template: str
    horizon: int
    outcome: float | None


def judged(specs: Iterable[EpisodeSpec], buffer: ReplayBuffer) -> list[JudgedEpisode]:
    """Return those of the episodes that have a verdict."""
    return [
        JudgedEpisode(s.task.task_id, s.task.site, s.task.template, s.task.horizon, buffer.entry(s.episode_id).outcome)
        for s in specs
        if s.episode_id in buffer
    ]


def episode_data(specs: Sequence[EpisodeSpec], report: RolloutReport, buffer: ReplayBuffer) -> dict[str, Any]:
    """Return ids, counts and times of the episodes of one stage, those of an interrupted attempt included."""
    done = sorted(spec.episode_id for spec in specs if spec.episode_id in buffer)
    return {
        "episodes": done,
        "dispatched": len(specs),
        "successes": sum(buffer.entry(episode_id).outcome == 1.0 for episode_id in done),
        "failures": reasons(_lost(specs, report, buffer)),
        "incidents": dict(report.incidents),
        "env_steps_per_s": report.env_steps_per_s,
        "seconds_by_part": report.seconds_by_part,
        "worker_losses": report.worker_losses,
        "orphans": report.orphans,
    }


def split_data(
    specs: Sequence[EpisodeSpec], splits: Sequence[str], report: RolloutReport, buffer: ReplayBuffer, passes: int
) -> dict[str, Any]:
    """Return the result of an evaluation on each split."""
    results = {}
    for split in splits:
        mine = [spec for spec in specs if spec.task.split == split]
        results[split] = asdict(SplitResult.of(judged(mine, buffer), _lost(mine, report, buffer), passes))
    return results


def recorded_shards(entries: Iterable[StageEntry]) -> dict[str, int]:
    """Return the shards that these stages depend on: each file's name with the number of the first that does."""
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        for name in shard_files(entry):
            first.setdefault(Path(name).name, number)
    return first


def shard_files(entry: StageEntry) -> list[str]:
    """Return the shards that a stage depends on, as paths under the run folder."""
    return [name for name in entry.files if name.endswith(SUFFIX)]


def reasons(failures: Iterable[Failure]) -> dict[str, int]:
    """Return counts by ``kind/code``."""
    return dict(Counter(f"{failure.code}" for failure in failures))


def summarise(manifest: RunManifest, name: str, phases: int) -> RunSummary:
    """Return the summary of what the manifest holds so far; ``phases`` is the recipe's number."""
    done = {phase for phase, _ in manifest.stages()}
    summaries = tuple(phase_summary(manifest, phase) for phase in sorted(done))
    counts = EpisodeCounts()
    for phase, stage in manifest.stages():
        counts += _counts(manifest.data(phase, stage))
    return RunSummary(
        name=name,
        config_hash=manifest.config_hash,
        seeds=manifest.header["seeds"],
        versions=manifest.header["versions"],
        phases=summaries,
        episodes=counts,
        complete=manifest.stage_done(phases, "evaluate"),
        seconds=sum(sum(stages.values()) for stages in manifest.seconds.values()),
    )


def phase_summary(manifest: RunManifest, phase: int) -> PhaseSummary:
    """Return the numbers of one phase as far as its stages are complete."""
    stages = {stage: manifest.data(phase, stage) for at, stage in manifest.stages() if at == phase}
    rollouts, replay = stages.get("rollouts"), stages.get("replay")
    metrics = [stages[stage].get("metrics") or {} for stage in ("critics", "actor") if stage in stages]
    return PhaseSummary(
        phase=phase,
        evaluation={
            split: SplitResult.from_json(result)
            for split, result in stages.get("evaluate", {}).get("splits", {}).items()
        },
        rollout=_rate(rollouts["successes"], len(rollouts["episodes"])) if rollouts else None,
        replay=_replay(replay) if replay else None,
        losses={name: number for part in metrics for name, number in flat_numbers(part).items()},
        seconds=manifest.seconds[phase],
        env_steps_per_second=rollouts["env_steps_per_s"] if rollouts else None,
    )


def flat_numbers(nested: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of nested mappings as ``part.name``; what is not a number is left out."""
    flat: dict[str, float] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{key}": number for key, number in flat_numbers(value).items()})
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[name] = float(value)
    return flat


def _lost(specs: Iterable[EpisodeSpec], report: RolloutReport, buffer: ReplayBuffer) -> list[Failure]:
    """Return why episodes have no verdict; a shard may have outlived the worker that did not answer for it."""
    missing = (spec.episode_id for spec in specs if spec.episode_id not in buffer)
    return [report.failures[episode_id] for episode_id in missing if episode_id in report.failures]


def _counts(data: Mapping[str, Any]) -> EpisodeCounts:
    if "dispatched" not in data:
        return EpisodeCounts()
    return EpisodeCounts(data["dispatched"], len(data["episodes"]), data["failures"])


def _rate(successes: int, judged_episodes: int) -> GroupResult:
    return GroupResult.of(Rate.of([True] * successes + [False] * (judged_episodes - successes)))


def _replay(data: Mapping[str, Any]) -> ReplayResult:
    counts: dict[str, int] = data["audit"]["counts"]
    kept = counts.get("kept", 0)
    return ReplayResult(kept, sum(counts.values()) - kept, {k: v for k, v in counts.items() if k != "kept" and v})
