"""``waymark train`` from start to report, cut short in several ways, and started again.

Tiny runs that learn nothing worth having: what counts is that everything happens, once, and is on disk.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from cluster.audit.audit import audit
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.policy_folder import write_checksums
from cluster.run_folder.stage_results import (
    ActorTrained,
    CriticsPretrained,
    CriticsTrained,
    Published,
    RolloutsPlayed,
)
from cluster.run_folder.summary import read_summary
from records.episodes import Source, Termination, Trajectory
from replay.buffer import ReplayBuffer
from tests.e2e.command import LIMIT_S, Ended, Run, interrupt

pytestmark = pytest.mark.slow

RATES = {"actor": {"learning_rate": 3e-4}, "value": {"learning_rate": 3e-4}, "potential": {"learning_rate": 3e-4}}
TINY: dict[str, Any] = {
    "run": {
        "name": "tiny",
        "phases": 1,
        "environment": "browserless",
        "training_tasks": 40,
        "dashboard": False,
        "evaluation": {"tasks_per_split": 2, "screenshots": 2},
    },
    "monitors": {"metrics_log": {}},
    "warm_start": {
        "tokenizer_demonstrations": 30,
        "demonstrations": 20,
        "potential_demonstrations": 8,
        "value_demonstrations": 6,
    },
    "curriculum": {"tasks_per_phase": 4},
    "policy": {
        "max_prompt_tokens": 500,
        "max_new_tokens": 16,
        "tiny": {"width": 32, "layers": 1, "heads": 2, "key_value_heads": 2, "mlp_width": 64, "vocab_size": 800},
    },
    "rollout": {"workers": 1, "contexts_per_worker": 2, "shard_linger_s": 0.05},
    "learner": {"clone": {"learning_rate": 3e-3, "updates": 30, "batch_steps": 16}, **RATES},
}


def recipe(**sections: dict[str, Any]) -> dict[str, Any]:
    return {name: {**TINY.get(name, {}), **sections.get(name, {})} for name in {*TINY, *sections}}


def assert_done(ended: Ended) -> None:
    assert ended.code == 0, ended.errors
    assert ended.left == []


@dataclass(frozen=True)
class Browsers:
    """A run with real browsers, interrupted by Ctrl-C while it plays."""

    run: Run
    interrupted: Ended
    finished: dict[str, Path]
    """The rollouts that were finished at the interruption, and their shards."""
    resumed: Ended


@dataclass(frozen=True)
class Repeated:
    """Two runs side by side, with one seed and one worker; the second has a learner that is killed in phase 2."""

    undisturbed: Run
    killed: Run
    recovered: Ended
    evaluated: Ended
    """``waymark eval`` of what the undisturbed run trained."""


def play_with_browsers(folder: Path) -> Browsers:
    one_at_a_time = {**TINY["rollout"], "contexts_per_worker": 1, "prefetch_per_worker": 1}
    embedded = {**TINY["run"], "environment": "embedded", "attempts_per_task": 2}
    run = Run(folder, recipe(run=embedded, rollout=one_at_a_time, monitors={"metrics_log": {}, "tensorboard": {}}))
    interrupted = run.run_until(lambda: bool(run.out.exists() and run.rollouts(1)), interrupt)
    finished = run.rollouts(1)
    return Browsers(run, interrupted, finished, run.run())


def play_repeatedly(folder: Path) -> Repeated:
    raw = recipe(
        run={**TINY["run"], "phases": 2},
        policy={**TINY["policy"], "options": {"batch_invariant": True}},
        rollout={**TINY["rollout"], "final_state": True},
    )
    undisturbed, killed = Run(folder / "undisturbed", raw), Run(folder / "killed", raw)

    def kill_learner(driver: subprocess.Popen[str]) -> None:
        """Stop the learner as the second phase begins, and kill it once its episodes are played and it is needed."""
        learner = killed.process("ray::LearnerActor").pid
        os.kill(learner, signal.SIGSTOP)
        assert not killed.stage_done(2, "replay"), "the learner was stopped too late for this test"
        ends = time.monotonic() + LIMIT_S
        while driver.poll() is None and not killed.stage_done(2, "rollouts") and time.monotonic() < ends:
            time.sleep(0.1)
        os.kill(learner, signal.SIGKILL)

    with ThreadPoolExecutor() as threads:
        done = threads.submit(undisturbed.run)
        recovered = killed.run_until(lambda: killed.out.exists() and killed.stage_done(1, "curriculum"), kill_learner)
    assert_done(done.result())
    asked = ["--policy", str(undisturbed.out / "trained"), "--split", "test", "--passes", "2", "--json", "result.json"]
    asked += ["--out", "kept"]
    evaluated = undisturbed.run(*asked, command="eval")
    return Repeated(undisturbed, killed, recovered, evaluated)


def from_shipped_policy(run: Run, algorithm: str, environment: str) -> Run:
    """A run that starts from a copy of another run's policy."""
    shipped = run.folder / f"shipped-{algorithm}"
    shutil.copytree(run.out / "policy", shipped)
    write_checksums(shipped)
    return Run(
        run.folder / algorithm,
        recipe(
            run={**TINY["run"], "environment": environment},
            warm_start={**TINY["warm_start"], "checkpoint": str(shipped)},
            learner={**TINY["learner"], "algorithm": algorithm},
        ),
    )


