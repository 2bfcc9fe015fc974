"""Which records the learner's process reads: those that were recorded, as its driver does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cluster.learner_actor import LearnerActor
from records.episodes import Trajectory
from records.labels import Label, LabelSubject
from replay.buffer import ReplayBuffer
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore, StoredLabel
from replay.shards import write_shard
from tests.cluster.made_episodes import spec, trajectory

JUDGES = {LabelSubject.OUTCOME: "orm"}


class Noting:
    """A learner that keeps what it was to clone."""

    def clone(self, trajectories: Sequence[Trajectory]) -> list[tuple[str, float | None]]:
        return [(one.worker, one.outcome) for one in trajectories]


def test_what_was_recorded_is_learned_from_whatever_comes_late(tmp_path: Path) -> None:
    """Of a shard and of a file of labels there is a late one each, which would count by its name."""
    episode = replace(trajectory(spec(1), 0.0), worker="first")
    labels = LabelStore(tmp_path / "labels")

    def write(stem: str, worker: str, said: float) -> list[str]:
        shard = write_shard(tmp_path / "episodes", [replace(episode, worker=worker)], stem).path.name
        stored = [
            StoredLabel(Label(episode.episode_id, LabelSubject.OUTCOME, "orm", "m", "p", np.asarray([value])), about)
            for value, about in ((said, shard), (said, first[0] if first else shard))
        ]
        return [shard, labels.write(stem, list({one.shard: one for one in stored}.values())).name]

    first: list[str] = []
    first = write("z", "first", 1.0)
    late = write("a", "late", 0.0)
    actor = LearnerActor.__new__(LearnerActor)
    actor._out = str(tmp_path)
    actor._learner = Noting()  # type: ignore[assignment]
    actor._episodes = LabelledBuffer(ReplayBuffer(tmp_path / "episodes"), LabelStore(tmp_path / "labels"), JUDGES)
    assert actor.clone([episode.episode_id]) == [("late", 0.0)], "by their names the late ones would count"
    actor.record(dict.fromkeys(first, 0))
    assert actor.clone([episode.episode_id]) == [("first", 1.0)]
    actor.record({**dict.fromkeys(first, 0), **dict.fromkeys(late, 1)})
    assert actor.clone([episode.episode_id]) == [("first", 1.0)]
