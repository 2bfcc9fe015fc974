"""A judge of steps that asks no model: right is what leads to a milestone.

Owns the judge ``milestone_steps``, a process reward where milestones are recorded. Invariants: it reads the record
alone; the same episode gets the same label.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from judges.kinds import JudgeKind, Judges
from judges.settings import MilestoneStepsSettings
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.labels import Label, LabelSubject
from replay.progress import reached_after

NAME = "milestone_steps"


class MilestoneStepsJudge:
    """An ``EpisodeJudge`` of steps."""

    subject = LabelSubject.STEPS

    def __init__(self, settings: MilestoneStepsSettings) -> None:
        self._settings = settings

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return whether each step was right (T,); see ``EpisodeJudge``."""
        values = steps_to_milestones(episode, self._settings.within)
        return Label(episode.episode_id, self.subject, NAME, "", f"within {self._settings.within}", values)


def steps_to_milestones(episode: Trajectory, within: int) -> npt.NDArray[np.float32]:
    """Return (T,) 1 for the last ``within`` steps up to each that reaches a milestone, and for the end of a success.

    With 0 it is as many as the expert needs for one: horizon / K, rounded up; where that is not known, all since the
    milestone before.
    """
    reached = reached_after(episode)
    right = np.zeros(len(episode.steps), dtype=np.float32)
    share = math.ceil(episode.horizon / max(reached.shape[1], 1))
    begin = 0
    for hit in np.flatnonzero(np.diff(reached.sum(axis=1)) > 0).tolist():
        right[max(begin, hit + 1 - (within or share or hit + 1)) : hit + 1] = 1.0
        begin = hit + 1
    if episode.success:
        right[-1] = 1.0
    return right


def _make(settings: MilestoneStepsSettings, judges: Judges) -> MilestoneStepsJudge:
    return MilestoneStepsJudge(settings)


MILESTONE_STEPS = JudgeKind(settings=MilestoneStepsSettings, make=_make)
"""The judge ``milestone_steps``."""
