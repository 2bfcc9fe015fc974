"""Every episode that a stage asked for is in its data exactly once, however many attempts the stage took."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.intervals import wilson
from analysis.results import EpisodeCounts
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.manifest import RunManifest
from cluster.run_folder.played_results import episode_counts, split_results, success_of, with_planning
from cluster.run_folder.recorded_files import recorded_files
from cluster.run_folder.stage_results import WithEpisodes, flat_numbers
from cluster.run_folder.summarising import phase_summary, summarise
from records import failure_codes as codes
from records.failures import Failure
from replay.buffer import ReplayBuffer
from replay.perplexity import FilterSummary, Histogram
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.settings import PlanningSettings
from tests.cluster.made_episodes import result, spec, store
from tests.cluster.made_results import made

CRASH = Failure(codes.BROWSER_CRASHED)
TIMEOUT = Failure(codes.DEADLINE)


@pytest.fixture
def manifest(tmp_path: Path) -> RunManifest:
    return RunManifest.open(tmp_path / "run", build_recipe({"run": {"phases": 2}}))


def played(tmp_path: Path, outcomes: list[float], lost: list[Failure]) -> WithEpisodes:
    specs = [spec(i) for i in range(len(outcomes) + len(lost))]
    store(tmp_path / "episodes", specs[: len(outcomes)], outcomes)
    failures = {s.episode_id: failure for s, failure in zip(specs[len(outcomes) :], lost, strict=True)}
    return episode_counts(specs, result(len(specs), failures), ReplayBuffer(tmp_path / "episodes"))


def test_judged_and_lost_episodes_add_up_to_those_asked_for(tmp_path: Path) -> None:
    data = played(tmp_path, [1.0, 0.0, 1.0], [CRASH, CRASH, TIMEOUT])
    assert data.episodes == ("test-0", "test-1", "test-2")
    assert (data.dispatched, data.successes) == (6, 2)
    assert data.failures == {"infra/browser_crashed": 2, "policy/deadline": 1}


def test_a_resumed_stage_counts_the_episodes_of_the_attempt_before(tmp_path: Path) -> None:
    specs = [spec(i) for i in range(3)]
    store(tmp_path, specs[:2], [1.0, 0.0])  # before the interruption
    store(tmp_path, specs[2:], [1.0])  # the only one that the second attempt reports
    data = episode_counts(specs, result(1), ReplayBuffer(tmp_path))
    assert data.episodes == tuple(s.episode_id for s in specs)
    assert (data.dispatched, data.successes, data.failures) == (3, 2, {})


def test_a_rate_of_steps_is_that_of_the_last_start_and_none_where_it_played_nothing(tmp_path: Path) -> None:
    specs = [spec(i) for i in range(2)]
    store(tmp_path, specs, [1.0, 0.0])
    data = episode_counts(specs, result(0), ReplayBuffer(tmp_path))
    assert (len(data.episodes), data.env_steps_per_s) == (2, None)


def test_rollouts_are_as_sure_as_their_tasks_are_many(tmp_path: Path, manifest: RunManifest) -> None:
    """Twelve tasks, of which six are always solved, six attempts each: no surer than twelve episodes."""
    tasks = [spec(i).task for i in range(12)]
    specs = [replace(spec(i), task=tasks[i // 6], episode_id=f"p001-{i:02d}") for i in range(72)]
    store(tmp_path / "episodes", specs, [float(i // 6 < 6) for i in range(72)])
    buffer = ReplayBuffer(tmp_path / "episodes")
    counts = episode_counts(specs, result(72), buffer)
    manifest.complete_stage(1, made(1, "rollouts", counts, success=success_of(specs, buffer)))
    told = phase_summary(RunManifest.read(manifest.out), 1).rollout
    assert told is not None
    assert (told.success, told.n) == (0.5, 72)
    once = wilson(6, 12)
    assert (told.low, told.high) == pytest.approx((once.low, once.high), abs=0.02)


def test_episodes_of_other_stages_are_not_counted(tmp_path: Path) -> None:
    store(tmp_path, [spec(0), spec(1), spec(2)], [1.0, 1.0, 1.0])
    data = episode_counts([spec(1)], result(0), ReplayBuffer(tmp_path))
    assert (data.episodes, data.dispatched, data.successes) == (("test-1",), 1, 1)


def test_an_episode_whose_shard_outlived_its_worker_is_judged_and_not_also_lost(tmp_path: Path) -> None:
    """The worker wrote the shard and died before it answered; the episode's other attempts failed."""
    specs = [spec(0), spec(1)]
    store(tmp_path, specs, [1.0, 0.0])
    lost = result(2, {"test-0": CRASH})
    data = episode_counts(specs, lost, ReplayBuffer(tmp_path))
    assert len(data.episodes) + sum(data.failures.values()) == data.dispatched == 2
    split = split_results(specs, ["test"], lost, ReplayBuffer(tmp_path), passes=1)["test"]
    assert split.n + sum(split.lost.values()) == 2


