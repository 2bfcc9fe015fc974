"""Judges are found by name, made with their own options, and keep the contract of their face."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from cluster.recipe.recipe import build_recipe
from judges.contract import JudgeContractBroken, check_judge
from judges.interface import AnswerQuestion, EndedEpisode
from judges.kinds import JUDGES, JudgeKind, Judges
from judges.llm.settings import OrmSettings, ProcessSettings
from judges.settings import AutoraterSettings
from judges.verdicts import Evaluators
from records.deadline import Deadline
from records.environment import Observation, Verdict
from records.episodes import Milestone, Task, Trajectory
from records.labels import Label, LabelSubject
from tests.judges.scripted_model import SETTINGS, Say, ScriptedModel

HERE = __name__


@dataclass(frozen=True)
class AlikeSettings:
    """What a judge of one's own can be told."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    fold: bool = False


class Alike:
    """Compares letters."""

    name = "alike"

    def __init__(self, settings: AlikeSettings) -> None:
        self.fold = settings.fold

    async def matches(self, question: AnswerQuestion) -> bool:
        one, other = question.answer, question.reference
        return one.casefold() == other.casefold() if self.fold else one == other

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return False


ALIKE = JudgeKind(settings=AlikeSettings, make=lambda settings, judges: Alike(settings))


class Generous:
    """Forgets what was reached, and gives half a point."""

    async def verdict(self, ended: EndedEpisode) -> Verdict:
        return Verdict(0.5)

    async def reached(
        self, milestones: Sequence[Milestone], previous: Sequence[bool], observation: Observation, history: object
    ) -> tuple[bool, ...]:
        return (False,) * len(milestones)


class Lengthy:
    """Takes longer episodes for better ones; may say it of too few steps."""

    subject = LabelSubject.STEPS

    def __init__(self, missed: int = 0) -> None:
        self.missed = missed

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        values = np.ones(len(episode.steps) - self.missed)
        return Label(episode.episode_id, self.subject, "lengthy", "none", "length", values)


LENGTHY = JudgeKind(settings=AlikeSettings, make=lambda settings, judges: Lengthy())


ANSWERS: defaultdict[str, Say] = defaultdict(lambda: lambda question: {})
ANSWERS["llm"] = lambda question: {"why": "both say so", "same": True}
ANSWERS["orm"] = lambda question: {"why": "the page says so", "success": True, "probability": 0.75}
ANSWERS["process"] = lambda question: (
    {"steps": [{"why": "it helps", "right": True}]}
    if question.prompt == "process/1"
    else {"why": "it helps", "right": True}
)
"""What a language model answers the judges that ask one."""
NAMING: dict[str, object] = {
    "llm": SETTINGS,
    "autorater": AutoraterSettings(model="scripted"),
    "orm": OrmSettings("scripted"),
    "process": ProcessSettings("scripted"),
}
"""Settings of those judges, which name a model."""


ASKED_HERE = [name for name in JUDGES.own if name not in ("trained", "milestone_checker")]
"""Without those that need a model on the disk, which ``test_trained_judge`` and ``test_checker`` make."""


@pytest.mark.parametrize("name", [*ASKED_HERE, f"{HERE}:ALIKE", f"{HERE}:LENGTHY", "examples.same_answer:SAME"])
async def test_every_judge_keeps_the_contract_of_its_face(name: str) -> None:
    kind = JUDGES.find(name)
    model = ScriptedModel(ANSWERS[name])
    judges = Judges({"llm": SETTINGS}, lambda alias: model)
    await check_judge(kind.make(NAMING.get(name) or kind.settings(), judges))


async def test_a_judge_that_breaks_its_promises_is_told_all_of_them() -> None:
    with pytest.raises(JudgeContractBroken) as broken:
        await check_judge(Generous())
    said = str(broken.value)
    assert "verdict on 'two': expected an outcome of 0 or 1" in said
    assert "expected what was reached to stay so, found (False, False) after (False, True)" in said
    with pytest.raises(JudgeContractBroken, match="expected matches and same_reason, or verdict, or reached, or label"):
        await check_judge(object())
    with pytest.raises(JudgeContractBroken, match="expected one value for each of 2 steps, found 1"):
        await check_judge(Lengthy(missed=1))


def test_a_judge_of_episodes_is_found_by_its_name_and_none_with_another_face() -> None:
    assert isinstance(Judges().of_episodes(f"{HERE}:LENGTHY"), Lengthy)
    with pytest.raises(ValueError, match="'evaluators': expected an EpisodeJudge, found a Evaluators"):
        Judges().of_episodes("evaluators")


async def test_a_recipe_tells_a_judge_of_ones_own_its_options_and_who_asks_it() -> None:
    name = f"{HERE}:ALIKE"
    recipe = build_recipe({"judges": {"evaluators": {"answer_judge": name}, name: {"fold": True}}})
    made = recipe.judges_of_run.of_trajectories("evaluators")
    assert isinstance(made, Evaluators)
    assert isinstance(made.answers, Alike)
    assert await made.answers.matches(AnswerQuestion("Which?", "Tea", "tea"))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Judges().of_answers("declarative"), "expected an AnswerJudge, found a DeclarativeChecks"),
        (lambda: Judges().of_milestones("evaluators"), "expected a MilestoneJudge, found a Evaluators"),
        (lambda: Judges().of_trajectories("declarative"), "expected a TrajectoryJudge, found a DeclarativeChecks"),
        (lambda: Judges().of_trajectories("evaluator"), "did you mean 'evaluators'"),
        (lambda: Judges({f"{HERE}:ALIKE": {"fold_": 1}}).of_answers(f"{HERE}:ALIKE"), "did you mean .*ALIKE.fold'"),
    ],
)
def test_a_judge_that_is_not_there_or_has_another_face_is_refused(make: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()  # type: ignore[operator]
