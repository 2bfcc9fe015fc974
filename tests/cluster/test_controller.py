"""The phase loop over a system of no processes: the order of stages, and what a restart does and leaves alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster import controller, stage_runner
from cluster.audit.audit import audit
from cluster.data_import import import_data
from cluster.errors import RunStopped
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.played_results import NO_EPISODES
from cluster.run_folder.stage_results import (
    Cloned,
    CriticsPretrained,
    Evaluated,
    ReplayFiltered,
    RolloutsPlayed,
    TasksChosen,
)
from cluster.task_sets import TaskSets
from records.episodes import Source
from replay.buffer import ReplayBuffer
from replay.packing import STEM
from replay.perplexity import Kept, fill_cap
from replay.shards import write_shard
from rollout_workers.results import RolloutResult
from rollout_workers.spec import EpisodeSpec
from tests.cluster.fake_run import ORDER, FakeSystem, Killed, Run, at, before, brief
from tests.model_families import FAMILIES, save
from tests.offline.made_sources import FAILED, conversations, experience, write_json


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_stages_come_in_the_order_of_the_algorithm(run: Run) -> None:
    system = run.start()
    assert run.manifest.stages() == ORDER
    assert system.moments() == [
        ("play", "demonstration", 0),
        ("clone",),
        ("checkpoint", "cloned"),
        ("restore", "cloned"),
        ("play", "demonstration", 0),
        ("pretrain", "potential"),
        ("pretrain", "value"),
        ("checkpoint", "phase-000"),
        ("retire", "browserless"),
        ("restore", "phase-000"),
        ("publish", 0),
        ("play", "evaluation", 0),
        ("play", "rollout", 1),
        ("update_critics", 1),
        ("checkpoint", "phase-001-critics"),
        ("update_actor", 1),
        ("checkpoint", "phase-001"),
        ("publish", 1),
        ("play", "evaluation", 1),
        ("play", "rollout", 2),
        ("score",),
        ("update_critics", 2),
        ("checkpoint", "phase-002-critics"),
        ("update_actor", 2),
        ("checkpoint", "phase-002"),
        ("publish", 2),
        ("play", "evaluation", 2),
        ("export",),
    ]
    assert {what[1] for what in system.asked if what[0] == "play" and what[2] is Source.DEMONSTRATION} == {
        "browserless"
    }
    assert {what[1] for what in system.asked if what[0] == "play" and what[2] is not Source.DEMONSTRATION} == {
        "embedded"
    }


def test_the_workers_of_the_warm_start_stay_where_the_phases_need_them(tmp_path: Path) -> None:
    system = Run(tmp_path, run={"environment": "browserless"}).start()
    assert ("retire", "browserless") not in system.moments()


def test_the_learner_gets_this_phases_episodes_and_the_kept_successes_of_earlier_ones(run: Run) -> None:
    system = run.start()
    (first, _), (second, replayed) = (what[1:3] for what in system.asked if what[0] == "update_actor")
    earlier = [kept.episode_id for kept in replayed]
    assert [what[1:3] for what in system.asked if what[0] == "update_critics"] == [(first, []), (second, earlier)]
    assert len(first) == len(second) == 6
    assert not set(first) & set(second)
    assert first == list(run.manifest.result(1, RolloutsPlayed).episodes)
    successes = set(ReplayBuffer(system.folders.episodes).successes(phases=[1]))
    assert successes
    assert {kept.episode_id for kept in replayed} == successes
    assert all(isinstance(kept, Kept) and kept.steps == (0,) for kept in replayed)
    assert run.manifest.result(1, ReplayFiltered).kept == {}


def test_a_shard_that_comes_late_is_not_what_the_learner_reads(run: Run) -> None:
    """A worker that was taken for dead writes its record of an episode while the critics are about to be trained."""
    late: dict[str, str] = {}

    def comes_late(what: tuple[Any, ...]) -> None:
        if brief(what) == ("update_critics", 1):
            (name, *_), folder = run.manifest.result(1, RolloutsPlayed).episodes, run.out / "episodes"
            played = ReplayBuffer(folder).trajectory(name)
            other = replace(played, outcome=1.0 - (played.outcome or 0.0))
            late[name] = write_shard(folder, [other], stem="0").path.name

    read = run.start(comes_late).learner.read
    ((name, shard),) = late.items()
    assert ReplayBuffer(run.out / "episodes").entry(name).shard.name == shard, "by its name it would count"
    assert set(read) == {name for phase in (1, 2) for name in run.manifest.result(phase, RolloutsPlayed).episodes}
    assert shard not in read.values()


def test_the_replay_filter_draws_by_the_phase_and_the_runs_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def noted(*given: Any, seed: int, **named: Any) -> Any:
        seeds.append(seed)
        return fill_cap(*given, seed=seed, **named)

    monkeypatch.setattr(controller, "fill_cap", noted)
    Run(tmp_path, run={"seed": 3}).start()
    assert seeds == [3001, 3002]


@pytest.mark.parametrize(("phase", "source"), [(1, Source.ROLLOUT), (2, Source.EVALUATION)])
def test_a_phase_that_does_not_add_up_is_the_runs_last(
    run: Run, phase: int, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its episodes are decided by weights that nobody published: nothing is built on them."""
    play = FakeSystem.play

    def by_others(self: FakeSystem, specs: list[EpisodeSpec], *given: Any, **named: Any) -> RolloutResult:
        published = self.version
        if (specs[0].phase, specs[0].source) == (phase, source):
            self.version = 9
        result = play(self, specs, *given, **named)
        self.version = published
        return result

    monkeypatch.setattr(FakeSystem, "play", by_others)
    with pytest.raises(RunStopped, match=rf"phase {phase} does not add up"):
        run.start()
    assert run.manifest.stages() == [stage for stage in ORDER if stage[0] <= phase]
    assert ("export",) not in run.system.moments()


