"""The report's charts as inline SVG.

Owns drawing. Invariants: no global matplotlib state is touched; colours are CSS variables, so one
drawing serves light and dark pages; text that comes from data is never read as mathematics; a legend stands above
what it explains, in as many columns as fit, and the drawing is as much higher.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from analysis.results import GroupResult, PhaseSummary, SplitResult, evaluated_sites, evaluated_splits

# Colours that nothing else uses, replaced by CSS variables after drawing.
INK, FAINT = "#010101", "#020202"
SERIES = ("#030301", "#030302", "#030303", "#030304", "#030305", "#030306")
_VARIABLES = {INK: "var(--ink)", FAINT: "var(--line)", **{c: f"var(--s{i})" for i, c in enumerate(SERIES, 1)}}
NOTHING = Markup("")
"""The drawing of nothing."""
_LABEL_CHARS = 32
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "waymark", "font.size": 9.5, "text.parse_math": False,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": FAINT,
    "axes.spines.top": False, "axes.spines.right": False, "grid.color": FAINT, "axes.titlesize": 10,
    "axes.titlelocation": "left", "legend.frameon": False, "lines.linewidth": 2, "lines.markersize": 5,
}  # fmt: skip


def success_chart(phases: Sequence[PhaseSummary]) -> Markup:
    """Return success on every split over the phases with 95 % bands, and sampled rollout success dashed."""
    rates = {split: _by_phase(phases, split) for split in evaluated_splits(phases)}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _rate_lines(axes, rates)
        sampled = [(p.phase, p.rollout.success) for p in phases if p.rollout and p.rollout.success is not None]
        if sampled:
            axes.plot(*zip(*sampled, strict=True), ".--", color=INK, alpha=0.6, label="training rollouts (sampled)")
        _rate_axes(axes)
        axes.set_xlabel("phase (0: before RL)")

    return svg("Success by phase", 3.1, draw)


def site_chart(phases: Sequence[PhaseSummary]) -> Markup:
    """Return one small panel for each site: success on every split over the phases with 95 % bands."""
    splits = evaluated_splits(phases)
    sites = sorted({site for split in splits for site in evaluated_sites(phases, split)})

    def draw(figure: Figure) -> None:
        panels = panel_axes(figure, len(sites), shared=True)
        for site, axes in zip(sites, panels, strict=True):
            _rate_lines(axes, {split: _by_phase(phases, split, site) for split in splits})
            _rate_axes(axes)
            axes.set_title(label_of(site))
            axes.tick_params(labelbottom=True)

    return svg("Success by site", 0.2 + PANEL_HEIGHT * panel_rows(len(sites)), draw) if sites else NOTHING


_LEADING = frozenset({"loss", "grad_norm", "auc", "kendall", "entropy", "success_rate"})
"""Last part of the names of the numbers that are shown first."""


def loss_names(phases: Sequence[PhaseSummary]) -> tuple[list[str], list[str]]:
    """Return the names of the learner's numbers: those that say whether it learns, and all others."""
    names = list(dict.fromkeys(name for phase in phases for name in phase.losses))
    leading = [name for name in names if name.rpartition(".")[2] in _LEADING]
    return leading, [name for name in names if name not in leading]


def loss_chart(phases: Sequence[PhaseSummary], names: Sequence[str]) -> Markup:
    """Return one small panel for each of the named numbers over the phases."""
    first, last = (phases[0].phase, phases[-1].phase) if phases else (0, 0)

    def draw(figure: Figure) -> None:
        for name, axes in zip(names, panel_axes(figure, len(names)), strict=True):
            points = [(phase.phase, phase.losses[name]) for phase in phases if name in phase.losses]
            axes.plot(*zip(*points, strict=True), "o-", color=SERIES[0])
            axes.set_title(label_of(name))
            axes.set_xlim(first - 0.3, last + 0.3)
            whole_ticks(axes.xaxis)
            axes.grid(axis="y", alpha=0.6)

    return svg("Losses by phase", PANEL_HEIGHT * panel_rows(len(names)), draw) if names else NOTHING