PLAYS: dict[str, Callable[[Path], Any]] = {"browsers": play_with_browsers, "repeated": play_repeatedly}


@pytest.fixture(scope="module")
def plays(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Any]]]:
    """What the selected tests need, begun at the same time: a run waits for processes to start more than it works."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor() as threads:
        yield {n: threads.submit(play, tmp_path_factory.mktemp(n)) for n, play in PLAYS.items() if n in wanted}


@pytest.fixture(scope="module")
def browsers(plays: dict[str, Future[Browsers]]) -> Browsers:
    return plays["browsers"].result()


@pytest.fixture(scope="module")
def repeated(plays: dict[str, Future[Repeated]]) -> Repeated:
    return plays["repeated"].result()


@pytest.mark.browser
def test_ctrl_c_ends_a_run_cleanly_and_says_how_to_go_on(browsers: Browsers) -> None:
    ended = browsers.interrupted
    assert ended.code == 130, ended.errors
    assert "Start the same command again" in ended.errors
    assert "Traceback" not in ended.errors
    assert ended.left == []
    assert 0 < len(browsers.finished) < 8


@pytest.mark.browser
def test_another_recipe_is_refused_in_a_run_folder_by_the_name_of_what_differs(browsers: Browsers) -> None:
    run = browsers.run
    before = (run.out / "manifest.json").read_bytes()
    ended = run.run("--set", "learner.actor.beta=3.5")
    assert ended.code == 2
    assert "learner.actor.beta: was 1.0, is 3.5" in ended.errors
    assert "run.seed" not in ended.errors
    assert (run.out / "manifest.json").read_bytes() == before


@pytest.mark.browser
def test_the_same_command_goes_on_and_plays_no_finished_episode_again(browsers: Browsers) -> None:
    run, finished, ended = browsers.run, browsers.finished, browsers.resumed
    assert_done(ended)
    everything = run.rollouts(1)
    assert len(everything) == 8
    assert {i: everything[i] for i in finished} == finished
    assert run.buffer.scan.duplicates == ()
    assert run.buffer.scan.skipped == ()
    assert list(run.manifest.result(1, RolloutsPlayed).episodes) == sorted(everything)
    assert "warm start: clone" not in ended.output
    stages = [(line["phase"], line["stage"]) for line in read_metrics(run.out)]
    assert stages == run.manifest.stages()
    assert stages[-1] == (1, "curriculum")


@pytest.mark.browser
def test_a_run_with_browsers_leaves_its_numbers(browsers: Browsers) -> None:
    run, ended = browsers.run, browsers.resumed
    summary = read_summary(run.out)
    assert summary.keys() == {
        "schema", "name", "config_hash", "seeds", "versions", "phases", "episodes", "complete", "seconds", "judging",
    }  # fmt: skip
    assert summary["complete"] is True
    assert summary["config_hash"] == run.manifest.config_hash
    assert summary["seeds"] == {"run": 0, "sites": 0, "evaluation": 20_000}
    before, after = summary["phases"]
    assert (before["phase"], before["rollout"], before["replay"]) == (0, None, None)
    assert after["rollout"]["n"] == 8
    assert after["replay"].keys() == {"kept", "dropped", "reasons"}
    assert after["env_steps_per_second"] > 0
    assert after["losses"]["value.loss"] > 0
    assert set(after["seconds"]) == {"rollouts", "replay", "critics", "actor", "publish", "evaluate", "curriculum"}
    for phase in (before, after):
        assert phase["evaluation"].keys() == {"test", "test_templates"}
        for result in phase["evaluation"].values():
            assert {"success", "n", "low", "high", "by_site", "by_horizon"} <= result.keys()
            assert result["n"] == 2
            assert 0 <= result["low"] <= result["success"] <= result["high"] <= 1
            assert sum(group["n"] for group in result["by_site"].values()) == 2
    played = 20 + 8 + 6 + 4 + 8 + 4  # demonstrations for policy, potential, value; evaluation, rollouts, evaluation
    assert summary["episodes"] == {"dispatched": played, "completed": played, "by_failure": {}}
    assert len(run.buffer) == played
    assert {episode.final_state for episode in run.buffer.trajectories(run.buffer.ids())} == {None}, "not asked for"
    assert any((run.out / "tensorboard").glob("events.out.tfevents.*"))
    assert "Success on test" in ended.output
    assert str(run.out / "report.html") in ended.output


@pytest.mark.browser
def test_a_run_with_browsers_leaves_a_report_with_pictures(browsers: Browsers) -> None:
    run = browsers.run
    page = (run.out / "report.html").read_text(encoding="utf-8")
    pictures = re.findall(r'src="data:image/(?:png|jpeg|webp);base64,([A-Za-z0-9+/=]+)"', page)
    assert pictures
    assert max(map(len, pictures)) > 1000
    shown = [i for i in run.buffer.ids() if i.startswith("e001-test-")]
    assert len(shown) == 2
    for trajectory in run.buffer.trajectories(shown):
        assert trajectory.intent in page
        assert all(step.screenshot for step in trajectory.steps)
    assert not re.search(r'(?:src|href)="https?://', page), "the page must not load anything"


@pytest.mark.browser
def test_a_complete_run_is_not_run_again(browsers: Browsers) -> None:
    run = browsers.run
    before = _written(run.out)
    ended = run.run()
    assert_done(ended)
    assert "This run is complete" in ended.output
    assert "Success on test" in ended.output
    after = _written(run.out)
    assert {path for path in after if after[path] != before.get(path)} == set()


@pytest.mark.browser
def test_a_complete_run_makes_its_policy_and_its_report_again_where_they_are_damaged(browsers: Browsers) -> None:
    run = browsers.run
    weights, page = run.out / "trained" / "model.safetensors", run.out / "report.html"
    before, stages = weights.read_bytes(), run.manifest.entries()
    os.truncate(weights, len(before) // 2)
    page.unlink()
    ended = run.run()
    assert_done(ended)
    said = "trained/model.safetensors is gone or damaged; report.html is gone or damaged: what that takes is done again"
    assert said in " ".join(ended.output.split())
    assert weights.read_bytes() == before
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert run.manifest.entries() == stages
    assert audit(run.out).findings == []


def _written(run: Path) -> dict[Path, int]:
    """When each file of a run was written, but what every driver writes: its log and its right to the run."""
    every = (path for path in run.rglob("*") if path.is_file())
    kept = (path for path in every if path.name not in ("run.lock", "driver.log") and path.parent.name != "lease")
    return {path: path.stat().st_mtime_ns for path in kept}


@pytest.mark.faults
def test_a_run_whose_learner_is_killed_goes_on_by_itself(repeated: Repeated) -> None:
    run, ended = repeated.killed, repeated.recovered
    assert_done(ended)
    before, message, after = ended.output.partition("All processes are started afresh (1 of run.recoveries 3 in a row)")
    assert message, ended.output
    assert re.search(r"Lost: the learner's process ended during \w+:", before)
    assert "Traceback" not in ended.errors
    assert not re.search(r"^(warm start|phase 1|phase 2/2: rollouts)", after, re.MULTILINE)
    assert read_summary(run.out)["complete"]


@pytest.mark.faults
def test_the_same_seed_gives_the_same_trajectories(repeated: Repeated) -> None:
    first, again = repeated.undisturbed.buffer, repeated.killed.buffer
    assert first.ids() == again.ids()
    assert len(first) == 20 + 8 + 6 + 3 * 4 + 2 * 4
    for one, other in zip(first.trajectories(first.ids()), again.trajectories(again.ids()), strict=True):
        assert facts(one) == facts(other), one.episode_id


@pytest.mark.faults
def test_the_same_seed_gives_the_same_losses_and_weights_even_after_a_restart(repeated: Repeated) -> None:
    runs = (repeated.undisturbed, repeated.killed)
    assert runs[0].manifest.stages() == runs[1].manifest.stages()
    stages = [(0, "clone"), *((phase, "critics") for phase in range(3)), (1, "actor"), (2, "actor")]
    for stage in stages:
        losses = [numbers(run.manifest.entry(*stage).result.learned()) for run in runs]
        assert losses[0] == losses[1], stage
        assert any(name.endswith("loss") for name in losses[0])
    checksums = [[run.manifest.result(phase, Published).weights.checksum for phase in range(3)] for run in runs]
    assert checksums[0] == checksums[1]
    assert len(set(checksums[0])) == 3, "a phase did not change the weights"


def test_what_is_learned_from_has_its_final_state_where_that_has_room(repeated: Repeated) -> None:
    run = repeated.undisturbed
    played = run.buffer.trajectories(run.buffer.ids())
    for episode in played:
        if episode.source is Source.EVALUATION:
            assert episode.final_state is None
        elif episode.termination is Termination.EXIT:
            assert episode.final_state is not None
            assert episode.final_state.observation == episode.steps[-1].observation, "an exit leaves the page alone"
    taught = [episode for episode in played if episode.episode_id.startswith("potential-")]
    learned = run.manifest.result(0, CriticsPretrained).metrics
    assert learned["potential"].states == sum(len(episode.steps) + 1 for episode in taught)
    mechanism = run.manifest.result(2, ActorTrained).metrics.mechanism
    assert mechanism is not None
    own = run.buffer.trajectories(run.manifest.result(2, RolloutsPlayed).episodes)
    assert mechanism.final_states == np.mean([episode.final_state is not None for episode in own])
    assert audit(run.out).findings == []


def test_a_trained_policy_is_a_folder_that_can_be_evaluated(repeated: Repeated) -> None:
    assert_done(repeated.evaluated)
    folder = repeated.undisturbed.folder
    result = json.loads((folder / "result.json").read_text())
    assert json.loads((folder / "kept" / "result.json").read_text()) == result
    assert len(ReplayBuffer(folder / "kept" / "episodes")) == 4
    assert result["n"] == 4, "two tasks, twice"
    assert set(result["pass_at"]) == {"1", "2"}
    assert "test" in repeated.evaluated.output
    tensors = load_file(repeated.undisturbed.out / "trained" / "model.safetensors")
    published = load_file(repeated.undisturbed.out / repeated.undisturbed.manifest.result(2, Published).weights.path)
    for name, tensor in published.items():
        assert np.array_equal(tensors[name], tensor), name


def facts(trajectory: Trajectory) -> list[Any]:
    """All of a trajectory but who played it and how long it took, arrays as bytes."""
    states: list[Any] = [replace(step, browser_s=0.0, policy_s=0.0) for step in trajectory.steps]
    states += [] if trajectory.final_state is None else [trajectory.final_state]
    plain = replace(trajectory, steps=(), final_state=None, worker="", seconds=0.0)
    return [
        astuple(plain),
        [[v.tobytes() if isinstance(v, np.ndarray) else v for v in astuple(state)] for state in states],
    ]


def numbers(metrics: Any, name: str = "") -> dict[str, Any]:
    """Every number of nested metrics that is not a time or a speed."""
    if not isinstance(metrics, dict):
        return {name: metrics}
    parts = [(key, value) for key, value in metrics.items() if key not in ("seconds", "tokens_per_s")]
    return {k: v for key, value in parts for k, v in numbers(value, f"{name}.{key}").items()}


@pytest.mark.lengthy
@pytest.mark.browser
def test_filtered_cloning_runs_from_a_shipped_policy_to_the_report(repeated: Repeated) -> None:
    run = from_shipped_policy(repeated.undisturbed, "filtered_bc", "embedded")
    assert_done(run.run())
    learned = learned_in(run)
    assert learned["algorithm"] == "filtered_bc"
    assert not {"value", "potential"} & learned.keys()


@pytest.mark.lengthy
def test_webrl_runs_from_a_shipped_policy_to_the_report(repeated: Repeated) -> None:
    run = from_shipped_policy(repeated.undisturbed, "webrl", "browserless")
    assert_done(run.run())
    learned = learned_in(run, taught=6)  # demonstrations for the value critic
    assert learned["algorithm"] == "webrl"
    assert "potential" not in learned
    assert learned["value"]["loss"] > 0
    assert learned["actor"]["updates"] > 0


def learned_in(run: Run, taught: int = 0) -> dict[str, Any]:
    """The metrics of the only phase of a run that is complete, cloned nothing and lost no episode."""
    summary = read_summary(run.out)
    assert summary["complete"]
    played = taught + 4 + 4 + 4
    assert summary["episodes"] == {"dispatched": played, "completed": played, "by_failure": {}}
    assert (run.out / "report.html").exists()
    metrics: dict[str, Any] = {
        **run.manifest.result(1, CriticsTrained).learned(),
        **run.manifest.result(1, ActorTrained).learned(),
    }
    return metrics