@pytest.mark.parametrize(("keep", "left"), [(1, [2]), (2, [1, 2]), (9, [0, 1, 2])])
def test_old_checkpoints_and_weights_go_with_each_phase(tmp_path: Path, keep: int, left: list[int]) -> None:
    run = Run(tmp_path, run={"keep_checkpoints": keep})
    seen: list[list[str]] = []

    def look(what: tuple[Any, ...]) -> None:
        if brief(what) == ("update_critics", 2):
            seen.append(names("checkpoints/*"))

    def names(pattern: str) -> list[str]:
        return sorted(path.name for path in run.out.glob(pattern))

    run.start(look)
    assert names("checkpoints/*") == [f"phase-00{phase}" for phase in left]
    assert names("weights/*.safetensors") == [f"actor-00000{phase}.safetensors" for phase in left]
    assert seen == [[f"phase-00{phase}" for phase in (0, 1)][-keep:]]
    assert audit(run.out).findings == []


@pytest.mark.parametrize(("phases", "past"), [(1, [3]), (2, [2, 3]), (9, [1, 2, 3])])
def test_critics_may_learn_from_past_phases_too(tmp_path: Path, phases: int, past: list[int]) -> None:
    """Failures too, once each, and the actor from none of it."""
    run = Run(tmp_path, run={"phases": 4}, replay={"critic_phases": phases})
    system = run.start()
    again = [what[2] for what in system.asked if what[0] == "update_critics"]
    replayed = [what[2] for what in system.asked if what[0] == "update_actor"]
    assert again[0] == replayed[0] == []
    ids = again[3]
    played = {episode for phase in past for episode in run.manifest.result(phase, RolloutsPlayed).episodes}
    assert set(ids) == played | {kept.episode_id for kept in replayed[3]}
    assert len(ids) == len(set(ids)) > len(replayed[3])


def test_each_stage_is_logged_once_and_shown(run: Run) -> None:
    run.start()
    lines = list(read_metrics(run.out))
    assert [(line["phase"], line["stage"]) for line in lines] == ORDER
    actor = next(line for line in lines if line["stage"] == "actor")
    assert actor["metrics.actor.loss"] == 0.25
    assert "phase 2/2: actor done" in run.output.getvalue()
    assert "value 0.5" in run.output.getvalue()


def test_a_complete_run_plays_and_learns_nothing(run: Run) -> None:
    run.start()
    complete = (run.out / "manifest.json").read_bytes()
    again = run.start()
    assert again.moments() == [("retire", "browserless"), ("restore", "phase-002"), ("publish", 2), ("export",)]
    assert (run.out / "manifest.json").read_bytes() == complete


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("undisturbed"))
    run.start()
    return run


def stage_data(run: Run) -> dict[tuple[int, str], Any]:
    return {stage: run.manifest.entry(*stage).result for stage in run.manifest.stages()}


