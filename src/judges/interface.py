"""The faces of a judge (of an answer, of a trajectory, of milestones, of a recorded episode), and what they see.

Owns the protocols ``AnswerJudge``, ``TrajectoryJudge``, ``MilestoneJudge`` and ``EpisodeJudge``, what they are asked,
and ``PageView`` and ``HttpClient``, through which pages and a site's own interface are seen. Holds no clients: who
implements these (a browser, an in-process app, a model) is not known here. Whatever goes wrong below is raised as
``records.failures.EpisodeFailed`` with a typed failure, never answered "no".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from records.deadline import Deadline
from records.environment import Observation, Verdict
from records.episodes import Milestone, Task, Trajectory
from records.labels import Label, LabelSubject

if TYPE_CHECKING:
    from judges.functions import PageFunction
    from judges.milestones import Acted
    from judges.rules import RuleSet


class PageView(Protocol):
    """One page as an evaluator sees it; URLs are canonical (``__SHOP__/cart``) in both directions."""

    async def url(self) -> str:
        """Return the page's canonical URL."""
        ...

    async def open(self, url: str) -> None:
        """Navigate to a canonical URL and wait until the page has settled."""
        ...

    async def content_text(self, locator: str) -> str:
        """Return what ``locator`` selects, as text.

        "" stands for the whole page's HTML; anything else is a JavaScript expression evaluated in the
        page, never in Python. An expression that throws or yields null or undefined gives ""; on a page that
        was opened it may be evaluated several times before, because pages draw by script. Addresses
        of the task's sites in the text are canonical, because references in task files are.
        """
        ...


@runtime_checkable
class PreparedPageView(PageView, Protocol):
    """A page that may read a locator again, and so must know what to run once only."""

    async def prepare(self, script: str) -> None:
        """Run a preparing script, a JavaScript expression, in the page; one that throws changes nothing."""
        ...


class HttpClient(Protocol):
    """A site's own interface, for state that its pages do not show; only the episode's hosts can be reached."""

    async def json(
        self, method: str, url: str, *, query: Mapping[str, str] | None = None, token: str = "", body: object = None
    ) -> Any:
        """Send one request to a canonical URL, within a finite time, and return the JSON it answers.

        ``token`` is sent as a bearer token, ``body`` as JSON. Raises ``EpisodeFailed`` (infra) where the site
        does not answer, refuses, or answers something else.
        """
        ...


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """One question of meaning: does ``answer`` to ``intent`` say the same as ``reference``?"""

    intent: str
    reference: str
    answer: str


@runtime_checkable
class AnswerJudge(Protocol):
    """A model that compares meanings."""

    name: str
    """Goes into the evidence so that a verdict can be traced."""

    async def matches(self, question: AnswerQuestion) -> bool:
        """Whether the answer is equivalent to the reference; a partly right answer is not."""
        ...

    async def same_reason(self, question: AnswerQuestion) -> bool:
        """Whether the answer reports the reason ``reference`` for which the task cannot be done."""
        ...


@runtime_checkable
class PatientAnswerJudge(AnswerJudge, Protocol):
    """A judge of answers that asks again by itself where it has to."""

    def until(self, deadline: Deadline) -> AnswerJudge:
        """Return a judge that answers, or fails as a judge, by ``deadline``."""
        ...


@dataclass(frozen=True, slots=True)
class EndedEpisode:
    """An episode that has ended, as its judge sees it.

    ``answer`` is the exit message, None where the agent never exited. ``page`` is the page on which it ended; it is not
    navigated when ``fresh_page``, which makes another page of the same session, is given. ``rules`` are the dialect of
    WebArena's rules, ``functions`` those that ``func:`` may name; None stands for the usual ones.
    The verdict is there by ``deadline``.
    """

    task: Task
    answer: str | None
    page: PageView
    fresh_page: Callable[[], Awaitable[PageView]] | None = None
    rules: RuleSet | None = None
    functions: Mapping[str, PageFunction] | None = None
    deadline: Deadline | None = None


@runtime_checkable
class OpenVerdict(Protocol):
    """What pages and rules left open: it needs the episode's pages no longer, only judges of meaning."""

    async def settle(self, episode: Trajectory, task: Task, deadline: Deadline) -> Verdict:
        """Return the verdict by ``deadline``; raise ``EpisodeFailed`` (judge) where there can be none.

        ``episode`` is as it was played, with a failure in the place of its outcome.
        """
        ...


@runtime_checkable
class TrajectoryJudge(Protocol):
    """Says whether an episode did its task."""

    async def verdict(self, ended: EndedEpisode) -> Verdict | OpenVerdict:
        """Return the outcome with evidence; raise ``EpisodeFailed`` (task or judge) where there can be none.

        A judge that was told to postpone its questions (``PostponingJudge``) may return an open verdict.
        """
        ...


@runtime_checkable
class PostponingJudge(TrajectoryJudge, Protocol):
    """A judge of trajectories that can leave its questions of meaning for when the pages are gone."""

    def postponing(self) -> TrajectoryJudge:
        """Return this judge as one that does so."""
        ...


@runtime_checkable
class MilestoneJudge(Protocol):
    """Says which milestones of a task are reached."""

    async def reached(
        self,
        milestones: Sequence[Milestone],
        previous: Sequence[bool],
        observation: Observation,
        history: Sequence[Acted],
    ) -> tuple[bool, ...]:
        """Return the milestone vector (K,) of this state; what was reached stays so; ``previous`` may be empty."""
        ...


@runtime_checkable
class EpisodeJudge(Protocol):
    """Labels recorded episodes: from what was kept of them, after the browser has gone on to others."""

    subject: LabelSubject
    """What its labels are about: the outcome, the milestones or each step."""

    async def label(self, episode: Trajectory, task: Task, deadline: Deadline) -> Label:
        """Return the label by ``deadline``; raise ``EpisodeFailed`` (judge) where there can be none."""
        ...
