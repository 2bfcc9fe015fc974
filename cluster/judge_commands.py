"""What ``waymark judge`` does: labels of recorded episodes, agreement of judges, training of outcome models.

Owns the reading of run folders for it. Invariants: a run's shards, manifests and stages are left as they are: labels
that come later lie beside those of its stages and never take their place. Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.agreement import Agreement
from cluster.errors import ManifestError, RunStopped
from cluster.labelling import Labeller
from cluster.recorded_run import RecordedRun
from records.episodes import Source, Trajectory
from records.labels import LabelSubject
from replay.buffer import Entry
from replay.labels import LabelStore

RULES = "rules"
"""Stands for the verdicts that episodes were played with, where a judge is named."""


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """What came of asking a judge about a run: episodes with its label, how many are new, failures by ``kind/code``."""

    episodes: int
    labelled: int
    asked: int
    failures: dict[str, int]


def label_run(
    run: Path,
    judge: str,
    on_progress: Callable[[int, int, int], None],
    overrides: Sequence[str] = (),
    limit: int | None = None,
) -> LabelledRun:
    """Ask ``judge`` about the counted rollouts and evaluations of a run, ``limit`` at most, and keep the labels.

    The judge's options are those of the run's recipe, with ``overrides``.

    Raises:
        RunStopped: the run has none, or the judge was in trouble too often; labels that were given are kept.
    """
    recorded = RecordedRun(run)
    recipe, buffer, labels = recorded.recipe_with(overrides), recorded.buffer, recorded.labels
    subject = recipe.judges_of_run.of_episodes(judge).subject
    asked_about = recorded.milestone_tasks if subject is LabelSubject.MILESTONES else recorded.tasks
    tasks = dict([(i, task) for i, task in asked_about.items() if i in buffer][:limit])
    if not tasks:
        raise RunStopped(f"{run} has no rollouts or evaluations to label")
    labeller = Labeller(recipe, recipe.judges_of_run, buffer, labels)
    questions = labeller.missing(tasks, {subject: judge})
    failures = labeller.label(questions, f"{judge.rpartition(':')[2].lower()}", on_progress)
    found = sum(labels.find(buffer.entry(i), judge, subject) is not None for i in tasks)
    codes = dict(Counter(str(failure.code) for failure in failures.values()))
    return LabelledRun(len(tasks), found, len(questions), codes)


def agreement_of(run: Path, first: str, second: str) -> dict[str, Agreement]:
    """Return how far two judges of outcomes agree on the episodes that both judged, in all and by site.

    ``rules`` names the verdicts that episodes were played with.

    Raises:
        ManifestError: there is no episode that both judged.
    """
    recorded = RecordedRun(run)
    buffer, labels = recorded.buffer, recorded.labels
    entries = [buffer.entry(i) for i in buffer.ids(sources=[Source.ROLLOUT, Source.EVALUATION])]
    said = [(e, _said(e, labels, first), _said(e, labels, second)) for e in entries]
    both = [(e, one, other) for e, one, other in said if one is not None and other is not None]
    if not both:
        there = ", ".join((RULES, *labels.judges(LabelSubject.OUTCOME)))
        raise ManifestError(f"{run}: no episode was judged by both {first!r} and {second!r}; there are: {there}")
    sites = sorted({entry.site for entry, _, _ in both})
    groups = {"all": both, **{site: [one for one in both if one[0].site == site] for site in sites}}
    return {name: _agreement(group) for name, group in groups.items()}


def _agreement(said: Sequence[tuple[Entry, bool, bool]]) -> Agreement:
    return Agreement.of(
        [one for _, one, _ in said], [other for *_, other in said], [entry.task_id for entry, *_ in said]
    )


def episodes_judged_by(runs: Sequence[Path], judge: str) -> list[Trajectory]:
    """Return the episodes of ``runs`` with at least one step under the verdicts of ``judge``, each one once."""
    found: dict[str, Trajectory] = {}
    for run in runs:
        recorded = RecordedRun(run)
        said = {i: _said(recorded.buffer.entry(i), recorded.labels, judge) for i in recorded.buffer.ids()}
        for episode in recorded.buffer.trajectories(i for i, outcome in said.items() if outcome is not None):
            if episode.steps:
                verdict = replace(episode, outcome=float(bool(said[episode.episode_id])), failure=None)
                found.setdefault(f"{run}/{episode.episode_id}", verdict)
    return list(found.values())


def _said(entry: Entry, labels: LabelStore, judge: str) -> bool | None:
    """Return whether a judge calls an episode a success; None where it says nothing of it."""
    if judge == RULES:
        return None if entry.outcome is None else entry.outcome == 1.0
    label = labels.find(entry, judge, LabelSubject.OUTCOME)
    return None if label is None else label.outcome == 1.0
