"""From what a stage played, or had judged, to the stage's result.

Owns the counts of episodes, splits and labels. Invariant: every episode a stage asked for is judged or among its
failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.agreement import Agreement
from analysis.metrics import Rate
from analysis.results import GroupResult, SplitResult
from cluster.run_folder.stage_results import (
    JudgeLabels,
    Labelled,
    WithEpisodes,
)
from records.episodes import Trajectory, newest_version
from records.failures import Failure
from records.labels import LabelSubject
from replay.buffer import Entry, ReplayBuffer
from replay.labelled import LabelledBuffer
from rollout_workers.results import RolloutResult
from rollout_workers.settings import PlanningSettings
from rollout_workers.spec import EpisodeSpec


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


def success_of(specs: Iterable[EpisodeSpec], buffer: ReplayBuffer) -> GroupResult:
    """Return the success of those of the episodes that have a verdict, with its interval over their tasks."""
    return GroupResult.of(Rate.of_episodes(judged(specs, buffer)))


def episode_counts(specs: Sequence[EpisodeSpec], result: RolloutResult, buffer: ReplayBuffer) -> WithEpisodes:
    """Return ids, counts and times of the episodes of one stage, those of an interrupted attempt included."""
    done = tuple(sorted(spec.episode_id for spec in specs if spec.episode_id in buffer))
    return WithEpisodes(
        episodes=done,
        dispatched=len(specs),
        successes=sum(buffer.entry(episode_id).outcome == 1.0 for episode_id in done),
        failures=reasons(_lost(specs, result, buffer)),
        incidents=dict(result.incidents),
        env_steps_per_s=result.env_steps_per_s,
        seconds_by_part=result.seconds_by_part,
        worker_losses=result.worker_losses,
        orphans=result.orphans,
    )


def steps_by_staleness(rollouts: Iterable[Trajectory]) -> dict[str, int]:
    """Return how many steps were decided by weights that were so many versions older than the newest of their phase."""
    found = Counter(
        newest_version(rollout.source, rollout.phase) - step.policy_version
        for rollout in rollouts
        for step in rollout.steps
    )
    return {str(versions): found[versions] for versions in sorted(found)}


NO_EPISODES = WithEpisodes(
    episodes=(), dispatched=0, successes=0, failures={}, incidents={}, env_steps_per_s=None, seconds_by_part={},
    worker_losses=0, orphans=0,
)  # fmt: skip
"""A stage that had nothing to play."""


def split_results(
    specs: Sequence[EpisodeSpec], splits: Sequence[str], result: RolloutResult, buffer: ReplayBuffer, passes: int
) -> dict[str, SplitResult]:
    """Return the result of an evaluation on each split."""
    results = {}
    for split in splits:
        mine = [spec for spec in specs if spec.task.split == split]
        results[split] = SplitResult.of(judged(mine, buffer), _lost(mine, result, buffer), passes)
    return results


def with_planning(
    splits: Mapping[str, SplitResult],
    specs: Sequence[EpisodeSpec],
    buffer: ReplayBuffer,
    plans: Path,
    settings: PlanningSettings,
) -> dict[str, SplitResult]:
    """Return the results of an evaluation with what planning did; ``plans`` holds the agents' states."""
    from rollout_workers.planning.numbers import planning_numbers
    from rollout_workers.planning.state import PlanFolder

    def numbers(split: str) -> dict[str, float]:
        ids = [spec.episode_id for spec in specs if spec.task.split == split and spec.episode_id in buffer]
        return planning_numbers(buffer.trajectories(ids), PlanFolder(plans), settings)

    return {split: replace(result, planning=numbers(split)) for split, result in splits.items()}


def labelled_stage(
    episodes: Sequence[str], labelled: LabelledBuffer, failures: Mapping[LabelSubject, Mapping[str, int]]
) -> Labelled:
    """Return what the judges said of ``episodes``; ``failures`` by ``kind/code`` are of those that have no label."""
    entries = [labelled.buffer.entry(episode_id) for episode_id in episodes]
    subjects, files = {}, set()
    for subject, judge in labelled.judges.items():
        found = [labelled.labels.find(entry, judge, subject) for entry in entries]
        labels = [label for label in found if label is not None]
        files |= {labelled.labels.file(entry, judge, subject) for entry in entries}
        subjects[str(subject)] = JudgeLabels(
            judge=judge,
            labelled=len(labels),
            failures=dict(failures.get(subject, {})),
            wordings=dict(Counter(f"{label.model} {label.prompt}" for label in labels)),
            cost_usd=sum(label.cost_usd for label in labels),
        )
    return Labelled(
        subjects=subjects,
        label_files=tuple(sorted(path.name for path in files if path is not None)),
        **_outcomes(entries, labelled),
    )


def _outcomes(entries: Sequence[Entry], labelled: LabelledBuffer) -> dict[str, Any]:
    """Return success by the labels of outcomes, and how far the verdicts that episodes were played with agree."""
    if LabelSubject.OUTCOME not in labelled.judges:
        return {"success": None, "agreement": None}
    judge = labelled.judges[LabelSubject.OUTCOME]
    found = [labelled.labels.find(entry, judge, LabelSubject.OUTCOME) for entry in entries]
    pairs = [
        (entry.task_id, entry.outcome == 1.0, label.outcome == 1.0)
        for entry, label in zip(entries, found, strict=True)
        if label is not None
    ]
    return {
        "success": GroupResult.of(Rate.of_tasks((task, said) for task, _, said in pairs)),
        "agreement": Agreement.of(
            [played for _, played, _ in pairs], [said for *_, said in pairs], [task for task, *_ in pairs]
        ),
    }


def reasons(failures: Iterable[Failure]) -> dict[str, int]:
    """Return counts by ``kind/code``."""
    return dict(Counter(f"{failure.code}" for failure in failures))


def _lost(specs: Iterable[EpisodeSpec], result: RolloutResult, buffer: ReplayBuffer) -> list[Failure]:
    """Return why episodes have no verdict; a shard may have outlived the worker that did not answer for it."""
    missing = (spec.episode_id for spec in specs if spec.episode_id not in buffer)
    return [result.failures[episode_id] for episode_id in missing if episode_id in result.failures]
