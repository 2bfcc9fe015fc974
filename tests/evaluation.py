"""WebArena's evaluators on an ``eval`` object alone, without a task around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.evaluators import evaluate as judge_ended
from judges.interface import AnswerJudge, EndedEpisode, PageView
from judges.settings import EvaluatorSettings
from records.environment import Verdict
from records.episodes import Task


async def evaluate(
    evaluation: Mapping[str, Any],
    *,
    answer: str | None,
    page: PageView,
    intent: str = "",
    judge: AnswerJudge | None = None,
    patience: EvaluatorSettings | None = None,
    **more: Any,
) -> Verdict:
    """Judge an episode that ended on ``page``; ``more`` are fields of ``EndedEpisode``."""
    task = Task("t", ("shop",), intent, "__SHOP__/", dict(evaluation), "t")
    return await judge_ended(EndedEpisode(task, answer, page, **more), judge, patience)
