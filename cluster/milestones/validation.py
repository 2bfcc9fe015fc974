"""How good a run's milestones are: each source of them held against the episodes' outcomes, beside bad ones.

Owns ``validate_milestones``, which ``waymark milestones validate`` prints. Invariants: all sources are asked about the
same kind of episodes, of which those without a verdict or without milestones of that source are left out and counted;
the deliberately bad ones are made from the same run, so that a measure that accepts them is no measure.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from analysis.milestone_validity import Completion, Validity, validity
from cluster.recorded_run import RecordedRun
from judges.of_milestones.checker import Known, MilestoneChecker
from judges.of_milestones.recorded import milestones_of_record
from records.episodes import Source, Task, Trajectory
from records.labels import BoolArray, LabelSubject

PLAYED = "as played"
RECHECKED = "checks on the record"
SHUFFLED = "shuffled (bad on purpose)"
SIBLING = "of another task of the template (bad on purpose)"
STRANGER = "of another template of the site (bad on purpose)"
BAD = frozenset({SHUFFLED, SIBLING, STRANGER})

FinalMilestones = Callable[[Trajectory, Task], Sequence[bool]]
"""Which milestones were reached at an episode's end, () where the source knows of none."""


@dataclass(frozen=True, slots=True)
class SourceValidity:
    """What the statistics say of one source of milestones; ``left_out`` counts judged episodes without any of its."""

    source: str
    validity: Validity
    left_out: int


def validate_milestones(
    out: Path, sources: Collection[Source], others: Mapping[str, FinalMilestones] | None = None, seed: int = 0
) -> list[SourceValidity]:
    """Return the statistics of every source of milestones on the run's judged episodes of these ``sources``.

    The run's own are what was played, checks on the record, and labels of every judge; ``others`` are further ones by
    name. The bad ones stand beside them.

    Raises:
        RunError: the folder holds no run, or one that this version cannot read.
    """
    run = RecordedRun(out)
    tasks = run.tasks
    episodes = [episode for episode in run.judged(sources) if episode.episode_id in tasks]
    asked = {PLAYED: _as_played, RECHECKED: _rechecked, **_labels(run), **(others or {})}
    ends: dict[str, list[Sequence[bool]]] = {
        name: [tuple(source(episode, tasks[episode.episode_id])) for episode in episodes]
        for name, source in asked.items()
    }
    ends[SHUFFLED] = _shuffled(ends[PLAYED], seed)
    for name, in_template in ((SIBLING, True), (STRANGER, False)):
        strangers = _strangers(episodes, tasks, seed, in_template=in_template)
        ends[name] = [_rechecked(*pair) for pair in zip(episodes, strangers, strict=True)]
    return [_measured(name, episodes, final) for name, final in ends.items()]


def by_checker(checker: MilestoneChecker) -> FinalMilestones:
    """Return a trained checker as a source; of templates that it was trained on it says nothing."""

    def final(episode: Trajectory, task: Task) -> Sequence[bool]:
        if episode.template in checker.trained.templates:
            return ()
        said = checker.probabilities(episode, [milestone.description for milestone in task.milestones])[-1]
        return tuple((said >= checker.trained.decision_threshold).tolist())

    return final


def known_milestones(out: Path, sources: Collection[Source]) -> list[Known]:
    """Return the run's judged episodes whose milestones have checks, with what was reached as they were played."""
    run = RecordedRun(out)
    tasks = run.tasks
    return [
        Known(episode, tuple(one.description for one in tasks[episode.episode_id].milestones), _played(episode))
        for episode in run.judged(sources)
        if episode.episode_id in tasks
        and episode.final_milestones
        and all(one.check for one in tasks[episode.episode_id].milestones)
    ]


def left_out(template: str, folds: int) -> int:
    """Return which of ``folds`` parts a template belongs to, by its name alone; part 0 is the one left out."""
    return int(hashlib.sha256(template.encode()).hexdigest(), 16) % folds


def validity_json(found: Sequence[SourceValidity]) -> str:
    """Return the statistics by source as JSON text; what is not defined is null."""
    plain = json.dumps({one.source: asdict(one) for one in found})
    return json.dumps(json.loads(plain, parse_constant=lambda _: None), indent=1) + "\n"


def _measured(name: str, episodes: Sequence[Trajectory], ends: Sequence[Sequence[bool]]) -> SourceValidity:
    known = [
        Completion(sum(final), len(final), episode.success, episode.template)
        for episode, final in zip(episodes, ends, strict=True)
        if final
    ]
    return SourceValidity(name, validity(known), len(episodes) - len(known))


def _labels(run: RecordedRun) -> dict[str, FinalMilestones]:
    """Return every judge's labels of milestones as a source."""

    def by(judge: str) -> FinalMilestones:
        def final(episode: Trajectory, task: Task) -> Sequence[bool]:
            label = run.labels.find(run.buffer.entry(episode.episode_id), judge, LabelSubject.MILESTONES)
            return () if label is None else tuple(label.decided[-1].tolist())

        return final

    return {f"labels of {judge}": by(judge) for judge in run.labels.judges(LabelSubject.MILESTONES)}


def _played(episode: Trajectory) -> BoolArray:
    return np.array([*(step.milestones for step in episode.steps), episode.final_milestones], dtype=np.bool_)


def _as_played(episode: Trajectory, task: Task) -> Sequence[bool]:
    return episode.final_milestones


def _rechecked(episode: Trajectory, task: Task | None) -> Sequence[bool]:
    """Check the task's milestones on the recorded pages; those without a check cannot be."""
    if task is None:
        return ()
    checked = [milestone for milestone in task.milestones if milestone.check]
    return tuple(bool(done) for done in milestones_of_record(episode, checked)[-1]) if checked else ()


def _shuffled(ends: Sequence[Sequence[bool]], seed: int) -> list[Sequence[bool]]:
    """Give each episode the milestones that another episode reached, whichever it was."""
    known = [final for final in ends if final]
    order = iter(random.Random(seed).sample(known, len(known)))
    return [next(order) if final else () for final in ends]


def _strangers(
    episodes: Sequence[Trajectory], tasks: Mapping[str, Task], seed: int, *, in_template: bool
) -> list[Task | None]:
    """Return for each episode another task of its template, or one of another template of its site; None without."""
    different = {task.task_id: task for task in tasks.values() if task.milestones}
    order = random.Random(seed)
    found: list[Task | None] = []
    for episode in episodes:
        others = [
            task
            for task in different.values()
            if task.site == episode.site
            and task.task_id != episode.task_id
            and (task.template == episode.template) is in_template
        ]
        found.append(order.choice(others) if others else None)
    return found
