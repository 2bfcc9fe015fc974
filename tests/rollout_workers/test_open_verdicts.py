"""Questions of meaning are asked when the slot is free; what they come to is the episode's verdict, or a failure."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from environments.environment import Grant
from environments.kinds import EnvironmentKind
from environments.task_sources import ListedTasks
from judges.interface import AnswerQuestion, EndedEpisode, OpenVerdict, TrajectoryJudge
from judges.kinds import JudgeKind, Judges
from judges.settings import EvaluatorSettings
from plugs.options import NoOptions
from records.deadline import Deadline
from records.environment import Observation, Verdict
from records.episodes import Task, Termination, Trajectory
from records.failures import FailureKind
from records.labels import Label, LabelSubject
from replay.shards import read_shard
from rollout_workers.leases import Lease
from rollout_workers.results import EpisodeAnswer
from rollout_workers.settings import RolloutSettings
from rollout_workers.worker import RolloutWorker
from tests.rollout_workers.fake_world import FakeEnvironment, FakeHost, FakeSettings, completed, config, failed, spec

HERE = __name__
FUZZY = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["finished"]}}
ONE_SLOT = RolloutSettings(contexts_per_worker=1, shard_linger_s=0.05, judge_deadline_s=20.0)


class JudgedEnvironment(FakeEnvironment):
    """Asks the judge of its host."""

    judge: TrajectoryJudge
    task: Task

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        self.task = task
        return await super().reset(task, seed=seed, episode_id=episode_id, deadline=deadline, grant=grant)

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict | OpenVerdict:
        page = None
        return await self.judge.verdict(EndedEpisode(self.task, answer, page, deadline=deadline))  # type: ignore[arg-type]


class JudgedHost(FakeHost):
    def __init__(self, settings: FakeSettings, judge: TrajectoryJudge) -> None:
        super().__init__(settings)
        self._judge = judge

    async def environment(self) -> JudgedEnvironment:
        assert self._process is not None
        made = JudgedEnvironment(self._scratch, self._process)
        made.judge = self._judge
        return made


JUDGED = EnvironmentKind(
    settings=FakeSettings,
    tasks=lambda settings: ListedTasks([]),
    host=lambda settings, connection, browser, judge: JudgedHost(settings, judge),
)


class Gathering:
    """A judge of answers that answers nobody before ``together`` ask at once."""

    name = "gathering"
    together: ClassVar[int] = 1
    waiting: ClassVar[int] = 0
    says: ClassVar[object] = True
    enough: ClassVar[asyncio.Event]

    async def matches(self, question: AnswerQuestion) -> bool:
        Gathering.waiting += 1
        if Gathering.waiting >= Gathering.together:
            Gathering.enough.set()
        await Gathering.enough.wait()
        return Gathering.says  # type: ignore[return-value]

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return await self.matches(question)


GATHERING = JudgeKind(settings=NoOptions, make=lambda settings, judges: Gathering())


@dataclass(frozen=True)
class Likely:
    """A judge of recorded episodes that finds them likely to be solved."""

    subject: ClassVar[LabelSubject] = LabelSubject.OUTCOME

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        assert episode.failure is not None, "an episode without a verdict has a failure in its place"
        value = 0.9 if episode.answer == "done" and len(episode.steps) == 2 else 0.1
        return Label(episode.episode_id, self.subject, "likely", "none", "likely/1", np.array([value]), evidence="so")


LIKELY = JudgeKind(settings=NoOptions, make=lambda settings, judges: Likely())


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Gathering.together, Gathering.waiting, Gathering.says = 1, 0, True
    Gathering.enough = asyncio.Event()


async def played(folder: Path, evaluation: dict[str, object], count: int = 1, **settings: str) -> list[EpisodeAnswer]:
    """Answers of a worker with one slot to ``count`` episodes, under these settings of the evaluators."""
    judges = Judges({"evaluators": EvaluatorSettings(**settings, answer_timeout_s=5.0)})  # type: ignore[arg-type]
    worker = RolloutWorker(replace(config(folder, ONE_SLOT, f"{HERE}:JUDGED"), judges=judges), "worker-0")
    try:
        assert (await worker.start()).failure is None
        asked = [replace(spec(i), task=replace(spec(i).task, evaluation=evaluation)) for i in range(count)]
        return await asyncio.gather(*(worker.play(Lease(s.episode_id, 1, 0), s) for s in asked))
    finally:
        await worker.stop()


def recorded(answer: EpisodeAnswer) -> Trajectory:
    return next(e for e in read_shard(completed(answer).shard) if e.episode_id == answer.lease.episode_id)


async def test_one_slot_plays_on_while_judges_think(tmp_path: Path) -> None:
    Gathering.together = 3
    answers = await played(tmp_path, FUZZY, 3, answer_judge=f"{HERE}:GATHERING")
    episodes = [recorded(answer) for answer in answers]
    assert [episode.outcome for episode in episodes] == [1.0] * 3
    assert {episode.termination for episode in episodes} == {Termination.EXIT}
    assert "judge gathering" in episodes[0].evidence
    assert completed(answers[0]).summary.judge_s <= episodes[0].seconds


async def test_answer_no_is_an_outcome_of_0(tmp_path: Path) -> None:
    Gathering.says = False
    (answer,) = await played(tmp_path, FUZZY, answer_judge=f"{HERE}:GATHERING")
    assert recorded(answer).outcome == 0.0


async def test_judge_in_trouble_is_a_failure_and_no_shard(tmp_path: Path) -> None:
    Gathering.says = "perhaps"
    settings = replace(ONE_SLOT, judge_deadline_s=1.5)
    judges = Judges({"evaluators": EvaluatorSettings(answer_judge=f"{HERE}:GATHERING", answer_timeout_s=0.5)})
    worker = RolloutWorker(replace(config(tmp_path, settings, f"{HERE}:JUDGED"), judges=judges), "worker-0")
    await worker.start()
    asked = replace(spec(0), task=replace(spec(0).task, evaluation=FUZZY))
    answer = await worker.play(Lease("e0", 1, 0), asked)
    await worker.stop()
    assert (failed(answer).kind, failed(answer).code.name) == (FailureKind.JUDGE, "judge_nonsense")


async def test_no_judge_is_a_failure_as_before(tmp_path: Path) -> None:
    (answer,) = await played(tmp_path, FUZZY)
    assert failed(answer).code.name == "no_judge"


@pytest.mark.parametrize("evaluation", [FUZZY, {}], ids=["nobody compares meanings", "no rules"])
async def test_judge_of_episodes_decides_where_rules_cannot_tell_and_says_so(
    tmp_path: Path, evaluation: dict[str, object]
) -> None:
    (answer,) = await played(tmp_path, evaluation, otherwise=f"{HERE}:LIKELY")
    episode = recorded(answer)
    assert (episode.outcome, episode.failure, episode.termination) == (1.0, None, Termination.EXIT)
    assert json.loads(episode.evidence) == ["pass instead of rules: likely (none, likely/1) gives 0.90: so"]


async def test_rules_that_can_tell_ask_nobody_else(tmp_path: Path) -> None:
    exact = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "something else"}}
    (answer,) = await played(tmp_path, exact, otherwise=f"{HERE}:LIKELY")
    assert recorded(answer).outcome == 0.0
    Gathering.says = False
    (answer,) = await played(tmp_path / "b", FUZZY, answer_judge=f"{HERE}:GATHERING", otherwise=f"{HERE}:LIKELY")
    assert recorded(answer).outcome == 0.0


def test_judge_of_steps_is_none_of_outcomes() -> None:
    options = {"llm": {"models": {"m": {"model": "x"}}}, "process": {"model": "m"}}
    judges = Judges({**options, "evaluators": {"otherwise": "process"}})
    with pytest.raises(ValueError, match="expected a judge of outcomes, found 'process', which judges steps"):
        judges.of_trajectories("evaluators")
