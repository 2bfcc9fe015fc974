"""Which milestones an attempt's actions reach, by the similarity of sentences (ADMIRE, section 3.2.1).

Owns the judge ``milestone_matching`` and its pointer: an action is held against the next milestone only, so that none
is skipped. Invariants: pure; a step hits at most one milestone; once the last is hit, nothing is hit any more; a label
says how like each hit was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judges.kinds import JudgeKind, Judges
from judges.of_milestones.actions import action_sentence
from judges.of_milestones.encoder import Remembering, SentenceEncoder, encoder_named
from judges.settings import MatchingSettings
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.labels import Label, LabelSubject

NAME = "milestone_matching"
THRESHOLD = MatchingSettings.threshold
"""The paper's delta: the similarity above which an action is taken for its milestone."""

_PLACEHOLDER = re.compile(r"<([^<>]+)>")


@dataclass(frozen=True, slots=True)
class Matched:
    """What an attempt of T steps hit of K milestones.

    ``hits`` (T,) holds the number of the milestone that each step hit, -1 for none; ``rewards`` (T,) the similarity
    there, 0 elsewhere (eq. 9).
    """

    hits: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    milestones: int

    @property
    def count(self) -> int:
        """Number of milestones that were hit, k."""
        return int((self.hits >= 0).sum())

    @property
    def similarity(self) -> npt.NDArray[np.float64]:
        """(T + 1, K): how like each milestone's hit was, in the states after it; 0 before."""
        found = np.zeros((len(self.hits) + 1, self.milestones))
        for t in np.flatnonzero(self.hits >= 0).tolist():
            found[t + 1 :, self.hits[t]] = self.rewards[t]
        return found

    @property
    def reached(self) -> npt.NDArray[np.bool_]:
        """(T + 1, K): which were hit before each step and after the last."""
        return self.similarity > 0


class MilestoneMatching:
    """Labels episodes by holding their actions against the descriptions of their milestones."""

    subject = LabelSubject.MILESTONES

    def __init__(self, threshold: float, encoder: SentenceEncoder) -> None:
        self._threshold = threshold
        self._encoder = Remembering(encoder)

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return (T + 1, K), the similarity r_mil of the hit from the step on that hits a milestone, 0 before."""
        said = tuple(milestone.description for milestone in task.milestones)
        found = match_episode(episode, said, self._encoder, self._threshold)
        return Label(
            episode.episode_id,
            self.subject,
            NAME,
            self._encoder.name,
            f"above {self._threshold}",
            np.minimum(found.similarity, 1.0).astype(np.float32),
            decision_threshold=self._threshold,
            descriptions=said,
        )


def match_in_order(similarity: npt.NDArray[np.floating], threshold: float = THRESHOLD) -> Matched:
    """Return what steps hit, given the similarity (T, K) of each step's action with each milestone.

    The paper's pointer stays at the last milestone once that is hit, so that it could be hit again; here it does not,
    so that no more than K are ever hit.
    """
    steps, count = similarity.shape
    hits = np.full(steps, -1)
    rewards = np.zeros(steps)
    pointer = 0
    for t in range(steps):
        if pointer < count and similarity[t, pointer] > threshold:
            hits[t], rewards[t] = pointer, similarity[t, pointer]
            pointer += 1
    return Matched(hits, rewards, count)


def match_episode(
    episode: Trajectory, milestones: Sequence[str], encoder: SentenceEncoder, threshold: float = THRESHOLD
) -> Matched:
    """Return what the episode's actions hit of ``milestones``; a step that was no action hits nothing."""
    return match_in_order(similarity_of(episode, milestones, encoder), threshold)


def similarity_of(episode: Trajectory, milestones: Sequence[str], encoder: SentenceEncoder) -> npt.NDArray[np.floating]:
    """Return (T, K), the cosine of each action's sentence with each milestone's; -1 for a step that was no action."""
    if not (episode.steps and milestones):
        return np.zeros((len(episode.steps), len(milestones)))
    actions = [action_sentence(step) for step in episode.steps]
    similarity = encoder.encode(actions) @ encoder.encode(milestones).T
    similarity[[not action for action in actions]] = -1
    return similarity


def filled(milestone: str, parameters: Mapping[str, object]) -> str:
    """Return a milestone with its placeholders filled by a task's parameters; one that names none stays as it is."""
    by_name = {name.casefold(): str(value) for name, value in parameters.items()}
    return _PLACEHOLDER.sub(lambda found: by_name.get(found[1].strip().casefold(), found[0]), milestone)


def _make(settings: MatchingSettings, judges: Judges) -> MilestoneMatching:
    return MilestoneMatching(settings.threshold, encoder_named(settings.encoder))


MATCHING = JudgeKind(settings=MatchingSettings, make=_make)
"""The judge ``milestone_matching``."""
