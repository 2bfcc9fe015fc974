"""A run of the command whose policy thinks before it acts, from cloned thoughts to a report that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.audit.audit import audit
from policy.replies import answer_of
from policy.tokenizer import TextTokenizer
from records.episodes import Source, Step
from tests.e2e.command import Run
from tests.e2e.test_train import RATES, assert_done, recipe

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]


def test_a_run_that_thinks_clones_and_learns_whole_replies(tmp_path: Path) -> None:
    raw = recipe(
        run={"attempts_per_task": 2},
        policy={"thinking": True, "max_prompt_tokens": 900, "max_new_tokens": 48},
        learner={
            "algorithm": "webagent_r1",
            "clone": {"learning_rate": 1e-2, "updates": 60, "batch_steps": 16},
            "actor": RATES["actor"],
        },
    )
    run = Run(tmp_path / "run", raw)
    assert_done(run.run())
    assert audit(run.out).findings == []
    tokenizer = TextTokenizer.load(run.out / "policy")

    def replies(source: Source) -> list[tuple[Step, str]]:
        episodes = run.buffer.trajectories(run.buffer.ids(sources=[source]))
        steps = [step for episode in episodes for step in episode.steps]
        return [
            (step, tokenizer.decode([i for i in step.action_ids.tolist() if i not in tokenizer.stop_ids]))
            for step in steps
        ]

    shown = replies(Source.DEMONSTRATION)
    assert all(answer_of(reply) == step.action_text for step, reply in shown)
    assert any("# Element: " in reply.partition("</think>")[0] for _, reply in shown), "the ids give back the thoughts"
    assert not any("think>" in step.action_text or "# Element" in step.action_text for step, _ in shown)
    played = replies(Source.ROLLOUT)
    assert played
    assert any("<think>" in reply for _, reply in played), "the policy has learned to begin with a thought"
    for step, reply in played:
        assert step.parse_error is not None or answer_of(reply) == step.action_text
    page = (run.out / "report.html").read_text()
    assert "&lt;think&gt;" in page
    assert_done(run.run())
