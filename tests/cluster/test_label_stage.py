"""The stage ``label``: only where a recipe names a judge; what is learned follows its labels, and all is accounted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.audit import audit
from cluster.errors import RecipeError, RunStopped
from cluster.preflight.doctor import check_labels
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.rollback import read_rollbacks
from cluster.run_folder.stage_results import Labelled, ReplayFiltered, RolloutsPlayed, TasksChosen
from cluster.run_folder.summarising import summarise
from replay.buffer import ReplayBuffer
from tests.cluster import label_judges
from tests.cluster.fake_run import ORDER, Killed, Run
from tests.cluster.label_judges import HERE, asked, says_of


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _nobody_was_asked() -> None:
    asked.clear()


def judged_run(folder: Path, judge: str = "COIN", **rollout: Any) -> Run:
    replay, rollout = {"outcomes": f"{HERE}:{judge}"}, {"retry_delay_s": 0.0, **rollout}
    return Run(folder, replay=replay, rollout=rollout, run={"keep_checkpoints": 3})


def with_labels(order: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return [x for at in order for x in ([at, (at[0], "label")] if at[1] == "rollouts" else [at])]


def test_the_stage_is_there_only_where_a_recipe_names_a_judge(tmp_path: Path) -> None:
    plain, judged = Run(tmp_path / "plain"), judged_run(tmp_path / "judged")
    (tmp_path / "plain").mkdir()
    (tmp_path / "judged").mkdir()
    plain.start()
    judged.start()
    assert plain.manifest.stages() == ORDER
    assert judged.manifest.stages() == with_labels(ORDER)
    assert not (plain.out / "labels").exists()
    assert audit(plain.out).findings == []
    assert audit(judged.out).findings == []
    assert "labels" not in {part.name for part in audit(plain.out).parts}


def test_what_the_start_policy_played_is_labelled_as_well_and_replayed_by_its_labels(tmp_path: Path) -> None:
    replay, rollout = {"outcomes": f"{HERE}:COIN"}, {"retry_delay_s": 0.0}
    run = Run(tmp_path, replay=replay, rollout=rollout, warm_start={"rollout_tasks": 4})
    run.start()
    first = run.manifest.result(0, RolloutsPlayed).episodes
    right = {i for i in first if says_of(i) >= 0.5}
    assert set(run.manifest.result(1, ReplayFiltered).kept) == right
    assert right
    assert (0, "label") in run.manifest.stages()
    assert audit(run.out).findings == []


def test_learning_and_the_curriculum_follow_the_labels_and_evaluation_the_rules(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    run.start()
    first = run.manifest.result(1, RolloutsPlayed)
    right = {i for i in first.episodes if says_of(i) >= 0.5}
    assert set(run.manifest.result(2, ReplayFiltered).kept) == right
    assert right != set(ReplayBuffer(run.out / "episodes").successes(phases=[1]))
    assert set(asked) == set(first.episodes) | set(run.manifest.result(2, RolloutsPlayed).episodes)
    labelled = run.manifest.result(1, Labelled)
    assert labelled.success is not None
    assert labelled.success.success == len(right) / 6
    assert labelled.agreement is not None
    assert labelled.agreement.n == 6
    assert labelled.subjects["outcome"].wordings == {"none crc/1": 6}
    assert labelled.subjects["outcome"].cost_usd == 1.5
    (phase,) = [p for p in summarise(run.manifest, "r", 2).to_json()["phases"] if p["phase"] == 1]
    assert phase["labels"]["success"]["success"] == labelled.success.success
    assert phase["rollout"]["success"] == first.successes / 6
    failed = run.manifest.result(1, TasksChosen).origins
    assert sum(failed.values()) == 6


@pytest.mark.parametrize("moment", [2, 5, 9])
def test_a_cut_run_asks_no_question_twice_whose_label_is_there(
    tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.labelling._AT_ONCE", 1)
    run = judged_run(tmp_path)
    left = iter(range(moment, -1, -1))

    def cut(self: object, episode_id: str) -> None:
        if next(left) == 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(label_judges.Coin, "trouble", cut, raising=False)
        patch.setattr(label_judges.Coin, "__init__", lambda self, trouble=None: None)
        with pytest.raises(Killed):
            run.start()
    run.start()
    assert run.manifest.stages() == with_labels(ORDER)
    assert sum(asked.values()) <= 12 + run.recipe.replay.labels_at_once
    assert audit(run.out).findings == []


def test_what_a_judge_cannot_label_is_not_learned_from_and_is_counted(tmp_path: Path) -> None:
    run = judged_run(tmp_path, "PICKY", attempts=2)
    with pytest.raises(RunStopped, match="does not add up"):
        run.start()  # the pretended learner says that it used every episode
    labelled = run.manifest.result(1, Labelled).subjects["outcome"]
    episodes = run.manifest.result(1, RolloutsPlayed).episodes
    lost = [i for i in episodes if says_of(i) < 0.5]
    assert lost, "the test needs an episode that the judge fails for"
    assert labelled.failures == {"judge/judge_nonsense": len(lost)}
    assert labelled.labelled == len(episodes) - len(lost)
    assert {asked[i] for i in lost} == {2}
    assert {asked[i] for i in set(episodes) - set(lost)} == {1}
    (finding,) = audit(run.out).findings
    assert f"{labelled.labelled} of the phase's episodes have all labels, but the learner used 6" in finding.found


@pytest.mark.parametrize(
    ("judge", "code"), [("BROKEN", "judge_error"), ("SILENT", "judge_deadline"), ("ELSEWHERE", "judge_nonsense")]
)
def test_a_judge_in_trouble_stops_the_run_with_a_sentence_and_labels_nothing(
    tmp_path: Path, judge: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster.labelling._LABEL_S", 0.05)
    run = judged_run(tmp_path, judge, failure_floor=3, attempts=2)
    with pytest.raises(RunStopped, match=f"stopped after 4 judge failures.*{code} x4.*labels are kept"):
        run.start()
    assert not (run.out / "labels").exists()
    assert (1, "label") not in run.manifest.stages()


def test_a_damaged_file_of_labels_is_found_and_its_stage_is_done_again(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    run.start()
    before = run.manifest.result(1, Labelled)
    asked.clear()
    path = run.out / "labels" / before.label_files[0]
    path.write_bytes(path.read_bytes()[:-50])
    assert {finding.subject for finding in audit(run.out).findings} >= {f"labels/{path.name}", "phase 1 label"}
    run.start()
    (rolled,) = read_rollbacks(run.out)
    assert rolled.stages[0] == (1, "label")
    assert run.manifest.result(1, Labelled).agreement == before.agreement
    assert sum(asked.values()) == 6, "only the labels of the damaged file are asked for again"
    assert audit(run.out).findings == []


def test_a_label_that_is_not_the_stages_own_is_found(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    run.start()
    name = run.manifest.result(2, Labelled).label_files[0]
    (run.out / "labels" / name).unlink()
    found = {finding.subject: finding.found for finding in audit(run.out).findings}
    assert "is gone" in found[f"labels/{name}"]
    assert "have 0 labels, 6 were counted and 0 failed" in found["phase 2 label"]


def test_a_recipe_is_refused_where_steps_are_judged_and_not_used_or_the_other_way_round() -> None:
    with pytest.raises(RecipeError, match=r"replay.step_rewards: expected a judge of steps"):
        build_recipe({"learner": {"reward": "process"}})
    with pytest.raises(RecipeError, match=r"expected the reward 'process' or 'process_steps' with 'x'"):
        build_recipe({"replay": {"step_rewards": "x"}})
    assert build_recipe({"replay": {"step_rewards": "x"}, "learner": {"reward": "process"}})


def test_the_check_tells_judges_that_do_not_label_what_is_asked(tmp_path: Path) -> None:
    for name, said in (
        ("nobody", "expected a judge out of"),
        ("evaluators", "expected an EpisodeJudge"),
        (f"{HERE}:HALF", "labels steps, and is asked for outcome"),
    ):
        (check,) = check_labels(build_recipe({"replay": {"outcomes": name}}))
        assert (check.status.value, said in check.found) == ("fail", True)
    assert check_labels(build_recipe({"replay": {"outcomes": f"{HERE}:COIN"}})) == []
    assert json.loads(json.dumps(build_recipe({}).replay.judges)) == {}
