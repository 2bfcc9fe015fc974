"""An episode that was not solved says in its line what decided that."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from analysis.objections import objection_to
from analysis.report import EpisodeView, Report, render
from analysis.results import EpisodeCounts
from records.episodes import Source, Termination, Trajectory

FAILED = Trajectory(
    episode_id="e", task_id="t", template="shop.rating", site="shop", split="test", intent="What is the rating?",
    source=Source.EVALUATION, phase=1, seed=0, steps=(), termination=Termination.EXIT, answer="3.3", outcome=0.0,
    failure=None, final_milestones=(True, True),
)  # fmt: skip
ADDRESS = "pass webarena/2 url_match: expected '__SHOP__/a', found '__SHOP__/a'"
ANSWER = "fail webarena/2 string_match must_include: expected '3.5', found '3.3'"


def said(*evidence: str, **changed: object) -> str:
    return objection_to(replace(FAILED, evidence=json.dumps(evidence), **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("evidence", "line"),
    [
        ([ADDRESS, ANSWER], "wrong answer: expected '3.5', found '3.3'"),
        ([ADDRESS.replace("pass", "fail"), ANSWER], "wrong address: expected '__SHOP__/a', found '__SHOP__/a'"),
        (["fail webarena/2 program_html #a one_of: expected 'b: c', found ''"],
         "wrong content: expected 'b: c', found ''"),
        (["fail my own check: the lamp is off"], "my own check: the lamp is off"),
        (["the page ended the episode", "raw reward 0, 1 passes"], "but the evaluator says no"),
    ],
)  # fmt: skip
def test_the_first_failed_check_stands_behind_milestones_that_all_hold(evidence: list[str], line: str) -> None:
    assert said(*evidence) == f"all milestones, {line}"
    assert said(*evidence, final_milestones=(True, False)) == ("" if line.startswith("but") else line)
    assert said(*evidence, final_milestones=()) == ("" if line.startswith("but") else line)


def test_an_episode_that_never_exited_has_no_answer() -> None:
    line = "fail webarena/2 string_match: expected {'must_include': ['3.5']}, found 'no exit, hence no answer'"
    assert said(line, answer=None) == "all milestones, no answer"


@pytest.mark.parametrize("evidence", ["", "no json", "{}", "[1, null]", "[" * 100_000])
def test_evidence_of_another_form_says_nothing(evidence: str) -> None:
    assert objection_to(replace(FAILED, evidence=evidence, final_milestones=(False,))) == ""


def test_a_solved_episode_is_not_objected_to_and_a_long_line_is_cut() -> None:
    assert said(ANSWER, outcome=1.0) == ""
    assert len(said("fail webarena/2 string_match exact_match: " + "x" * 900)) == 200


def test_the_report_shows_it_in_the_episodes_line() -> None:
    failed = replace(FAILED, evidence=json.dumps([ANSWER.replace("3.5", "<b>")]))
    html = render(Report("r", (), (), EpisodeCounts(), (EpisodeView.of(failed),)))
    line = html[html.index("What is the rating?") : html.index("</summary>", html.index("What is the rating?"))]
    assert "all milestones, wrong answer: expected &#39;&lt;b&gt;&#39;, found &#39;3.3&#39;" in line
