"""The report page of a run: one HTML file that opens offline, in light and in dark.

Owns what the page shows and how it is made. Invariants: everything that came from a page, a task or
a model is escaped by the template engine, and the page's own policy forbids scripts and every
request; pictures travel inside the file; input is plain records, so nothing here needs a run.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.charts import label_of, loss_chart, loss_names, site_chart, success_chart, time_chart
from analysis.failure_page import failure_context
from analysis.failures import FailureReport
from analysis.objections import objection_to
from analysis.page import page_environment
from analysis.results import (
    EpisodeCounts,
    PhaseSummary,
    SplitResult,
    evaluated_sites,
    evaluated_splits,
)
from records.episodes import Step, Trajectory

_IMAGE_TYPES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


@dataclass(frozen=True, slots=True)
class StepView:
    """One step as shown: ``milestones`` and ``critics``, each one's answer by name, describe the state before it.

    ``action`` is the agent's reply, its thought included where it has one.
    """

    url: str
    observation: str
    action: str
    element: str | None = None
    feedback: str | None = None
    parse_error: str | None = None
    milestones: tuple[bool, ...] = ()
    critics: Mapping[str, float] = field(default_factory=dict)
    screenshot: bytes | None = None


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """One episode as shown; ``outcome`` is ``solved``, ``not solved`` or ``no verdict``.

    ``objection`` says of one that was not solved what decided it (``objection_to``); it is empty for all others.
    """

    episode_id: str
    intent: str
    site: str
    template: str
    split: str
    phase: int
    outcome: str
    ending: str
    answer: str | None
    evidence: str
    milestone_names: tuple[str, ...]
    final_milestones: tuple[bool, ...]
    steps: tuple[StepView, ...]
    objection: str = ""

    @classmethod
    def of(
        cls,
        episode: Trajectory,
        milestone_names: Sequence[str] = (),
        critics: Mapping[str, Sequence[float]] | None = None,
        picture: Callable[[str], bytes | None] = lambda reference: None,
        said: Callable[[Step], str] = lambda step: step.action_text,
    ) -> EpisodeView:
        """Return the view of a trajectory.

        ``critics`` holds each critic's answers by its name, one a step; ``picture`` turns a
        step's screenshot reference into PNG or JPEG bytes; ``said`` tells a step's reply. Raises
        ``ValueError`` where the answers do not fit the steps.
        """
        count, critics = len(episode.steps), critics or {}
        for name, given in critics.items():
            if len(given) != count:
                found = f"expected {count} answers of the {name} critic, found {len(given)}"
                raise ValueError(f"episode {episode.episode_id}: {found}")
        steps = tuple(
            StepView(
                step.url,
                step.observation,
                said(step),
                step.element,
                step.feedback,
                step.parse_error,
                step.milestones,
                {name: float(answers[index]) for name, answers in critics.items()},
                picture(step.screenshot) if step.screenshot else None,
            )
            for index, step in enumerate(episode.steps)
        )
        outcome = "no verdict" if episode.outcome is None else "solved" if episode.success else "not solved"
        ending = f"{episode.failure.code}" if episode.failure else str(episode.termination)
        return cls(
            episode.episode_id, episode.intent, episode.site, episode.template, episode.split, episode.phase,
            outcome, ending, episode.answer, episode.evidence, tuple(milestone_names), episode.final_milestones, steps,
            objection_to(episode),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page. ``facts`` are (label, value) lines such as the config hash; ``notes`` are sentences."""

    title: str
    facts: tuple[tuple[str, str], ...]
    phases: tuple[PhaseSummary, ...]
    counts: EpisodeCounts
    episodes: tuple[EpisodeView, ...] = ()
    notes: tuple[str, ...] = ()
    failures: FailureReport | None = None


