"""Drawings of how episodes fail: modes by group, milestones by step, success by horizon and by interactions allowed.

Owns these charts; ``analysis.charts`` owns how a chart looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from analysis.charts import (
    FAINT,
    INK,
    NOTHING,
    PANEL_HEIGHT,
    SERIES,
    label_of,
    panel_axes,
    panel_rows,
    svg,
    whole_ticks,
)
from analysis.failure_modes import Mode
from analysis.failures import MilestoneMap, ModeShares
from analysis.interactions import LimitResult
from analysis.results import GroupResult

_MODE_COLORS = dict(zip(Mode, (SERIES[0], SERIES[1], SERIES[3], FAINT), strict=True))


def mode_chart(groups: Mapping[str, ModeShares]) -> Markup:
    """Return each group's failures as one bar of its judged episodes, by mode; nothing where there are none."""
    shown = {name: group for name, group in groups.items() if group.judged}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        left = [0.0] * len(shown)
        for mode, color in _MODE_COLORS.items():
            widths = [(g.shares[mode.value].success or 0.0) * g.failures / g.judged for g in shown.values()]
            axes.barh(range(len(shown)), widths, left=left, color=color, label=mode.value, height=0.62)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(shown)), [label_of(name) for name in shown])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("of judged episodes")

    return svg("Failure modes by group", 0.9 + 0.3 * len(shown), draw) if shown else NOTHING


def milestone_chart(maps: Mapping[str, MilestoneMap]) -> Markup:
    """Return a heat map for each group: the darker a cell, the more episodes had reached the milestone by that step."""

    def draw(figure: Figure) -> None:
        for (name, drawn), axes in zip(maps.items(), panel_axes(figure, len(maps)), strict=True):
            for milestone, by_step in enumerate(drawn.share):
                for step, share in enumerate(by_step):
                    corner = (step - 0.5, milestone + 0.5)
                    axes.add_patch(Rectangle(corner, 1, 1, facecolor=SERIES[0], alpha=share, linewidth=0))
            axes.set_xlim(-0.5, len(drawn.share[0]) - 0.5)
            axes.set_ylim(0.5, len(drawn.share) + 0.5)
            whole_ticks(axes.xaxis)
            whole_ticks(axes.yaxis)
            axes.set_title(label_of(name))
            axes.set_xlabel("step")
            axes.set_ylabel("milestone")

    height = (PANEL_HEIGHT + 0.3) * panel_rows(len(maps))
    return svg("Milestones reached by step", height, draw) if maps else NOTHING


def horizon_chart(groups: Mapping[str, Mapping[str, GroupResult]]) -> Markup:
    """Return success by the expert's number of steps, a line for each group, with 95 % intervals."""
    buckets = list(dict.fromkeys(bucket for rates in groups.values() for bucket in rates))
    buckets.sort(key=lambda bucket: int(bucket.rstrip("+").partition("-")[0]) if bucket[:1].isdigit() else 0)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for color, (name, rates) in zip(cycle(SERIES), groups.items(), strict=False):
            known = [(buckets.index(b), r.success, r.low, r.high) for b, r in rates.items() if r.success is not None]
            x, success, low, high = zip(*sorted(known), strict=True)
            axes.plot(x, success, "o-", color=color, label=label_of(name))
            axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)
        axes.set_xticks(range(len(buckets)), buckets)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("the expert's steps")
        axes.grid(axis="y", color=INK, alpha=0.1)

    return svg("Success by horizon", 2.8, draw) if buckets else NOTHING


def limit_chart(groups: Mapping[str, Mapping[str, LimitResult]]) -> Markup:
    """Return success by the interactions allowed, a line for each group, with 95 % intervals.

    A line is dotted from where its episodes' own limits have ended some of them.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for color, (name, curve) in zip(cycle(SERIES), groups.items(), strict=False):
            known = [(int(limit), at.rate.success, at.rate.low, at.rate.high) for limit, at in curve.items()]
            x, success, low, high = zip(*known, strict=True)
            played = next((i for i, at in enumerate(curve.values()) if at.cut), len(x))
            axes.plot(x[:played], success[:played], color=color, label=label_of(name))
            axes.plot(x[max(0, played - 1) :], success[max(0, played - 1) :], ":", color=color)
            axes.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        whole_ticks(axes.xaxis)
        axes.set_xlabel("interactions allowed")
        axes.grid(axis="y", color=INK, alpha=0.1)

    return svg("Success by interactions allowed", 2.8, draw) if groups else NOTHING
