"""How episodes fail, as a part of a run's report and as a page of its own.

Owns what is shown. Invariant: as in ``analysis.report``, what came from a task, a page or a model is escaped, and the
page makes no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.failure_charts import horizon_chart, limit_chart, milestone_chart, mode_chart
from analysis.failure_modes import MEANING, Mode
from analysis.failures import PASSES, FailureReport, ModeShares, newest_failures
from analysis.interactions import first_and_last
from analysis.page import page_environment
from records.episodes import Source

_SHOWN_FAILURES = 200


@dataclass(frozen=True, slots=True)
class FailureDrawings:
    """The charts of one run's failures."""

    modes: Markup
    milestones: Markup
    horizon: Markup
    limit: Markup


def failure_context(failures: FailureReport) -> dict[str, object]:
    """Return what the template of one run's failures needs."""
    evaluated = {name: rates for name, rates in failures.by_horizon.items() if name.startswith(Source.EVALUATION)}
    drawn = FailureDrawings(
        mode_chart(failures.by_phase),
        milestone_chart(failures.milestones),
        horizon_chart(evaluated or failures.by_horizon),
        limit_chart(first_and_last(failures.by_limit)),
    )
    return {
        "failures": failures,
        "drawn": drawn,
        "shown": newest_failures(failures)[:_SHOWN_FAILURES],
        "occurring": [(mode.value, said) for mode, said in MEANING.items() if failures.everything.shares[mode].success],
        "parts": _parts(failures),
        **_NAMES,
    }


def _parts(failures: FailureReport) -> list[tuple[str, str, dict[str, ModeShares]]]:
    """Return the parts of the table of modes: a heading, what its groups are called after, and the groups."""
    parts = [
        ("", "", {"all": failures.everything}),
        ("by what was played", "evaluations and training rollouts, with the number of their phase", failures.by_phase),
        ("by policy", "version 1 has the weights after phase 1, version 0 those of the start", failures.by_policy),
        ("by site", "", failures.by_site),
    ]
    return [part for part in parts if part[2]]


def render_failures(title: str, reports: Sequence[FailureReport]) -> str:
    """Return the page about these runs' failures as HTML."""
    contexts = [failure_context(report) for report in reports]
    sections = [[context[name] for name in _OF_ONE_RUN] for context in contexts]
    return page_environment().get_template("analysis.html.j2").render(title=title, sections=sections, **_NAMES)


_OF_ONE_RUN = ("failures", "drawn", "shown", "occurring", "parts")
_NAMES: dict[str, object] = {"modes": [mode.value for mode in Mode], "passes": PASSES}