def render(report: Report) -> str:
    """Return the page as HTML."""
    environment = page_environment()
    environment.filters["data_uri"] = data_uri
    splits = evaluated_splits(report.phases)
    leading, others = loss_names(report.phases)
    template = environment.get_template("report.html.j2")
    return template.render(
        report=report,
        splits=splits,
        headline=_headline(report.phases, splits),
        sites_of={split: evaluated_sites(report.phases, split) for split in splits},
        success_chart=success_chart(report.phases),
        site_chart=site_chart(report.phases),
        loss_chart=loss_chart(report.phases, leading),
        other_numbers=number_rows(report.phases, {name: label_of(name) for name in others}),
        time_chart=time_chart(report.phases),
        mechanism=mechanism_rows(report.phases),
        **(failure_context(report.failures) if report.failures else {"failures": None}),
    )


def pictures_in(folder: Path) -> Callable[[str], bytes | None]:
    """Return a reader of the pictures in ``folder``, by the names that episodes record.

    A name that leads out of the folder, or to something that is no picture, has none.
    """
    inside = folder.resolve()

    def read(reference: str) -> bytes | None:
        path = (inside / reference.replace("\0", "")).resolve()
        if not path.is_relative_to(inside) or not path.is_file():
            return None
        content = path.read_bytes()
        return content if content.startswith(tuple(_IMAGE_TYPES)) else None

    return read


def data_uri(image: bytes) -> str:
    """Return a PNG or JPEG as a ``data:`` address; raise ``ValueError`` for anything else."""
    for magic, media_type in _IMAGE_TYPES.items():
        if image.startswith(magic):
            return f"data:{media_type};base64,{base64.b64encode(image).decode('ascii')}"
    raise ValueError(f"expected a PNG or JPEG, found bytes starting with {image[:8]!r}")


MECHANISM = {
    "mechanism.auc_outcome": "tells successes from failures at the end (AUC)",
    "mechanism.auc_outcome_within": "does so among episodes of the same template (AUC)",
    "mechanism.auc_outcome_clock": "the step number does (AUC)",
    "mechanism.auc_outcome_template": "the template's other episodes do (AUC)",
    "mechanism.auc_steps": "rises where a failure reaches a milestone (AUC)",
    "mechanism.auc_steps_clock": "the clock does (AUC)",
    "mechanism.clock_rank": "follows the step number in failures (rank correlation)",
    "mechanism.positive_share_of_failures": "decisions of failures pushed up (share)",
    "actor.ratio.correlation": "what the update did follows what was asked (correlation; below 0: the opposite)",
}
"""What is told of the shaping: names among a phase's numbers, and what each one says of the potential."""


def mechanism_rows(phases: Sequence[PhaseSummary]) -> list[tuple[str, list[float | None]]]:
    """Return a line for each number of the shaping and its value in each phase; none where no phase has any."""
    if not any("mechanism.positive_share_of_failures" in phase.losses for phase in phases):
        return []
    return number_rows(phases, MECHANISM)


def number_rows(phases: Sequence[PhaseSummary], told: Mapping[str, str]) -> list[tuple[str, list[float | None]]]:
    """Return, for each of the learner's numbers in ``told``, what it is called there and its value in each phase."""
    return [(meaning, [phase.losses.get(name) for phase in phases]) for name, meaning in told.items()]


@dataclass(frozen=True, slots=True)
class Headline:
    """Success on the first split before RL and after the last evaluated phase."""

    split: str
    before: SplitResult
    after: SplitResult
    last_phase: int

    @property
    def gain(self) -> float | None:
        """Difference in points, None where either is unknown."""
        if self.before.success is None or self.after.success is None:
            return None
        return 100 * (self.after.success - self.before.success)


def _headline(phases: Sequence[PhaseSummary], splits: Sequence[str]) -> Headline | None:
    measured = [phase for phase in phases if splits and splits[0] in phase.evaluation]
    if not measured or measured[0].phase != 0:
        return None
    first, last = measured[0], measured[-1]
    return Headline(splits[0], first.evaluation[splits[0]], last.evaluation[splits[0]], last.phase)