@pytest.mark.parametrize("moment", range(0, 57, 6))
def test_a_run_cut_short_at_any_request_goes_on_to_the_same_end(tmp_path: Path, undisturbed: Run, moment: int) -> None:
    run = Run(tmp_path)
    with pytest.raises(Killed):
        run.start(at(moment))
    done = run.manifest.stages()
    first = run.system
    played = Counter(spec.episode_id for spec in first.specs)
    after = run.start()
    played.update(spec.episode_id for spec in after.specs)
    assert set(played.values()) == {1}, "a finished episode was played again"
    assert run.manifest.stages() == ORDER
    assert run.manifest.stages()[: len(done)] == done
    for stage in ("critics", "actor"):
        trained = [what[3] for what in after.asked if what[0] == f"update_{stage}"]
        assert trained == [phase for phase in (1, 2) if (phase, stage) not in done]
    assert stage_data(run) == stage_data(undisturbed)
    assert [(line["phase"], line["stage"]) for line in read_metrics(run.out)] == ORDER


@pytest.mark.parametrize(
    ("cut_before", "checkpoint", "version"),
    [
        (("play", "evaluation", 0), "phase-000", 0),
        (("play", "rollout", 1), "phase-000", 0),
        (("update_critics", 1), "phase-000", 0),
        (("publish", 1), "phase-001", 1),
        (("play", "evaluation", 1), "phase-001", 1),
        (("play", "rollout", 2), "phase-001", 1),
        (("update_critics", 2), "phase-001", 1),
        (("play", "evaluation", 2), "phase-002", 2),
    ],
)
def test_after_a_restart_the_last_weights_are_served_before_any_episode(
    run: Run, cut_before: tuple[Any, ...], checkpoint: str, version: int
) -> None:
    with pytest.raises(Killed):
        run.start(before(cut_before))
    moments = run.start().moments()
    assert moments[:3] == [("retire", "browserless"), ("restore", checkpoint), ("publish", version)]
    assert moments[3] == (cut_before if cut_before[0] != "publish" else ("play", "evaluation", 1))


PACKED = {"replay": {"pack_above": 1}}


@pytest.mark.parametrize("cut", ["before_its_manifest", "before_its_sources_go", "never"])
def test_a_stages_shards_are_packed_and_a_kill_in_between_loses_and_doubles_nothing(
    tmp_path: Path, undisturbed: Run, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, **PACKED)

    def killed(*arguments: Any, **named: Any) -> None:
        raise Killed

    if cut != "never":
        with monkeypatch.context() as patch:
            if cut == "before_its_manifest":
                patch.setattr(RunManifest, "complete_stage", killed)
            else:
                patch.setattr(stage_runner, "tidy", killed_after(1, killed))
            with pytest.raises(Killed):
                run.start()
        assert audit(run.out).findings == []
        assert len(shards_of(run)) > 2, "packed ones and their sources"
    run.start()
    assert run.manifest.stages() == ORDER
    assert audit(run.out).findings == []
    played = [run.manifest.result(phase, RolloutsPlayed).episodes for phase in (1, 2)]
    assert played == [undisturbed.manifest.result(phase, RolloutsPlayed).episodes for phase in (1, 2)]
    assert all(name.startswith(f"{STEM}-") for name in shards_of(run))
    assert len(shards_of(run)) < len(shards_of(undisturbed)) / 3


def killed_after(times: int, kill: Any) -> Any:
    """Return a function that does nothing ``times`` times, and then what ``kill`` does."""
    left = iter(range(times))
    return lambda *arguments: None if next(left, None) is not None else kill()


def shards_of(run: Run) -> list[str]:
    return sorted(path.name for path in (run.out / "episodes").glob("*.arrow"))


def test_a_restart_between_cloning_and_the_critics_goes_on_from_the_clone(run: Run) -> None:
    with pytest.raises(Killed):
        run.start(before(("pretrain", "potential")))
    assert run.manifest.stages() == [(0, "clone")]
    moments = run.start().moments()
    critics = [("pretrain", "potential"), ("pretrain", "value")]
    assert moments[:4] == [("restore", "cloned"), *critics, ("checkpoint", "phase-000")]


@pytest.mark.parametrize(("every_n", "evaluated"), [(1, [0, 1, 2, 3]), (2, [0, 2, 3]), (3, [0, 3]), (9, [0, 3])])
def test_evaluation_comes_before_rl_every_nth_phase_and_last(
    tmp_path: Path, every_n: int, evaluated: list[int]
) -> None:
    run = Run(tmp_path, run={"phases": 3, "evaluation": {"tasks_per_split": 2, "every": every_n}})
    system = run.start()
    assert sorted({s.phase for s in system.specs if s.source is Source.EVALUATION}) == evaluated
    assert [p for p in range(4) if run.manifest.result(p, Evaluated).splits] == evaluated


