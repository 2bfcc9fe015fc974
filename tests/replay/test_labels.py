"""Labels are records of their own: what was judged stays as it is, and learning sees it as the labels say."""

import numpy as np
import pytest

from records.episodes import Source
from records.failures import FailureKind
from records.labels import Label, LabelSubject, misfit
from replay.buffer import ReplayBuffer
from replay.labelled import LabelledBuffer
from replay.labels import LabelStore, StoredLabel, read_labels
from replay.shards import TornShardError, write_shard
from tests.replay.test_buffer import episode

OUTCOME, MILESTONES, STEPS = LabelSubject.OUTCOME, LabelSubject.MILESTONES, LabelSubject.STEPS


def label(episode_id: str, value=1.0, judge="orm", subject=OUTCOME, **more) -> Label:
    values = np.asarray([value] if subject is OUTCOME else value)
    return Label(episode_id, subject, judge, "model", "prompt/1", values, **more)


class Folder:
    """A run folder's episodes and labels."""

    def __init__(self, folder, *episodes):
        self.shard = write_shard(folder / "episodes", list(episodes)).path.name
        self.buffer = ReplayBuffer(folder / "episodes")
        self.labels = LabelStore(folder / "labels")

    def say(self, *labels: Label, stem="p001", shard=None):
        return self.labels.write(stem, [StoredLabel(each, shard or self.shard) for each in labels])

    def under(self, **judges) -> LabelledBuffer:
        return LabelledBuffer(self.buffer, self.labels, {LabelSubject(name): judge for name, judge in judges.items()})


def test_labels_come_back_as_they_were_written(tmp_path):
    folder = Folder(tmp_path, episode("a"))
    said = label("a", 0.25, decision_threshold=0.2, evidence="thus\ud800", cost_usd=0.5)
    reached = label("a", [[0, 1], [1, 1]], subject=MILESTONES, descriptions=("one", "two"))
    path = folder.say(said, reached, label("a", [1.0], subject=STEPS))
    first, second, third = (stored.label for stored in read_labels(path))
    assert (first.values.tolist(), first.outcome, first.evidence) == ([0.25], 1.0, "thus?")
    assert (second.values.tolist(), second.descriptions) == ([[0, 1], [1, 1]], ("one", "two"))
    assert (third.subject, third.values.dtype) == (STEPS, np.float32)
    assert LabelStore(tmp_path / "labels").find(folder.buffer.entry("a"), "orm", OUTCOME).cost_usd == 0.5


def test_success_begins_at_the_threshold_itself():
    for threshold in (0.7, np.float64(0.7), 0.1, 1.0):
        assert label("a", threshold, decision_threshold=threshold).outcome == 1.0
        below = float(np.nextafter(np.float32(threshold), np.float32(0)))
        assert label("a", below, decision_threshold=threshold).outcome == 0.0


@pytest.mark.parametrize("wrong", [{"value": 1.5}, {"value": float("nan")}, {"decision_threshold": 1.1}])
def test_a_label_of_impossible_numbers_is_refused(wrong):
    with pytest.raises(ValueError, match="label of a by orm: expected"):
        label("a", **wrong)
    with pytest.raises(ValueError, match=r"1 axes for outcome, found shape \(2,\)"):
        Label("a", OUTCOME, "orm", "m", "p", np.zeros(2, np.float32))


def test_a_label_that_does_not_fit_its_episode_is_told():
    played = episode("a")
    assert not misfit(label("a"), played, OUTCOME)
    assert "found one of outcome on b" in misfit(label("b"), played, OUTCOME)
    assert "one value for each of 1 steps, found 2" in misfit(label("a", [1, 1], subject=STEPS), played, STEPS)
    assert "expected 2 rows" in misfit(label("a", [[1.0]], subject=MILESTONES), played, MILESTONES)
    rows = label("a", [[0.0], [1.0]], subject=MILESTONES, descriptions=("one",))
    assert not misfit(rows, played, MILESTONES)


def test_without_a_judge_everything_is_as_played(tmp_path):
    folder = Folder(tmp_path, episode("won"), episode("lost", 0.0))
    folder.say(label("won", 0.0), label("lost", 1.0))
    view = folder.under()
    assert view.successes(phases=[1]) == ("won",)
    assert view.trajectories(["won"])[0].outcome == 1.0
    assert view.entry("lost") == folder.buffer.entry("lost")


def test_outcomes_are_those_of_the_labels_everywhere_and_the_shard_stays(tmp_path):
    folder = Folder(tmp_path, episode("won"), episode("lost", 0.0), episode("late"))
    before = folder.buffer.entry("won").shard.read_bytes()
    folder.say(label("won", 0.4), label("lost", 0.4, decision_threshold=0.3))
    view = folder.under(outcome="orm")
    assert view.successes(phases=[1]) == ("lost",)
    assert [entry.episode_id for entry in view.failures(phases=[1])] == ["won"]
    assert [view.entry(i).outcome for i in ("won", "lost")] == [0.0, 1.0]
    assert [played.outcome for played in view.trajectories(["lost", "won"])] == [1.0, 0.0]
    assert folder.buffer.successes() == ("late", "won")
    assert folder.buffer.entry("won").shard.read_bytes() == before


