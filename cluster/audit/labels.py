"""The part of an audit that traces what was learned to who said so: each trained episode to its labels.

Pure functions of a ``AuditedRun``; nothing is written. Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections.abc import Collection

from cluster.audit.record import AuditedRun, AuditPart, place
from cluster.run_folder.stage_results import ActorTrained, JudgeLabels, Labelled, RolloutsPlayed
from records.labels import LabelSubject


def check_labels(run: AuditedRun, phases: Collection[int]) -> AuditPart:
    """Each episode of a phase has a label in a file that its stage names, or a failure; only labelled ones taught."""
    part = AuditPart("labels")
    for skipped in run.labelled.labels.skipped:
        part.require(False, skipped.path.name, skipped.reason)
    for phase in sorted(phases):
        if labelled := run.result(phase, Labelled):
            for subject, said in labelled.subjects.items():
                _check_judge(part, run, phase, LabelSubject(subject), said)
            if trained := run.result(phase, ActorTrained):
                _check_taught(part, run, phase, trained)
    return part


def _check_judge(part: AuditPart, run: AuditedRun, phase: int, subject: LabelSubject, said: JudgeLabels) -> None:
    """Every episode of the phase is labelled by this judge or among its failures."""
    key = (phase, Labelled.stage)
    named = {name.rpartition("/")[2] for name in run.entries[key].files}
    episodes = [i for i in run.episodes((phase, RolloutsPlayed.stage)) if i in run.buffer]
    labelled = 0
    for episode_id in episodes:
        file = run.labelled.labels.file(run.buffer.entry(episode_id), said.judge, subject)
        labelled += file is not None and file.name in named
    failed = sum(said.failures.values())
    part.require(
        (labelled, labelled + failed) == (said.labelled, len(episodes)),
        place(key),
        f"{said.judge} was asked about {subject} of {len(episodes)} episodes; the files that the stage names have "
        f"{labelled} labels, {said.labelled} were counted and {failed} failed",
    )


def _check_taught(part: AuditPart, run: AuditedRun, phase: int, trained: ActorTrained) -> None:
    """The learner used the phase's episodes that have all labels, and no other."""
    episodes = run.labelled.stream(i for i in run.episodes((phase, RolloutsPlayed.stage)) if i in run.buffer)
    fit = sum(episode.outcome is not None and bool(episode.steps) for episode in episodes)
    part.require(
        fit == trained.metrics.rollouts,
        place((phase, trained.stage)),
        f"{fit} of the phase's episodes have all labels, but the learner used {trained.metrics.rollouts}",
    )