def test_a_split_is_judged_by_its_own_episodes(tmp_path: Path) -> None:
    mine = [spec(i, horizon=2 + 8 * (i % 2), site=("shop", "forum")[i % 2]) for i in range(4)]
    others = [spec(9, split="test_templates"), spec(10, split="test_templates")]
    store(tmp_path, [*mine[:3], others[0]], [1.0, 0.0, 0.0, 1.0])
    lost = result(6, {"test-3": CRASH, "test_templates-10": TIMEOUT})
    splits = split_results([*mine, *others], ["test", "test_templates"], lost, ReplayBuffer(tmp_path), passes=1)
    assert list(splits) == ["test", "test_templates"]
    assert (splits["test"].success, splits["test"].n) == (pytest.approx(1 / 3), 3)
    assert splits["test"].lost == {"infra/browser_crashed": 1}
    assert {site: group.n for site, group in splits["test"].by_site.items()} == {"shop": 2, "forum": 1}
    assert (splits["test_templates"].success, splits["test_templates"].n) == (1.0, 1)
    assert splits["test_templates"].lost == {"policy/deadline": 1}


def test_a_split_of_which_every_episode_was_lost_has_no_success_rate(tmp_path: Path) -> None:
    split = split_results([spec(0)], ["test"], result(1, {"test-0": CRASH}), ReplayBuffer(tmp_path), passes=1)["test"]
    assert split.success is None
    assert split.n == 0


def test_each_split_tells_what_planning_did_in_its_own_episodes(tmp_path: Path) -> None:
    specs = [spec(0), spec(1, split="test_templates"), spec(2, split="test_templates")]
    store(tmp_path / "episodes", specs[:2], [1.0, 0.0])
    buffer = ReplayBuffer(tmp_path / "episodes")
    splits = split_results(specs, ["test", "test_templates"], result(3, {specs[2].episode_id: CRASH}), buffer, passes=1)
    assert all(split.planning == {} for split in splits.values())
    state = PlanState(episode_id=specs[1].episode_id, replans=3)
    asyncio.run(PlanFolder(tmp_path / "plans").save(state))
    told = with_planning(splits, specs, buffer, tmp_path / "plans", PlanningSettings())
    assert told["test"].planning["stuck_share"] == 0.0
    assert "replans" not in told["test"].planning
    assert told["test_templates"].planning["replans"] == 3.0
    assert replace(told["test"], planning={}) == splits["test"]


def test_flat_numbers_keep_numbers_only() -> None:
    nested = {"actor": {"loss": 0.5, "updates": 3, "kind": "x", "none": None}, "done": True, "n": 2, "list": [1]}
    assert flat_numbers(nested) == {"actor.loss": 0.5, "actor.updates": 3.0, "n": 2.0}


def test_a_phase_is_summarised_as_far_as_it_has_come(tmp_path: Path, manifest: RunManifest) -> None:
    manifest.complete_stage(1, made(1, "rollouts", played(tmp_path, [1.0, 0.0, 0.0], [CRASH])), seconds=4.0)
    half = phase_summary(manifest, 1)
    assert half.rollout is not None
    assert (half.rollout.success, half.rollout.n) == (pytest.approx(1 / 3), 3)
    assert (half.replay, half.evaluation, half.losses) == (None, {}, {})
    assert half.seconds == {"rollouts": 4.0}

    counts = {"kept": 2, "below_band": 3, "above_band": 1, "over_cap": 0}
    audit = FilterSummary(1.1, 2.0, "trajectory", None, counts, Histogram((), ()), 0)
    manifest.complete_stage(1, made(1, "replay", audit=audit), seconds=1.0)
    manifest.complete_stage(1, made(1, "critics"))
    manifest.complete_stage(1, made(1, "actor"))
    splits = split_results([spec(0)], ["test"], result(1), ReplayBuffer(tmp_path / "episodes"), passes=1)
    manifest.complete_stage(1, made(1, "evaluate", played(tmp_path, [1.0], []), splits=splits))
    whole = phase_summary(manifest, 1)
    assert whole.replay is not None
    assert (whole.replay.kept, whole.replay.dropped) == (2, 4)
    assert whole.replay.reasons == {"below_band": 3, "above_band": 1}
    losses = {name: loss for name, loss in whole.losses.items() if name.endswith(".loss")}
    assert losses == {"value.loss": 0.5, "actor.loss": 0.25}
    assert whole.evaluation["test"].success == 1.0


def test_a_shard_is_recorded_by_the_first_stage_that_depends_on_it(manifest: RunManifest) -> None:
    shards = [manifest.out / "episodes" / f"shard-{name}.arrow" for name in "zay"]
    weights = manifest.out / "weights.safetensors"
    for path in (*shards, weights):
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name)
    manifest.complete_stage(0, made(0, "clone"), files=shards[:1])
    manifest.complete_stage(0, made(0, "publish"), files=[weights])
    manifest.complete_stage(1, made(1, "rollouts"), files=shards)
    recorded = recorded_files(manifest.entries())
    assert recorded == {"shard-z.arrow": 0, "shard-a.arrow": 2, "shard-y.arrow": 2}


def test_the_summary_counts_the_episodes_of_all_stages_and_says_whether_it_is_whole(
    tmp_path: Path, manifest: RunManifest
) -> None:
    manifest.complete_stage(0, made(0, "clone", played(tmp_path, [1.0, 0.0], [CRASH])))
    manifest.complete_stage(0, made(0, "publish"))
    manifest.complete_stage(1, made(1, "rollouts", played(tmp_path, [1.0, 1.0, 1.0], [CRASH, TIMEOUT])))
    summary = summarise(manifest, "name", phases=2)
    assert summary.episodes == EpisodeCounts(8, 5, {"infra/browser_crashed": 2, "policy/deadline": 1})
    assert [phase.phase for phase in summary.phases] == [0, 1]
    assert not summary.complete
    manifest.complete_stage(2, made(2, "evaluate"))
    assert summarise(manifest, "name", phases=2).complete
