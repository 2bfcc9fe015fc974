"""The page of failures shows what was found, and nothing in it is read as markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from analysis.failure_charts import horizon_chart, limit_chart, milestone_chart, mode_chart
from analysis.failure_modes import MEANING, Mode
from analysis.failure_page import render_failures
from analysis.failures import failure_report
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from tests.analysis.played import EXIT, click, route

HOSTILE = "</td></title><script>alert('x')</script> {{ 7 * 191 }} $x_1^{2$ & \x00"


def played(text: str) -> list[Route]:
    reached = [[False, True]] * 3
    return [
        route(click(0, text), click(1, text), EXIT, name=f"{text}{outcome}", site=text, template=text, task=text,
              outcome=outcome, milestones=reached, horizon=horizon)
        for outcome, horizon in ((0.0, 3), (1.0, 12), (0.0, 12))
    ]  # fmt: skip


def test_what_tasks_pages_and_models_say_is_escaped() -> None:
    page = render_failures(HOSTILE, [failure_report(HOSTILE, played(HOSTILE), AnalysisSettings())])
    assert "<script" not in page
    assert "1337" not in page
    assert "&lt;script&gt;" in page


def test_the_page_names_the_mode_the_step_and_the_reason() -> None:
    page = render_failures("Failures", [failure_report("mine", played("shop"), AnalysisSettings())])
    for text in (
        "wrong termination",
        "leaves all successes of the task",
        "3 of 3",
        "evaluation 1",
        "66.7 %",
        "interactions allowed",
    ):
        assert text in page


def test_each_mode_that_occurs_has_its_sentence_and_no_other_has() -> None:
    page = render_failures("Failures", [failure_report("mine", played("shop"), AnalysisSettings())])
    assert MEANING[Mode.WRONG_TERMINATION] in page
    assert [mode for mode in Mode if MEANING[mode] in page] == [Mode.WRONG_TERMINATION]
    assert set(MEANING) == set(Mode)


def test_the_table_of_modes_has_a_heading_for_each_of_its_parts() -> None:
    page = render_failures("Failures", [failure_report("mine", played("shop"), AnalysisSettings())])
    table = page[page.index("share of the failures") :]
    first = re.findall(r"<tr>\s*<t[hd][^>]*>([^<]*)<", table[: table.index("</table>")])
    assert first == ["all", "by what was played", "evaluation 1", "by policy", "version 0", "by site", "shop"]
    empty = render_failures("Failures", [failure_report("none", [], AnalysisSettings())])
    assert "by policy" not in empty


def test_charts_are_svg_and_there_is_none_of_nothing() -> None:
    report = failure_report("mine", played("a & b"), AnalysisSettings())
    charts = (
        mode_chart(report.by_phase),
        milestone_chart(report.milestones),
        horizon_chart(report.by_horizon),
        limit_chart(report.by_limit),
    )
    for chart in charts:
        assert ElementTree.fromstring(str(chart)).tag.endswith("svg")
    empty = failure_report("none", [], AnalysisSettings())
    assert mode_chart(empty.by_phase) == milestone_chart(empty.milestones) == horizon_chart(empty.by_horizon) == ""
    assert limit_chart(empty.by_limit) == ""
    assert "none" in render_failures("Failures", [empty])
