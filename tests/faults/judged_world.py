"""The small world of the worker tests, with a verdict that needs an LLM judge."""

from __future__ import annotations

from dataclasses import replace

from judges.interface import PageView
from judges.settings import EvaluatorSettings
from records.deadline import Deadline
from records.environment import Verdict
from tests.evaluation import evaluate
from tests.faults.judge_process import JudgeLine
from tests.rollout_workers.fake_world import WORLD, FakeEnvironment, FakeHost, FakeSettings

HERE = "tests.faults.judged_world"
PATIENCE = EvaluatorSettings(answer_timeout_s=1.5)


class JudgedEnvironment(FakeEnvironment):
    """Asks whether "done" means "finished"."""

    judge: JudgeLine

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict:
        rules = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["finished"]}}
        page: PageView = None  # type: ignore[assignment]
        return await evaluate(rules, answer=answer, page=page, judge=self.judge, patience=PATIENCE, deadline=deadline)


class JudgedHost(FakeHost):
    """Hands out environments that know where the judge listens."""

    def __init__(self, settings: FakeSettings) -> None:
        super().__init__(settings)
        self._port = settings.judge_port

    async def environment(self) -> JudgedEnvironment:
        assert self._process is not None
        env = JudgedEnvironment(self._scratch, self._process)
        env.judge = JudgeLine(self._port)
        return env


JUDGED = replace(WORLD, host=lambda settings, connection, browser, judge: JudgedHost(settings))
"""What ``WorkerConfig.environment`` names."""
