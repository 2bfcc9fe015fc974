"""A run of ADMIRE whose milestones a language model distils from what the policy solves, and that learns by them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.audit.audit import audit
from cluster.recorded_run import RecordedRun
from cluster.run_folder.stage_results import ActorTrained, MilestonesDistilled
from cluster.run_folder.summary import read_summary
from records.labels import LabelSubject
from tests.e2e.command import ROOT, Run
from tests.judges.llm_server import Asked, ModelServer, model_server

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]


def first_and_last(asked: Asked) -> str:
    """What a model would answer that takes the first and the last action for the essential ones."""
    texts = [part.get("text", "") for part in asked.body["contents"][0]["parts"]]
    shown = json.loads(next(text for text in texts if '"actions"' in text))
    actions = list(dict.fromkeys([shown["actions"][0], shown["actions"][-1]]))
    for name, value in shown["parameters"].items():
        actions = [action.replace(str(value), f"<{name}>") for action in actions]
    return json.dumps({"milestones": actions})


def recipe(server: ModelServer) -> dict[str, object]:
    model = {"model": "served", "client": "gemini", "base_url": server.url, "key_variable": "WAYMARK_TEST_KEY"}
    return {
        "run": {
            "name": "distilled", "phases": 1, "environment": "browserless", "training_tasks": 40, "dashboard": False,
            "attempts_per_task": 2, "evaluation": {"splits": ["test"], "tasks_per_split": 2},
        },
        "judges": {"llm": {"models": {"m": model}}},
        "milestones": {"source": "successes", "model": "m"},
        "replay": {"milestones": "milestone_matching"},
        "warm_start": {"checkpoint": str(ROOT / "cluster" / "recipes" / "tiny-cloned"), "clone": "never"},
        "curriculum": {"tasks_per_phase": 4},
        "policy": {"tiny": {"vocab_size": 2048}, "max_prompt_tokens": 640, "max_new_tokens": 32},
        "rollout": {"workers": 1, "contexts_per_worker": 2, "shard_linger_s": 0.05},
        "learner": {"algorithm": "admire_grpo", "actor": {"max_decisions": 12, "epochs": 1}},
    }  # fmt: skip


def test_successes_give_milestones_by_which_the_phase_is_rewarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_TEST_KEY", "a key")
    with model_server(first_and_last) as server:
        run = Run(tmp_path, recipe(server))
        ended = run.run()
        asked = len(server.asked)
    assert ended.code == 0, ended.errors
    recorded = RecordedRun(run.out)
    distilled = recorded.manifest.result(1, MilestonesDistilled)
    assert len(distilled.distilled) == distilled.covered == asked > 0
    assert distilled.absent == {}
    assert recorded.manifest.result(1, ActorTrained).metrics.rollouts > 0
    hits = 0
    for episode_id, task in recorded.milestone_tasks.items():
        label = recorded.labels.find(recorded.buffer.entry(episode_id), "milestone_matching", LabelSubject.MILESTONES)
        if label is not None:
            assert label.descriptions == tuple(one.description for one in task.milestones)
            hits += bool(label.descriptions) and bool(label.decided[-1].any())
    assert hits > 0, "an episode does what was distilled from it"
    (account,) = read_summary(run.out)["judging"]
    assert account["requests"] == asked
    assert audit(run.out).findings == []
