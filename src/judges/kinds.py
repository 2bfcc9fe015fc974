"""The plug point of judges: how a judge is found by its name and made with its own options.

Owns ``JudgeKind``, the registry ``JUDGES``, and ``Judges``, the judges of one run. Invariants: a judge is told its own
settings and nothing of another's; what is made has the face that it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from judges.interface import AnswerJudge, EpisodeJudge, MilestoneJudge, TrajectoryJudge
from judges.llm.settings import LlmSettings, named_model
from plugs.options import read_options
from plugs.registry import Registry
from records.checks import Check
from records.episodes import Task

if TYPE_CHECKING:
    from judges.llm.interface import LanguageModel

S = TypeVar("S")

AnyJudge = AnswerJudge | TrajectoryJudge | MilestoneJudge | EpisodeJudge
TasksBySplit = Mapping[str, Sequence[Task]]


def no_preflight(settings: object, judges: object, tasks: TasksBySplit) -> list[Check]:
    """Look at nothing."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeKind(Generic[S]):
    """A kind of judge."""

    settings: type[S]
    """The class of its options, a frozen dataclass that forbids extra keys."""
    make: Callable[[S, Judges], AnyJudge]
    """Returns a judge of answers, trajectories, milestones or episodes; may ask for other judges of the run."""
    preflight: Callable[[S, Judges, TasksBySplit], list[Check]] = no_preflight
    """Looks before a run whether the judge can judge its tasks."""


JUDGES: Registry[JudgeKind[Any]] = Registry(
    what="judge",
    kind=JudgeKind,
    group="waymark.judges",
    own={
        "evaluators": "judges.verdicts:EVALUATORS",
        "declarative": "judges.declarative:DECLARATIVE",
        "llm": "judges.llm.kind:LLM",
        "trained": "judges.trained.kind:TRAINED",
        "autorater": "judges.of_milestones.autorater:AUTORATER",
        "orm": "judges.llm.kind:ORM",
        "process": "judges.llm.kind:PROCESS",
        "milestone_checker": "judges.of_milestones.checker:CHECKER",
        "milestone_matching": "judges.of_milestones.matching:MATCHING",
        "milestone_steps": "judges.of_milestones.steps:MILESTONE_STEPS",
    },
)
"""Every kind of judge that there is."""


@dataclass(frozen=True, slots=True)
class Judges:
    """The judges of a run: ``options`` holds each one's by its name; what is left out has its defaults.

    ``models`` returns a language model by its name in ``judges.llm.models``; None asks each from this process, with
    nothing kept. ``screenshots`` is the folder of recorded pictures, empty where there is none. The methods raise
    ``ValueError`` where there is no such judge or model, it has another face, or its options are wrong.
    """

    options: Mapping[str, object] = field(default_factory=dict)
    models: Callable[[str], LanguageModel] | None = None
    screenshots: str = ""

    def of_answers(self, name: str) -> AnswerJudge:
        """Return the judge of answers called ``name``."""
        made = self._make(name)
        if not isinstance(made, AnswerJudge):
            raise _other_face(name, "AnswerJudge", made)
        return made

    def of_trajectories(self, name: str) -> TrajectoryJudge:
        """Return the judge of trajectories called ``name``."""
        made = self._make(name)
        if not isinstance(made, TrajectoryJudge):
            raise _other_face(name, "TrajectoryJudge", made)
        return made

    def of_milestones(self, name: str) -> MilestoneJudge:
        """Return the judge of milestones called ``name``."""
        made = self._make(name)
        if not isinstance(made, MilestoneJudge):
            raise _other_face(name, "MilestoneJudge", made)
        return made

    def of_episodes(self, name: str) -> EpisodeJudge:
        """Return the judge of recorded episodes called ``name``."""
        made = self._make(name)
        if not isinstance(made, EpisodeJudge):
            raise _other_face(name, "EpisodeJudge", made)
        return made

    def language_model(self, name: str) -> LanguageModel:
        """Return the language model called ``name`` in ``judges.llm.models``."""
        settings = read_options(LlmSettings, self.options.get("llm", {}), "judges.llm")
        named_model(settings, name)
        if self.models is not None:
            return self.models(name)
        from judges.llm.service import JudgeService

        return JudgeService(settings).model(name)

    def preflight(self, name: str, tasks: TasksBySplit) -> list[Check]:
        """Return what the judge called ``name`` says of the tasks that it is to judge."""
        return JUDGES.find(name).preflight(self._settings(name), self, tasks)

    def _settings(self, name: str) -> object:
        return read_options(JUDGES.find(name).settings, self.options.get(name, {}), f"judges.{name}")

    def _make(self, name: str) -> AnyJudge:
        return JUDGES.find(name).make(self._settings(name), self)


def _other_face(name: str, face: str, made: object) -> ValueError:
    article = "an" if face[0] in "AEIOU" else "a"
    return ValueError(f"judge {name!r}: expected {article} {face}, found a {type(made).__name__}")
