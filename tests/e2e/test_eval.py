"""``waymark eval`` of a shipped policy: without a learner, and ended cleanly by SIGTERM."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import LIMIT_S, MARK, ROOT, Run
from tests.e2e.processes import started_with

pytestmark = [pytest.mark.slow, pytest.mark.faults]

POLICY = ROOT / "cluster" / "recipes" / "tiny-cloned"
RECIPE: dict[str, Any] = {
    "run": {
        "name": "judged",
        "phases": 1,
        "environment": "browserless",
        "training_tasks": 40,
        "dashboard": False,
        "evaluation": {"tasks_per_split": 40},
    },
    "policy": {"tiny": {"vocab_size": 2048}, "max_prompt_tokens": 640, "max_new_tokens": 32},
    "rollout": {"workers": 1, "contexts_per_worker": 1},
}


@pytest.fixture
def own_temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for the command's temporary files, short enough for Ray's sockets; other tests evaluate meanwhile."""
    with tempfile.TemporaryDirectory(prefix="wm-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def test_an_evaluation_has_no_learner_and_sigterm_ends_it_with_nothing_left(
    tmp_path: Path, own_temporary: Path
) -> None:
    run = Run(tmp_path, RECIPE)
    process = run.start("--policy", str(POLICY), "--split", "test", command="eval")
    ends, seen, playing_since = time.monotonic() + LIMIT_S, set[str](), 0.0
    while process.poll() is None and time.monotonic() < ends:
        titles = {found.title.split(".")[0].split(" ")[0] for found in started_with(MARK, run.mark)}
        seen |= titles
        playing_since = playing_since or (time.monotonic() if "ray::RolloutWorker" in titles else 0.0)
        held = [*own_temporary.glob("waymark-eval-*")]
        if playing_since and time.monotonic() - playing_since > 1.0:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    ended = run.end(process)
    assert len(held) == 1
    assert "ray::PolicyServer" in seen
    assert not [title for title in seen if "Learner" in title]
    assert ended.code == 130, ended.errors
    assert "stopped; nothing of an evaluation is kept" in ended.errors
    assert ended.left == []
    assert not [*own_temporary.glob("waymark-eval-*")]
