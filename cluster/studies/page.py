"""The page of a study, ``OUT/study.html``, and its numbers, ``OUT/study.json``.

Owns what is shown of a study. Invariant: as in ``analysis.report``, what came from a file or a run is escaped, and the
page makes no request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from itertools import cycle
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.charts import NOTHING, PANEL_HEIGHT, SERIES, label_of, panel_axes, panel_rows, svg, whole_ticks
from analysis.intervals import Interval, p_text
from analysis.page import page_environment
from cluster.run_folder.durable import write_atomic
from cluster.studies.results import StudyResults
from records.json_numbers import finite

PAGE, RESULT = "study.html", "study.json"
_STYLES = ("-", "--", ":", "-.")
"""More arms than colours are told apart by these."""


def write_study(out: Path, results: StudyResults) -> None:
    """Write the page and the numbers into ``out``."""
    write_atomic(
        out / RESULT, json.dumps(finite(asdict(results)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )
    write_atomic(out / PAGE, render_study(results))


def render_study(results: StudyResults) -> str:
    """Return the page as HTML."""
    environment = page_environment()
    environment.filters["points"] = _points
    environment.filters["size"] = _size
    environment.filters["span"] = _span
    environment.filters["p"] = p_text
    curves = _lines(
        "Sampled rollouts by phase", {name.value: arms for name, arms in results.curves.items()}, percent=True
    )
    mechanism = _lines("How the methods work", results.mechanism)
    return environment.get_template("study.html.j2").render(study=results, curves=curves, mechanism=mechanism)


def _lines(label: str, panels: Mapping[str, Mapping[str, Mapping[int, float]]], *, percent: bool = False) -> Markup:
    """Draw a panel a number, a line an arm."""
    panels = {name: arms for name, arms in panels.items() if any(arms.values())}
    if not panels:
        return NOTHING
    styles = [(color, style) for style in _STYLES for color in SERIES]

    def draw(figure: Figure) -> None:
        for (name, arms), axes in zip(panels.items(), panel_axes(figure, len(panels)), strict=True):
            for (color, style), (arm, by_phase) in zip(cycle(styles), arms.items(), strict=False):
                if by_phase:
                    axes.plot(*zip(*by_phase.items(), strict=True), style, color=color, label=label_of(arm))
            axes.set_title(label_of(name))
            whole_ticks(axes.xaxis)
            if percent:
                axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            axes.grid(axis="y", alpha=0.6)

    height = 3.2 if len(panels) == 1 else 0.3 + PANEL_HEIGHT * panel_rows(len(panels))
    return svg(label, height, draw)


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−") if math.isfinite(share) else "–"


def _size(share: float) -> str:
    return _points(share).removeprefix("+")


def _span(interval: Interval) -> str:
    return f"{_points(interval.low)} to {_points(interval.high)}"
