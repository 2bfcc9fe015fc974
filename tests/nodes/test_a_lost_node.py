"""The short form of ``test_lost_nodes``: a node is lost at the worst moment; nodes see nothing of each other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_train import TINY
from tests.nodes import confined
from tests.nodes.machines import CONFINED, wait_until
from tests.nodes.whole_run import (
    RUN,
    RUNS,
    Submitted,
    audited,
    cluster,
    ended_well,
    family,
    fetched,
    outcome,
    requeued,
    signal_all,
    undisturbed_outcome,
)
from tests.records.stores.s3_server import s3_server

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(not confined.version(), reason="nodes cannot be confined: this kernel has no Landlock"),
]

SHORT = {
    **RUN,
    "run": {**RUN["run"], "phases": 1, "evaluation": {"tasks_per_split": 1, "screenshots": 1}},
    "curriculum": {"tasks_per_phase": 4},
}
WAITING = "Waiting for nodes: 1 x rollout worker"
LONG_TRAINING = {
    **SHORT,
    "learner": {**TINY["learner"], "actor": {**TINY["learner"]["actor"], "epochs": 60}, "bookmark_every_s": 0.1},
}
"""The actor learns for long enough to be met at it."""


def test_a_node_sees_nothing_of_another(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for root in (mine, other):
        root.mkdir()
        (root / "file").write_text(root.name)
    start = [sys.executable, str(CONFINED), str(mine), str(tmp_path), "--", "cat"]
    read = {
        root: subprocess.run([*start, str(root / "file")], capture_output=True, text=True, timeout=60, check=False)
        for root in (mine, other)
    }
    assert (read[mine].returncode, read[mine].stdout) == (0, "mine")
    assert read[other].returncode != 0
    assert "Permission denied" in read[other].stderr


@pytest.mark.lengthy
def test_a_node_is_lost_between_the_writing_of_an_episode_and_its_acknowledgement(tmp_path: Path) -> None:
    undisturbed, late = undisturbed_outcome(tmp_path / "undisturbed", SHORT), tmp_path / "late"
    late.mkdir()
    with s3_server(late) as store, cluster(store, ("browser",)) as nodes:
        run = Submitted(nodes, tmp_path / "user", "s3://waymark-tests/tiny", SHORT)
        command = run.start()
        wait_until(lambda: run.done() == 4 or command.poll() is not None, limit_s=300)
        (late / "hold").write_text("/episodes/")
        wait_until((late / "held").exists, limit_s=300)
        assert run.done() == 4, "it is held in the rollouts"
        nodes.lose("browser")
        (late / "hold").unlink()
        # Another node that came at once would be waited for by nobody.
        wait_until(lambda: WAITING in run.said() or command.poll() is not None, limit_s=300)
        nodes.add("browser")
        nodes.joined()
        said = ended_well(command)
        assert WAITING in said
        assert audited(run)[0] == 0, audited(run)[1]
        with fetched(run) as out:
            assert outcome(out) == undisturbed
            assert list(requeued(out)) == ["infra/preempted"]
            assert outcome(out).weights[0] != outcome(out).weights[1], "the phase taught something that could differ"


@pytest.mark.lengthy
def test_the_learners_node_is_lost_in_the_middle_of_a_training(tmp_path: Path) -> None:
    """What it had learned of the stage is lost with its disk; the stage begins again and comes to the same."""
    undisturbed, late = undisturbed_outcome(tmp_path / "undisturbed", LONG_TRAINING), tmp_path / "late"
    late.mkdir()
    with s3_server(late) as store, cluster(store, ("learner",)) as nodes:
        run = Submitted(nodes, tmp_path / "user", "s3://waymark-tests/mid", LONG_TRAINING)
        command, learner = run.start(), nodes.nodes["learner"]

        def actor_is_learning() -> bool:
            return any((learner.root / RUNS).glob("*/bookmarks/actor/COMPLETE"))

        wait_until(lambda: actor_is_learning() or command.poll() is not None, limit_s=600)
        signal_all(family(learner), signal.SIGSTOP)
        assert run.stages()[run.done()] == (1, "actor"), "updates were made, and the stage is not over"
        nodes.replace("learner")
        nodes.joined()
        said = ended_well(command)
        assert "All processes are started afresh (1 of run.recoveries 3 in a row)" in said
        assert audited(run)[0] == 0, audited(run)[1]
        with fetched(run) as out:
            assert outcome(out) == undisturbed
            assert outcome(out).weights[0] != outcome(out).weights[1], "the phase taught something that could differ"