@pytest.mark.parametrize(("phases", "evaluated"), [(2, [1, 2]), (0, [0])])
def test_the_start_is_not_evaluated_where_another_run_does(tmp_path: Path, phases: int, evaluated: list[int]) -> None:
    """Without phases the start is all that there is."""
    run = Run(tmp_path, run={"phases": phases, "evaluation": {"tasks_per_split": 2, "before_rl": False}})
    run.start()
    assert [p for p in range(phases + 1) if run.manifest.result(p, Evaluated).splits] == evaluated


def test_pictures_are_taken_at_the_last_evaluation_only(tmp_path: Path) -> None:
    system = Run(tmp_path, run={"evaluation": {"tasks_per_split": 3, "screenshots": 4}}).start()
    assert [spec.phase for spec in system.specs if spec.screenshots] == [2] * 4


def test_without_phases_a_run_ends_with_the_evaluation_of_the_warm_start(tmp_path: Path) -> None:
    run = Run(tmp_path, run={"phases": 0})
    run.start()
    assert run.manifest.stages() == ORDER[:4]


def test_a_shipped_policy_is_not_cloned_but_its_critic_is_taught(run: Run) -> None:
    system = run.start(clones=False)
    assert ("clone",) not in system.moments()
    assert ("pretrain", "potential") in system.moments()
    assert run.manifest.result(0, Cloned) == Cloned(**vars(NO_EPISODES), checkpoint="cloned", metrics=None)


@pytest.mark.parametrize(
    ("held", "taught"), [((), ["potential", "value"]), (("value",), ["potential"]), (("potential", "value"), [])]
)
def test_critics_that_the_policys_folder_holds_are_not_taught_again(
    run: Run, held: tuple[str, ...], taught: list[str]
) -> None:
    system = run.start(clones=False, held=held)
    assert [moment[1] for moment in system.moments() if moment[0] == "pretrain"] == taught
    result = run.manifest.result(0, CriticsPretrained)
    assert (result.taken, sorted(result.metrics)) == (held, taught)
    assert {name.split("-")[0] for name in result.episodes} == set(taught), "no demonstration for those that are held"


def test_critics_are_taught_anew_where_the_recipe_takes_none(tmp_path: Path) -> None:
    run = Run(tmp_path, warm_start={"take_critics": False})
    system = run.start(clones=False, held=("potential", "value"))
    assert [moment[1] for moment in system.moments() if moment[0] == "pretrain"] == ["potential", "value"]
    assert run.manifest.result(0, CriticsPretrained).taken == ()


def test_a_policy_that_is_cloned_here_has_no_use_for_critics_of_another(run: Run) -> None:
    system = run.start(clones=True, held=("potential", "value"))
    assert [moment[1] for moment in system.moments() if moment[0] == "pretrain"] == ["potential", "value"]


@pytest.mark.parametrize(
    ("says", "kept"),
    [
        ({}, ""),
        ({"keep_critics": True}, "float32"),
        ({"keep_critics": True, "critics_dtype": "bfloat16"}, "bfloat16"),
        ({"critics_dtype": "bfloat16"}, ""),
    ],
)
def test_the_trained_policy_holds_critics_where_the_recipe_says_so(
    tmp_path: Path, says: dict[str, object], kept: str
) -> None:
    assert Run(tmp_path, run=says).start().learner.kept == kept


def test_the_critics_of_a_model_as_it_is_learn_nothing_of_the_embedded_sites(tmp_path: Path) -> None:
    run = Run(tmp_path / "out", policy={"model": str(save(FAMILIES["llama"], tmp_path / "llama"))})
    system = run.start(clones=False)
    moments = system.moments()
    assert not [moment for moment in moments if moment[0] in ("clone", "pretrain")]
    assert ("play", "demonstration", 0) not in moments
    assert run.manifest.stages() == ORDER


