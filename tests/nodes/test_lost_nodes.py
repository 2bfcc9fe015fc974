"""Whole runs, submitted to a cluster without common storage, lose nodes in every stage and are the undisturbed run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray._raylet import GcsClient  # type: ignore[attr-defined]

from tests.nodes import confined
from tests.nodes.machines import HEAD, wait_until
from tests.nodes.test_pools import PREEMPTION
from tests.nodes.whole_run import (
    ROLES,
    RUN,
    Outcome,
    Submitted,
    audited,
    cluster,
    ended_well,
    fetched,
    outcome,
    requeued,
    undergo,
    undisturbed_outcome,
)
from tests.records.stores.s3_server import s3_server
from tests.redis_server import redis_server

pytestmark = [pytest.mark.faults, pytest.mark.lengthy]

if not confined.version():
    pytest.skip("nodes cannot be confined: this kernel has no Landlock", allow_module_level=True)

LOST = {
    "browser": [(0, "clone"), (0, "evaluate"), (1, "rollouts"), (1, "evaluate")],
    "policy": [(0, "publish"), (0, "evaluate"), (1, "rollouts"), (1, "publish")],
    "learner": [(0, "clone"), (0, "critics"), (0, "publish"), (1, "replay"), (1, "critics"), (1, "actor"),
                (1, "publish")],
    "head": [(0, "critics"), (1, "rollouts"), (1, "actor")],
}  # fmt: skip
"""The stages in which each role's node has work; a head is lost with its driver, and the run is submitted again."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A store whose listings never show anything."""
    with s3_server(tmp_path_factory.mktemp("late")) as served:
        yield served


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The same recipe on one machine, in a folder."""
    return undisturbed_outcome(tmp_path_factory.mktemp("undisturbed"), RUN)


@pytest.mark.parametrize("role", sorted(LOST))
def test_a_run_that_loses_nodes_is_the_undisturbed_one(
    role: str, undisturbed: Outcome, store: dict[str, str], tmp_path: Path
) -> None:
    with redis_server(tmp_path) as port:
        of_head = {"RAY_REDIS_ADDRESS": f"127.0.0.1:{port}"} if role == "head" else {}
        with cluster(store, ROLES, of_head) as nodes:
            run = Submitted(nodes, tmp_path / "user", f"s3://waymark-tests/lost-{role}", RUN)
            ended = undergo(run, role, LOST[role])
            assert ended.code == 0, ended.said
            assert Counter(stage for _, stage in ended.struck) == Counter(stage for _, stage in LOST[role]), ended.said
            assert audited(run)[0] == 0, audited(run)[1]
            with fetched(run) as out:
                assert outcome(out) == undisturbed
                assert set(requeued(out)) <= {"infra/preempted"}


def test_a_drained_node_takes_no_attempt(undisturbed: Outcome, store: dict[str, str], tmp_path: Path) -> None:
    with cluster(store) as nodes:
        run = Submitted(nodes, tmp_path / "user", "s3://waymark-tests/drained", RUN)
        command = run.start()
        wait_until(lambda: run.done() == 4 and run.began((1, "rollouts")), limit_s=600)
        leaving, id_ = nodes.nodes["browser"], nodes.id(nodes.nodes["browser"])
        gcs = GcsClient(address=f"{HEAD}:{nodes.port}")
        accepted, why = gcs.drain_node(id_, PREEMPTION, "spot", int((time.time() + 60) * 1000), timeout=30)
        assert accepted, why
        nodes.add("browser")
        nodes.joined()
        wait_until(lambda: not leaving.runs("RolloutWorker"), limit_s=90)
        leaving.kill()
        ended_well(command)
        with fetched(run) as out:
            assert outcome(out) == undisturbed
            assert set(requeued(out)) <= {"infra/preempted"}
