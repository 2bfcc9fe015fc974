"""A run whose tasks need a language model: an endpoint in trouble scores nothing, cost adds up, a budget ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.run_folder.summary import read_summary
from tests.e2e.command import ROOT, Run
from tests.judges.llm_server import CUT, INPUT_TOKENS, OUTPUT_TOKENS, ModelServer, Status, model_server

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

KEY = "key-that-nobody-may-see-91c2"
EACH_USD = (INPUT_TOKENS * 1.0 + OUTPUT_TOKENS * 10.0) / 1e6
FEW = 4
"""Questions that the first budget has room for."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def recipe(server: ModelServer) -> dict[str, object]:
    model = {
        "model": "served",
        "client": "gemini",
        "base_url": server.url,
        "key_variable": "WAYMARK_TEST_KEY",
        "usd_per_million_input": 1.0,
        "usd_per_million_output": 10.0,
    }
    return {
        "run": {
            "name": "asked",
            "phases": 1,
            "environment": "tests.e2e.asked_tasks:ASKED",
            "training_tasks": 40,
            "dashboard": False,
            "evaluation": {"splits": ["test"], "tasks_per_split": 6},
        },
        "judges": {
            "llm": {"models": {"m": model}, "model": "m", "budget_usd": 100.0},
            "evaluators": {"answer_judge": "llm"},
        },
        "warm_start": {"checkpoint": str(ROOT / "cluster" / "recipes" / "tiny-cloned"), "clone": "never"},
        "curriculum": {"tasks_per_phase": 6},
        "monitors": {"metrics_log": {}},
        "policy": {"tiny": {"vocab_size": 2048}, "max_prompt_tokens": 640, "max_new_tokens": 32},
        "rollout": {"workers": 1, "contexts_per_worker": 2, "shard_linger_s": 0.05, "failure_floor": 100},
        "learner": {"algorithm": "filtered_bc"},
    }


def test_trouble_scores_nothing_cost_adds_up_and_a_spent_budget_is_raised(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYMARK_TEST_KEY", KEY)
    wrong_shape = json.dumps({"verdict": "yes"})
    server.script = [Status(429, (("retry-after", "1"),)), Status(503), CUT, "I am not sure.", wrong_shape]
    run = Run(tmp_path, recipe(server))
    small = f"judges.llm.budget_usd={FEW * EACH_USD + 0.09}"  # beside it what a request may cost at most
    stopped = run.run("--set", small)
    assert stopped.code == 4, stopped.errors
    assert "of judges.llm.budget_usd" in stopped.errors
    assert "raise judges.llm.budget_usd" in stopped.errors
    assert stopped.left == []

    ended = run.run()
    assert ended.code == 0, ended.errors
    asked = [episode for episode in run.buffer.trajectories(run.buffer.ids()) if episode.answer is not None]
    of_tasks = [episode for episode in asked if "judge llm served" in episode.evidence]
    assert of_tasks, "the tiny policy ends some episodes with an answer"
    assert {episode.outcome for episode in of_tasks} == {1.0}, "the judge said yes whenever it said anything"

    (account,) = read_summary(run.out)["judging"]
    paid = len(server.asked) - 3  # 429, 503 and the cut one brought no count of tokens
    assert account["cost_usd"] == pytest.approx(paid * EACH_USD)
    assert account["requests"] == len(server.asked)
    assert account["nonsense"] == 2
    held = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert held == [], "the key is nowhere on disk"
    assert all(KEY in asked.headers["x-goog-api-key"] for asked in server.asked)
    assert "language model m" in (run.out / "report.html").read_text()