@pytest.fixture
def data_run(tmp_path: Path) -> Run:
    """A run that names imported data: two solved tasks and one that failed."""
    model, source = save(FAMILIES["llama"], tmp_path / "llama"), tmp_path / "a.json"
    failed = [experience(step, FAILED, 0) for step in range(2)]
    write_json(source, [*conversations(), *conversations("Another task"), *failed])
    policy = {"model": str(model), "prompt_format": "webrl", "max_prompt_tokens": 1900, "max_new_tokens": 100}
    run = Run(tmp_path / "out", policy=policy, warm_start={"data": str(tmp_path / "data")})
    import_data(run.recipe, source, tmp_path / "data")
    return run


def test_imported_episodes_are_learned_from_in_place_of_demonstrations(data_run: Run) -> None:
    system = data_run.start()
    learned = {what[0] if what[0] == "clone" else what[1]: what[-1] for what in system.asked
               if what[0] in ("clone", "pretrain")}  # fmt: skip
    imported = data_run.manifest.result(0, Cloned).imported
    assert (len(imported), len(learned["clone"])) == (3, 2), "what failed is not cloned"
    assert sorted(learned) == ["clone", "potential", "value"]
    assert sorted(learned["value"]) == sorted(learned["potential"]) == sorted(imported)
    assert ("play", "demonstration", 0) not in system.moments()
    assert audit(data_run.out).findings == []


def test_a_run_with_imported_data_goes_on_and_sets_itself_back_when_its_copy_is_damaged(data_run: Run) -> None:
    with pytest.raises(Killed):
        data_run.start(before(("clone",)))
    assert audit(data_run.out).findings == []
    with pytest.raises(Killed):
        data_run.start(before(("update_critics", 1)))
    (copy,) = (data_run.out / "episodes").glob("offline-*.arrow")
    copy.write_bytes(copy.read_bytes()[:-1])
    system = data_run.start()
    assert ("clone",) in system.moments()
    assert data_run.manifest.stages() == ORDER
    assert [finding.subject for finding in audit(data_run.out).findings] == []


@pytest.mark.parametrize(("algorithm", "scores"), [("webrl", True), ("filtered_bc", False)])
def test_an_algorithm_asks_only_for_what_it_needs(tmp_path: Path, algorithm: str, scores: bool) -> None:
    run = Run(tmp_path, learner={"algorithm": algorithm})
    moments = run.start().moments()
    assert ("pretrain", "potential") not in moments
    assert (("score",) in moments) is scores
    assert run.manifest.stages() == ORDER
    if not scores:
        assert run.manifest.result(2, ReplayFiltered).kept == {}


def test_nothing_to_learn_from_stops_the_run_and_the_same_command_tries_again(run: Run) -> None:
    with pytest.raises(
        RunStopped,
        match=r"phase 1: none of 6 episodes has a verdict.*infra/browser_crashed.*start the same command again",
    ):
        run.start(loses=lambda spec: spec.source is Source.ROLLOUT)
    assert not run.manifest.stage_done(1, "rollouts")
    after = run.start()
    assert sum(spec.source is Source.ROLLOUT and spec.phase == 1 for spec in after.specs) == 6
    assert run.manifest.stage_done(2, "curriculum")


def test_lost_episodes_are_never_counted_as_failures_of_the_policy(run: Run) -> None:
    run.start(loses=lambda spec: spec.source is Source.ROLLOUT and spec.episode_id.startswith("p001-0000"))
    data = run.manifest.result(1, RolloutsPlayed)
    assert (data.dispatched, len(data.episodes)) == (6, 5)
    assert data.failures == {"infra/browser_crashed": 1}
    assert run.manifest.result(2, RolloutsPlayed).failures == {}


@pytest.mark.parametrize("which", ["all", "phase"])
def test_the_failure_set_grows_unless_the_recipe_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    choose, given = TaskSets.choose, dict[int, list[str]]()

    def noted(self: TaskSets, phase: int, failed: list[str], *more: Any) -> TasksChosen:
        given[phase - 1] = failed
        return choose(self, phase, failed, *more)

    monkeypatch.setattr(TaskSets, "choose", noted)
    run = Run(tmp_path, curriculum={"failures": which})
    run.start()
    buffer = ReplayBuffer(run.out / "episodes")
    rollouts = [buffer.entry(i) for i in buffer.ids(sources=[Source.ROLLOUT])]
    lost = {phase: {e.task_id for e in rollouts if e.phase == phase and e.outcome == 0.0} for phase in (1, 2)}
    assert lost[1] - lost[2], "nothing tells the two apart"
    assert set(given[1]) == lost[1]
    assert set(given[2]) == (lost[1] | lost[2] if which == "all" else lost[2])
