"""A replay buffer's episodes as learning sees them: under the labels of the judges that a recipe names.

Owns ``LabelledBuffer``. Invariants: shards stay as they are; only rollouts are shown otherwise than as played, so that
evaluations and demonstrations keep the rules' verdicts; a rollout that a named judge has not labelled has no verdict
here, so that nothing learns from it; with no judge named, everything is as played.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from records import failure_codes as codes
from records.episodes import Source, Trajectory
from records.failures import Failure, FailureKind
from records.labels import Label, LabelSubject
from replay.buffer import Entry, ReplayBuffer
from replay.labels import LabelStore
from replay.progress import hit_in_order


class LabelledBuffer:
    """The episodes of ``buffer`` under the labels in ``labels`` by ``judges``, one for each subject that has one."""

    def __init__(self, buffer: ReplayBuffer, labels: LabelStore, judges: Mapping[LabelSubject, str]) -> None:
        self.buffer = buffer
        self.labels = labels
        self.judges = dict(judges)

    def refresh(self) -> None:
        """Look at both folders again."""
        self.buffer.refresh()
        self.labels.refresh()

    def missing(self, entry: Entry) -> tuple[LabelSubject, ...]:
        """Return the subjects on which an episode ought to have a label and has none."""
        if entry.source is not Source.ROLLOUT:
            return ()
        return tuple(s for s, judge in self.judges.items() if self.labels.find(entry, judge, s) is None)

    def entry(self, episode_id: str) -> Entry:
        """Return what is known of an episode; raise ``LookupError`` where it is unknown."""
        return self._shown(self.buffer.entry(episode_id))

    def successes(self, *, phases: Collection[int]) -> tuple[str, ...]:
        """Return the ids of the successful rollouts of these phases, sorted."""
        return tuple(e.episode_id for e in self._rollouts(phases) if e.outcome == 1.0)

    def failures(self, *, phases: Collection[int]) -> tuple[Entry, ...]:
        """Return the rollouts of these phases that count as a failure, by their ids; not those without a verdict."""
        return tuple(e for e in self._rollouts(phases) if e.outcome is not None and e.outcome != 1.0)

    def trajectories(self, episode_ids: Iterable[str], *, pages: bool = True) -> list[Trajectory]:
        """Return episodes in the order asked for; raise ``LookupError`` for unknown ids.

        ``pages`` is that of ``ReplayBuffer.trajectories``.
        """
        return [self._relabelled(played) for played in self.buffer.trajectories(episode_ids, pages=pages)]

    def stream(self, episode_ids: Iterable[str]) -> Iterator[Trajectory]:
        """Yield episodes shard by shard, holding one at a time; raise ``LookupError`` for unknown ids at once."""
        return map(self._relabelled, self.buffer.stream(episode_ids))

    def _rollouts(self, phases: Collection[int]) -> list[Entry]:
        return [self.entry(i) for i in self.buffer.ids(sources=[Source.ROLLOUT], phases=phases)]

    def _shown(self, entry: Entry) -> Entry:
        if self.missing(entry):
            return replace(entry, outcome=None, failure=FailureKind.JUDGE)
        label = self._labels(entry).get(LabelSubject.OUTCOME)
        return entry if label is None else replace(entry, outcome=label.outcome, failure=None)

    def _relabelled(self, played: Trajectory) -> Trajectory:
        """Return a trajectory with what the labels say of it."""
        entry = self.buffer.entry(played.episode_id)
        if missing := self.missing(entry):
            detail = f"no label of {' and '.join(missing)} by {' and '.join(self.judges[s] for s in missing)}"
            return replace(played, outcome=None, failure=Failure(codes.NO_LABEL, detail))
        changes: dict[str, Any] = {}
        labels = self._labels(entry)
        if label := labels.get(LabelSubject.OUTCOME):
            changes = {"outcome": label.outcome, "failure": None}
        if label := labels.get(LabelSubject.MILESTONES):
            *before, last = [tuple(row) for row in label.decided.tolist()]
            played = _with_steps(_with_steps(played, "milestones", before), "similarity", _similarity(label))
            changes["final_milestones"] = last
        if label := labels.get(LabelSubject.STEPS):
            played = _with_steps(played, "reward", label.values.tolist())
        return replace(played, **changes)

    def _labels(self, entry: Entry) -> dict[LabelSubject, Label]:
        if entry.source is not Source.ROLLOUT:
            return {}
        found = {subject: self.labels.find(entry, judge, subject) for subject, judge in self.judges.items()}
        return {subject: label for subject, label in found.items() if label is not None}


def _similarity(label: Label) -> list[float]:
    """Return for each step what the label says of the milestones that it hits in their turn, the most of several.

    It is 1 for a step that hits none.
    """
    decided, counts = label.decided, hit_in_order(label.decided)
    turns = np.arange(decided.shape[1])
    in_turn = (counts[:-1, None] <= turns) & (turns < counts[1:, None])
    hits = decided[1:] & ~decided[:-1] & in_turn
    said = np.where(hits, label.values[1:], 0.0).max(axis=1, initial=0.0)
    return np.where(hits.any(axis=1), said, 1.0).tolist()


def _with_steps(played: Trajectory, name: str, values: Iterable[Any]) -> Trajectory:
    """Return a trajectory whose steps have these values of one field, one a step."""
    steps = tuple(replace(step, **{name: value}) for step, value in zip(played.steps, values, strict=True))
    return replace(played, steps=steps)
