"""From the results of a run's stages to its summary.

Owns how each number of ``OUT/summary.json`` is derived. Invariant: what can be derived from the manifest is derived,
never stored twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.metrics import Rate
from analysis.results import EpisodeCounts, GroupResult, LabelResult, PhaseSummary, ReplayResult
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.stage_results import (
    ActorTrained,
    CriticsTrained,
    Evaluated,
    Labelled,
    ReplayFiltered,
    RolloutsPlayed,
    WithEpisodes,
    flat_numbers,
)
from cluster.run_folder.summary import RunSummary
from judges.llm.accounts import FILE_NAME as ACCOUNTS
from judges.llm.accounts import read_accounts


def summarise(manifest: RunManifest, name: str, phases: int) -> RunSummary:
    """Return the summary of what the manifest, and the accounts beside it, hold so far; ``phases`` is the recipe's."""
    done = {phase for phase, _ in manifest.stages()}
    summaries = tuple(phase_summary(manifest, phase) for phase in sorted(done))
    counts = EpisodeCounts()
    for entry in manifest.entries():
        if isinstance(entry.result, WithEpisodes):
            played = entry.result
            counts += EpisodeCounts(played.dispatched, len(played.episodes), played.failures)
    return RunSummary(
        name=name,
        config_hash=manifest.config_hash,
        seeds=manifest.header["seeds"],
        versions=manifest.header["versions"],
        phases=summaries,
        episodes=counts,
        complete=manifest.stage_done(phases, Evaluated.stage),
        seconds=sum(sum(stages.values()) for stages in manifest.seconds.values()),
        judging=read_accounts(RunFolders(manifest.out).judging / ACCOUNTS),
    )


def phase_summary(manifest: RunManifest, phase: int) -> PhaseSummary:
    """Return the numbers of one phase as far as its stages are complete."""
    results = {entry.stage: entry.result for entry in manifest.entries() if entry.phase == phase}
    evaluated, rollouts, replay = (results.get(kind.stage) for kind in (Evaluated, RolloutsPlayed, ReplayFiltered))
    labelled = results.get(Labelled.stage)
    learned = [results[kind.stage].learned() for kind in (CriticsTrained, ActorTrained) if kind.stage in results]
    return PhaseSummary(
        phase=phase,
        evaluation=evaluated.splits if isinstance(evaluated, Evaluated) else {},
        rollout=_success(rollouts) if isinstance(rollouts, RolloutsPlayed) else None,
        labels=_labels(labelled) if isinstance(labelled, Labelled) else None,
        replay=_replay(replay.audit.counts) if isinstance(replay, ReplayFiltered) else None,
        losses={name: number for part in learned for name, number in flat_numbers(part).items()},
        seconds=manifest.seconds[phase],
        env_steps_per_second=rollouts.env_steps_per_s if isinstance(rollouts, RolloutsPlayed) else None,
    )


def _success(rollouts: RolloutsPlayed) -> GroupResult:
    """Return the success of rollouts; a record from before 2026-11-28 does not say which episodes share a task."""
    solved, n = rollouts.successes, len(rollouts.episodes)
    return rollouts.success or GroupResult.of(Rate.of([True] * solved + [False] * (n - solved)))


def _labels(labelled: Labelled) -> LabelResult:
    return LabelResult(
        judges={subject: said.judge for subject, said in labelled.subjects.items()},
        labelled={subject: said.labelled for subject, said in labelled.subjects.items()},
        failures={subject: said.failures for subject, said in labelled.subjects.items()},
        success=labelled.success,
        agreement=labelled.agreement,
        cost_usd=sum(said.cost_usd for said in labelled.subjects.values()),
    )


def _replay(counts: Mapping[str, int]) -> ReplayResult:
    kept = counts.get("kept", 0)
    return ReplayResult(kept, sum(counts.values()) - kept, {k: v for k, v in counts.items() if k != "kept" and v})