def time_chart(phases: Sequence[PhaseSummary]) -> Markup:
    """Return where each phase's wall time went, as stacked bars in seconds."""
    stages = list(dict.fromkeys(stage for phase in phases for stage in phase.seconds))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        left = [0.0] * len(phases)
        for stage, (color, alpha) in zip(stages, cycle(_bar_styles()), strict=False):
            widths = [phase.seconds.get(stage, 0.0) for phase in phases]
            axes.barh(
                range(len(phases)), widths, left=left, color=color, alpha=alpha, label=label_of(stage), height=0.62
            )
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(phases)), [_phase_name(phase.phase) for phase in phases])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.grid(axis="x", alpha=0.6)
        axes.set_axisbelow(True)

    return svg("Wall time by stage", 0.8 + 0.34 * len(phases), draw) if stages else NOTHING


def _bar_styles() -> list[tuple[str, float]]:
    return [(color, 1.0) for color in SERIES] + [(color, 0.5) for color in SERIES]


def _phase_name(phase: int) -> str:
    return f"phase {phase}" if phase else "before RL"


_PANEL_COLUMNS, PANEL_HEIGHT = 3, 1.9


def panel_rows(panels: int) -> int:
    """Return how many rows so many panels take."""
    return -(-panels // _PANEL_COLUMNS)


def panel_axes(figure: Figure, count: int, *, shared: bool = False) -> list[Axes]:
    """Return ``count`` axes in rows of three, with common scales if ``shared``; the last row may stay half empty."""
    panels = list(
        figure.subplots(panel_rows(count), min(_PANEL_COLUMNS, count), squeeze=False, sharex=shared, sharey=shared).flat
    )
    for axes in panels[count:]:
        axes.set_axis_off()
    return panels[:count]


def _by_phase(
    phases: Sequence[PhaseSummary], split: str, site: str | None = None
) -> dict[int, GroupResult | SplitResult]:
    """Return the results on a split, of one site or of all, by phase."""
    results = {phase.phase: phase.evaluation[split] for phase in phases if split in phase.evaluation}
    if site is None:
        return dict(results)
    return {phase: result.by_site[site] for phase, result in results.items() if site in result.by_site}


def _rate_lines(axes: Axes, rates: Mapping[str, Mapping[int, GroupResult | SplitResult]]) -> None:
    for color, (name, by_phase) in zip(cycle(SERIES), rates.items(), strict=False):
        known = [(phase, r.success, r.low, r.high) for phase, r in by_phase.items() if r.success is not None]
        if known:
            x, success, low, high = zip(*known, strict=True)
            axes.plot(x, success, "o-", color=color, label=label_of(name))
            axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)


def label_of(name: str) -> str:
    """Return a name cut to what a legend can hold, without control characters, which XML cannot hold."""
    printable = "".join(character for character in name if character.isprintable())
    return printable if len(printable) <= _LABEL_CHARS else f"{printable[: _LABEL_CHARS - 1]}…"


def _rate_axes(axes: Axes) -> None:
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    whole_ticks(axes.xaxis)
    axes.grid(axis="y", alpha=0.6)


def whole_ticks(axis: Axis) -> None:
    """Let an axis have ticks at whole numbers only, and a single one where it shows no more."""
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


_WIDTH = 8.6
"""Inches of every drawing, which the page stretches to its own width."""
_MOST_COLUMNS, _LEGEND_ROW = 4, 0.21
_ENTRY, _CHARACTER = 0.7, 0.085
"""Inches of a legend's entry without its label, and of a character of the label."""


def _add_legend(figure: Figure) -> None:
    """Explain once, above the axes, every line and bar that has a label, and make the figure so much higher."""
    drawn = {label: it for axes in figure.axes for it, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if not drawn:
        return
    fitting = int(_WIDTH / (_ENTRY + _CHARACTER * max(map(len, drawn))))
    columns = max(1, min(_MOST_COLUMNS, fitting))
    figure.legend(drawn.values(), drawn.keys(), loc="outside upper left", ncols=columns)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * -(-len(drawn) // columns))


def svg(label: str, height: float, draw: Callable[[Figure], None]) -> Markup:
    """Draw on a fresh transparent figure, add its legend and return it as one inline ``<svg>`` element.

    ``height`` is that of the axes in inches, without a legend.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure)
        _add_legend(figure)
        for axes in figure.axes:
            axes.patch.set_alpha(0)
        figure.patch.set_alpha(0)
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"|height="[\d.]+pt" width="[\d.]+pt"', "", text, count=1)
    text = re.sub(r"<style.*?</style>", "", text, count=1, flags=re.DOTALL)
    return Markup(text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1))
