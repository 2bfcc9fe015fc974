"""What WebArena's evaluators can be told, and how tasks without milestones come by some.

Owns ``EvaluatorSettings``, ``MilestoneSettings``, ``AutoraterSettings``, ``CheckerSettings``,
``MatchingSettings`` and ``MilestoneStepsSettings``. Imports neither torch nor pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from records.bounds import at_least, one_of, require, times


@dataclass(frozen=True)
class EvaluatorSettings:
    """WebArena's evaluators: the LLM judge that they ask about meaning, and how long it is waited for."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("answer_timeout_s",)

    answer_judge: str = ""
    """Judge of answers (a registered name or ``module:name``) for tasks with ``fuzzy_match``; its own options stand
    under its name in ``judges``. Without one, such tasks fail as ``judge/no_judge`` where their answer is no exact
    match."""

    otherwise: str = ""
    """Judge of recorded episodes, such as ``orm``, that gives the verdict where rules cannot tell: a task has none,
    or has a ``fuzzy_match`` and there is no ``answer_judge``. The evidence says so. Without one such tasks fail."""

    answer_timeout_s: float = 12.0
    """Longest wait for one answer, in seconds; past it the question is asked again, as after any other trouble, until
    ``rollout.judge_deadline_s`` is over and the episode has failed as ``judge/…``."""

    def __post_init__(self) -> None:
        """Refuse times that leave no time."""
        times(self)


@dataclass(frozen=True)
class MilestoneSettings:
    """Milestones of tasks: whether an answer is one, who writes them and from what, and what a task without any means.

    Tasks that bring none, such as WebArena's, get them once, from instruction and first page, before the phase that
    first plays them. Or they are distilled from what succeeded, after each phase's rollouts.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    unset: ClassVar[Mapping[str, object]] = {
        "answer": False,
        "source": "first_page",
        "per": "template",
        "refined": True,
    }

    answer: bool = False
    """Whether a task that asks a question has its right answer as one more, last milestone, brought or written. Without
    it a failure that looks at the right page and answers wrongly has reached all that there is. Answers that only a
    judge of meaning can rate (``fuzzy_match``) are no milestone."""

    model: str = ""
    """Language model that writes them, by its name in ``judges.llm.models``; empty: none are written."""

    source: str = "first_page"
    """``first_page``: a task that brings none gets some before it is first played. ``successes``: actions, distilled
    from rollouts that succeeded (ADMIRE, section 3.1), in place of those that tasks bring, for the judge that labels
    rollouts: ``replay.milestones``, such as ``milestone_matching``."""

    per: str = "template"
    """Whose milestones a success gives: those of all tasks of its ``template``, with placeholders for what differs, or
    of the ``task`` alone, where tasks of a template are solved in different ways. Used with ``source: successes``."""

    refined: bool = True
    """Whether a success of fewer steps changes what was distilled before. False: static milestones, an ablation of
    ADMIRE (section 5.2). Used with ``source: successes``."""

    count: int = 4
    """Milestones of each task; 0 leaves the number to the model (2 to 8)."""

    checks: str = "declared"
    """``declared``: each milestone brings conditions on addresses, texts, fields and actions that are checked at every
    step. ``none``: descriptions only; a judge that labels recorded episodes then says which are reached
    (``replay.milestones``)."""

    picture: bool = True
    """Whether the model also sees a picture of the first page, where the environment can take one."""

    examples_seed: int = 0
    """Seed of the order in which a model is shown its examples; the same for every task's question, whenever asked."""

    attempts: int = 3
    """Times that a model is asked for a task's milestones, each time with what was wrong, before it goes without."""

    at_once: int = 4
    """Tasks whose first pages are opened and whose milestones are written at the same time, or templates whose
    milestones are distilled."""

    absent: str = "refuse"
    """What happens when an algorithm that learns from milestones (MiRA's potential) meets a task without any.
    ``refuse``: the run does not start, or stops. ``warn``: it is said and counted; such a task teaches the potential
    critic nothing."""

    def __post_init__(self) -> None:
        """Refuse numbers of milestones that no task has, and words that mean nothing."""
        require(self.count == 0 or 2 <= self.count <= 8, "count", "0, or 2 to 8", self.count)
        one_of(self, "checks", ("declared", "none"))
        one_of(self, "source", ("first_page", "successes"))
        one_of(self, "per", ("template", "task"))
        one_of(self, "absent", ("refuse", "warn"))
        at_least(self, 0, "examples_seed")
        at_least(self, 1, "attempts", "at_once")


@dataclass(frozen=True)
class AutoraterSettings:
    """A language model that says of recorded episodes when each of their milestones was reached."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    model: str = ""
    """Language model that is asked, by its name in ``judges.llm.models``."""

    page_characters: int = 2000
    """Characters of each page that it is shown."""

    attempts: int = 2
    """Times that it is asked about an episode whose answer breaks the rules, each time with what was wrong."""

    def __post_init__(self) -> None:
        """Refuse pages of nothing."""
        at_least(self, 1, "page_characters", "attempts")


@dataclass(frozen=True)
class CheckerSettings:
    """A trained checker of milestones."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    folder: str = ""
    """Folder that ``waymark milestones train`` made, relative to the working folder."""


@dataclass(frozen=True)
class MatchingSettings:
    """Milestones that are taken for reached by an action that is like their description (ADMIRE, section 3.2.1)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    unset: ClassVar[Mapping[str, object]] = {"threshold": 0.75, "encoder": "all-MiniLM-L6-v2"}

    threshold: float = 0.75
    """Similarity (the cosine of two sentences' vectors) above which an action reaches the next milestone: the paper's
    delta. ``waymark milestones calibrate`` finds the one for tasks and descriptions of one's own."""

    encoder: str = "all-MiniLM-L6-v2"
    """Sentence encoder; any other name is a model of sentence-transformers, on the hub or in a folder."""

    def __post_init__(self) -> None:
        """Refuse a similarity that no two sentences have, or all."""
        require(0 < self.threshold < 1, "threshold", "above 0 and below 1", self.threshold)
        require(bool(self.encoder), "encoder", "the name of a sentence encoder", self.encoder)


@dataclass(frozen=True)
class MilestoneStepsSettings:
    """A judge of steps by the milestones that they lead to."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    within: int = 0
    """Steps up to one that reaches a milestone that are right, that one included; 0: as many as the expert needs for a
    milestone, where its number of steps is known."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        at_least(self, 0, "within")