def test_an_episode_without_its_label_has_no_verdict_to_learn_from(tmp_path):
    folder = Folder(tmp_path, episode("a"))
    folder.say(label("a", judge="another"))
    view = folder.under(outcome="orm")
    (played,) = view.trajectories(["a"])
    assert view.missing(folder.buffer.entry("a")) == (OUTCOME,)
    assert (view.entry("a").outcome, view.entry("a").failure) == (None, FailureKind.JUDGE)
    assert (played.outcome, str(played.failure.code)) == (None, "judge/no_label")
    assert (view.successes(phases=[1]), view.failures(phases=[1])) == ((), ())


def test_evaluations_and_demonstrations_keep_the_verdict_of_the_rules(tmp_path):
    folder = Folder(tmp_path, episode("e", source=Source.EVALUATION), episode("d", source=Source.DEMONSTRATION))
    folder.say(label("e", 0.0), label("d", 0.0))
    view = folder.under(outcome="orm", steps="orm")
    assert [played.outcome for played in view.trajectories(["e", "d"])] == [1.0, 1.0]
    assert view.entry("e").outcome == 1.0


def test_milestones_and_step_rewards_take_the_place_of_what_was_played(tmp_path):
    folder = Folder(tmp_path, episode("a", final_milestones=(True,)))
    folder.say(
        label("a", [[0.2, 0.9], [0.5, 0.9]], subject=MILESTONES, descriptions=("one", "two")),
        label("a", [0.25], judge="process", subject=STEPS),
    )
    (played,) = folder.under(milestones="orm", steps="process").trajectories(["a"])
    assert (played.steps[0].milestones, played.final_milestones) == ((False, True), (True, True))
    assert (played.steps[0].reward, played.outcome) == (0.25, 1.0)
    assert played.steps[0].similarity == 0.5, "of the milestone that it reaches, not of the one that was there"


def test_a_milestone_out_of_its_turn_lends_a_hit_no_similarity(tmp_path):
    folder = Folder(tmp_path, episode("a", final_milestones=(True,)))
    values = [[0.1, 0.1, 0.1], [0.55, 0.2, 0.99]]
    folder.say(label("a", values, subject=MILESTONES, descriptions=("one", "two", "three")))
    (played,) = folder.under(milestones="orm").trajectories(["a"])
    assert played.steps[0].similarity == pytest.approx(0.55), "the third is no hit, since the second is not there"


def test_a_step_that_reaches_nothing_new_has_the_similarity_of_none(tmp_path):
    folder = Folder(tmp_path, episode("a", final_milestones=(True,)))
    folder.say(label("a", [[0.2, 0.9], [0.3, 0.8]], subject=MILESTONES, descriptions=("one", "two")))
    (played,) = folder.under(milestones="orm").trajectories(["a"])
    assert played.steps[0].similarity == 1.0


def test_the_first_recorded_label_counts_whatever_is_written_later(tmp_path):
    folder = Folder(tmp_path, episode("a"))
    entry = folder.buffer.entry("a")
    recorded = folder.say(label("a", 0.0), stem="z").name
    late = folder.say(label("a", 1.0), stem="a").name
    assert folder.labels.find(entry, "orm", OUTCOME).outcome == 1.0, "by its name the late one would count"
    for files in ({recorded: 0}, {recorded: 0, late: 1}):
        folder.labels.record(files)
        assert folder.labels.find(entry, "orm", OUTCOME).outcome == 0.0
        assert folder.labels.file(entry, "orm", OUTCOME).name == recorded


def test_a_label_is_of_one_record_of_an_episode_and_not_of_the_next(tmp_path):
    folder = Folder(tmp_path, episode("a", 0.0))
    folder.say(label("a", 1.0))
    folder.buffer.entry("a").shard.unlink()
    write_shard(tmp_path / "episodes", [episode("a", 0.0, seed=9)])
    view = folder.under(outcome="orm")
    view.refresh()
    assert view.entry("a").outcome is None


def test_a_damaged_file_of_labels_is_skipped_and_told(tmp_path, caplog):
    folder = Folder(tmp_path, episode("a"), episode("b"))
    whole, torn = folder.say(label("a")), folder.say(label("b"))
    torn.write_bytes(torn.read_bytes()[:-40])
    (tmp_path / "labels" / "notes.labels").write_text("not Arrow")
    again = LabelStore(tmp_path / "labels")
    assert {skipped.path.name for skipped in again.skipped} == {torn.name, "notes.labels"}
    told = len(caplog.messages)
    again.record({torn.name: 0})
    assert {skipped.path.name for skipped in again.skipped} == {torn.name, "notes.labels"}
    assert len(caplog.messages) == told
    assert again.judges(OUTCOME) == ("orm",)
    assert again.find(folder.buffer.entry("a"), "orm", OUTCOME) is not None
    assert again.find(folder.buffer.entry("b"), "orm", OUTCOME) is None
    assert whole.is_file()
    with pytest.raises(TornShardError):
        read_labels(torn)
