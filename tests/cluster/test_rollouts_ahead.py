"""The phase loop with rollouts of the next phase begun ahead, over a system of no processes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.audit import audit
from cluster.errors import RecipeError
from cluster.recipe.recipe import Recipe, build_recipe, config_hash, identity, resolved
from cluster.run_folder.durable import sha256_text
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.stage_results import RolloutsPlayed
from learner.algorithms import ALGORITHMS
from records import failure_codes as codes
from records.episodes import Source
from records.failures import Failure
from replay.buffer import ReplayBuffer
from rollout_workers.results import NOTHING_PLAYED
from rollout_workers.spec import EpisodeSpec
from tests.cluster.fake_run import ORDER, Killed, Run, at, before
from tests.cluster.made_episodes import result

AHEAD: dict[str, Any] = {"rollout": {"max_staleness": 1}}


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def first_tasks(spec: EpisodeSpec) -> bool:
    """There is time for the first four tasks of a phase."""
    return int(spec.episode_id.split("-")[1]) < 4


def staleness(run: Run, phase: int) -> dict[str, int]:
    return run.manifest.result(phase, RolloutsPlayed).staleness


def versions(run: Run, phase: int) -> Counter[int]:
    buffer = ReplayBuffer(run.out / "episodes")
    ids = buffer.ids(sources=[Source.ROLLOUT], phases=[phase])
    return Counter(step.policy_version for episode in buffer.trajectories(ids) for step in episode.steps)


def test_rollouts_begin_before_the_learner_and_each_step_says_how_old_its_weights_were(tmp_path: Path) -> None:
    run = Run(tmp_path, **AHEAD)
    system = run.start(plays_ahead=first_tasks)
    assert run.manifest.stages() == ORDER, "the stages and their order stay"
    moments = system.moments()
    begun, went_on = (at for at, what in enumerate(moments) if what == ("play", "rollout", 2))
    assert begun < moments.index(("update_critics", 1)) < moments.index(("publish", 1)) < went_on
    assert (versions(run, 1), versions(run, 2)) == ({0: 6}, {0: 4, 1: 2})
    assert (staleness(run, 1), staleness(run, 2)) == ({"0": 6}, {"0": 2, "1": 4})
    told = {line["phase"]: line for line in read_metrics(run.out) if line["stage"] == "rollouts"}
    assert (told[2]["staleness.0"], told[2]["staleness.1"]) == (2, 4)
    assert "rollouts of phase 2 were played ahead, by version 0" in run.output.getvalue()
    assert audit(run.out).findings == []


def test_the_tasks_played_ahead_are_those_that_the_curriculum_records(tmp_path: Path) -> None:
    ahead, usual = Run(tmp_path / "ahead", **AHEAD), Run(tmp_path / "usual")
    ahead.start()
    usual.start()
    assert staleness(ahead, 2) == {"1": 6}
    for phase in (1, 2):
        one, other = (set(run.manifest.result(phase, RolloutsPlayed).episodes) for run in (ahead, usual))
        assert one == other


def test_without_it_nothing_is_begun_and_nothing_that_is_recorded_differs(tmp_path: Path) -> None:
    run, named = Run(tmp_path / "default"), Run(tmp_path / "named", rollout={"max_staleness": 0})
    moments = run.start().moments()
    named.start()
    assert [what for what in moments if what[:2] == ("play", "rollout")] == [("play", "rollout", p) for p in (1, 2)]
    for path in sorted((run.out / "stages").glob("*rollouts*/*.json")):
        assert "staleness" not in path.read_text()
    assert run.manifest.header["config_hash"] == named.manifest.header["config_hash"]


def test_the_hash_of_recipes_of_before_stays_and_their_runs_go_on(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert "rollout.max_staleness" not in identity(run.recipe)
    assert "rollout.max_staleness" in identity(Run(tmp_path, **AHEAD).recipe)
    assert config_hash(Run(tmp_path, **AHEAD).recipe) != config_hash(run.recipe)
    older = resolved(run.recipe)
    del older["rollout"]["max_staleness"]
    assert identity(run.recipe, older) == identity(run.recipe)
    RunManifest.open(run.out, run.recipe)
    path = run.out / "manifest.json"
    header = json.loads(path.read_text())
    assert header["config"]["rollout"].pop("max_staleness") == 0
    path.write_text(json.dumps(header))
    run.start()
    assert audit(run.out).findings == []


@pytest.mark.parametrize("moment", range(1, 58, 4))
def test_a_run_cut_short_at_any_request_loses_nothing_and_adds_up(tmp_path: Path, moment: int) -> None:
    run = Run(tmp_path, **AHEAD)
    with pytest.raises(Killed):
        run.start(at(moment), plays_ahead=first_tasks)
    played = Counter(spec.episode_id for spec in run.system.specs)
    after = run.start(plays_ahead=first_tasks)
    played.update(spec.episode_id for spec in after.specs)
    assert set(played.values()) == {1}, "a finished episode was played again"
    assert run.manifest.stages() == ORDER
    assert set(versions(run, 1)) == {0}
    assert set(versions(run, 2)) <= {0, 1}
    assert staleness(run, 2) == {str(1 - version): steps for version, steps in sorted(versions(run, 2).items())[::-1]}
    assert audit(run.out).findings == []


def test_a_start_that_serves_the_old_weights_no_more_begins_nothing_for_its_phase(tmp_path: Path) -> None:
    run = Run(tmp_path, run={"phases": 3}, **AHEAD)
    with pytest.raises(Killed):
        run.start(before(("update_actor", 1)), plays_ahead=first_tasks)
    moments = run.start().moments()
    assert ("play", "rollout", 2) not in moments[: moments.index(("publish", 1))]
    assert moments.index(("play", "rollout", 3)) < moments.index(("update_critics", 2)), "the next phase does again"
    assert staleness(run, 2) == {"0": 2, "1": 4}, "what was durable counts"
    assert audit(run.out).findings == []


def test_an_episode_that_failed_ahead_has_failed_and_is_counted_once(tmp_path: Path) -> None:
    run = Run(tmp_path, **AHEAD)
    run.start(loses=lambda spec: spec.phase == 2 and spec.episode_id.startswith("p002-0001"), plays_ahead=first_tasks)
    played = run.manifest.result(2, RolloutsPlayed)
    assert (played.dispatched, len(played.episodes), played.failures) == (6, 5, {"infra/browser_crashed": 1})
    assert audit(run.out).findings == []


def test_the_audit_finds_steps_that_are_too_old_and_ages_that_do_not_add_up(tmp_path: Path) -> None:
    run = Run(tmp_path, **AHEAD)
    run.start(plays_ahead=first_tasks)
    path = run.out / "manifest.json"
    whole = path.read_text()
    header = json.loads(whole)
    header["config"]["rollout"]["max_staleness"] = 0
    path.write_text(json.dumps(header))
    found = [finding.found for finding in audit(run.out).findings if finding.part == "training"]
    assert found == ["step 0 was decided by version 0, expected version 1"] * 4
    path.write_text(whole)
    (manifest,) = (run.out / "stages").glob("*-phase-002-rollouts/*.json")
    manifest.write_text(manifest.read_text().replace('"1": 4', '"1": 3'))
    (manifest.parent / "COMPLETE").write_text(sha256_text(manifest.read_text()) + "\n")
    found = [finding.found for finding in audit(run.out).findings if finding.part == "training"]
    assert found == ["steps by staleness {'0': 2, '1': 3} were counted, the shards hold {'0': 2, '1': 4}"]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_an_algorithm_of_one_policys_samples_refuses_older_ones(name: str) -> None:
    needs = {"run": {"attempts_per_task": 4, "phases": 0 if name == "sft" else 1}, "learner": {"algorithm": name}}
    if ALGORITHMS[name].needs_judged_steps:
        needs["replay"] = {"step_rewards": "process"}
    assert isinstance(build_recipe(needs), Recipe)
    grouped = name in {"webagent_r1", "outcome_grpo", "process_grpo", "admire_grpo", "admire_rloo", "admire_dapo"}
    assert ALGORITHMS[name].needs_newest_policy == grouped
    if not grouped:
        assert build_recipe({**needs, **AHEAD}).rollout.max_staleness == 1
        return
    with pytest.raises(RecipeError, match=rf"max_staleness: expected 0 with learner.algorithm '{name}'.*leave it at 0"):
        build_recipe({**needs, **AHEAD})


def test_a_clipped_loss_refuses_them_whatever_its_advantage() -> None:
    learner = {"algorithm": "mira", "policy_loss": "clipped_tokens", "data": "rollouts"}
    assert build_recipe({"learner": learner})
    with pytest.raises(RecipeError, match="max_staleness: expected 0"):
        build_recipe({"learner": learner, **AHEAD})


def test_tasks_that_are_known_too_late_and_versions_that_no_phase_has_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"max_staleness: expected 0 with curriculum.value_band"):
        build_recipe({"curriculum": {"value_band": True}, **AHEAD})
    for wrong in (-1, 2):
        with pytest.raises(RecipeError, match=r"max_staleness must be 0 or 1 \(there is one phase ahead\)"):
            build_recipe({"rollout": {"max_staleness": wrong}})


def test_what_two_runs_of_a_phase_came_to_is_added_up() -> None:
    failed = {"lost": Failure(codes.BROWSER_CRASHED)}
    first = NOTHING_PLAYED.then(result(3, failed))
    assert (first.total, first.attempts, first.seconds, first.failures) == (3, 3, 1.0, failed)
    both = first.then(result(4))
    assert (both.total, both.dispatched, both.attempts, both.seconds) == (1 + 4, 1 + 4, 3 + 4, 2.0)
    assert both.counts["failed"] == 1
