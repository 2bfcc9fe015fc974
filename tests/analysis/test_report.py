"""The page shows the run, needs nothing from outside, and lets nothing in that pages or models wrote."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from analysis.charts import loss_chart, loss_names, site_chart, success_chart, time_chart
from analysis.report import EpisodeView, Report, data_uri, render
from analysis.results import EpisodeCounts, GroupResult, PhaseSummary, ReplayResult, SplitResult
from records.episodes import Source, Step, Termination, Trajectory
from records.failures import Failure, FailureCode, FailureKind

HOSTILE = "</pre></title><script>alert('x')</script><img src=x onerror=\"alert(1)\"> {{ 7 * 191 }} $x_1^{2$ & \x00"


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def step(index: int, text: str = "plain", screenshot: str | None = None) -> Step:
    return Step(
        index=index, url=text, observation=text, prompt_ids=np.zeros(1, np.int32), action_ids=np.zeros(1, np.int32),
        logprobs=np.zeros(1, np.float32), policy_version=1, temperature=1.0, action_text=text, milestones=(True, False),
        parse_error=text, feedback=text, element=text, screenshot=screenshot,
    )  # fmt: skip


def episode(text: str = "plain", outcome: float | None = 1.0) -> Trajectory:
    failure = Failure(FailureCode(text, FailureKind.INFRA)) if outcome is None else None
    return Trajectory(
        episode_id="e1", task_id="t", template=text, site=text, split=text, intent=text, source=Source.EVALUATION,
        phase=1, seed=0, steps=(step(0, text, "shot"), step(1, text)), termination=Termination.EXIT, answer=text,
        outcome=outcome, failure=failure, final_milestones=(True, True), evidence=text,
    )  # fmt: skip


def phases(text: str = "test", count: int = 3) -> tuple[PhaseSummary, ...]:
    def result(phase: int) -> SplitResult:
        success = 0.5 + 0.05 * phase
        group = GroupResult(success, 50, success - 0.1, success + 0.1)
        return SplitResult(success, 100, success - 0.1, success + 0.1, {f"site-{text}": group}, lost={text: 1})

    return tuple(
        PhaseSummary(
            phase, {f"split-{text}": result(phase)}, GroupResult(0.4, 10, 0.2, 0.6) if phase else None,
            ReplayResult(5, 2, {text: 2}) if phase else None, {f"loss-{text}": 0.5}, {f"stage-{text}": 3.0}, 40.0,
        )
        for phase in range(count)
    )  # fmt: skip


def page(text: str = "plain") -> str:
    critics = {text: (0.25, 1.5), "value": (0.1, 0.2)}
    views = [EpisodeView.of(episode(text, outcome), (text, text), critics, lambda reference: png())
             for outcome in (1.0, 0.0, None)]  # fmt: skip
    counts = EpisodeCounts(2, 1, {text: 1})
    return render(Report(text, ((text, text),), phases(text), counts, tuple(views), (text,)))


class Reader(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def test_hostile_text_stays_text_everywhere() -> None:
    reader = read(page(HOSTILE))
    assert "script" not in reader.tags
    assert not [entry for entry in reader.attributes if entry[1].startswith("on")]
    assert "1337" not in reader.text
    assert reader.text.count("alert('x')") >= 20
    assert set(reader.tags) == set(read(page("plain")).tags)


def test_the_page_needs_nothing_from_outside_and_forbids_it() -> None:
    html = page()
    reader = read(html)
    for tag, name, value in reader.attributes:
        if name in {"src", "href", "xlink:href", "action", "data"}:
            assert value.startswith(("data:image/png;base64,", "#")), (tag, name, value)
    assert re.search(r"url\((?!#)", html) is None
    assert "@import" not in html
    policy = next(value for _, name, value in reader.attributes if name == "content" and "default-src" in value)
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_it_shows_the_results_the_episodes_and_the_predictions() -> None:
    text = " ".join(read(page()).text.split())
    for part in ("50.0 %", "60.0 %", "+10.0", "before RL", "phase 2", "split-plain", "site-plain", "loss-plain",
                 "stage-plain", "solved", "not solved", "no verdict", "0.25", "ended by exit", "ended by infra/plain",
                 "does not parse", "told:", "what it read"):  # fmt: skip
        assert part in text, part


def test_the_rollouts_success_is_told_once_and_as_that_of_training() -> None:
    group = GroupResult(0.375, 16, 0.2, 0.6)
    result = SplitResult(0.5, 10, 0.3, 0.7)
    html = render(
        Report("r", (), (PhaseSummary(1, {"test": result, "test_templates": result}, group),), EpisodeCounts())
    )
    assert html.count("37.5 %") == 1
    told = html[html.index("Training rollouts and replay") :]
    assert re.findall(r"<th>([^<]*)</th>", told)[:3] == ["phase", "rollouts judged", "success, sampled"]
    assert re.findall(r"<td>([^<]*)<", told)[:3] == ["1", "16", "37.5 %"]


def test_the_numbers_that_say_whether_it_learns_come_first_and_none_is_left_out() -> None:
    losses = {"actor.loss": 0.1, "actor.updates": 40.0, "value.auc": 0.8, "actor.ratio.asked.p05": -1.0}
    assert loss_names([PhaseSummary(1, losses=losses)]) == (
        ["actor.loss", "value.auc"],
        ["actor.updates", "actor.ratio.asked.p05"],
    )


def test_all_other_numbers_are_a_table_with_a_column_for_each_phase() -> None:
    first, second = PhaseSummary(1, losses={"actor.updates": 40.0}), PhaseSummary(2, losses={"<b>": 1.5e-7})
    html = render(Report("r", (), (PhaseSummary(0), first, second), EpisodeCounts()))
    told = html[html.index("All other numbers of the learner (2)") :]
    rows = [re.findall(r"<t[dh]>([^<]*)</t[dh]>", row) for row in told[: told.index("</table>")].split("<tr>")[1:]]
    assert rows == [
        ["number", "phase 0", "phase 1", "phase 2"],
        ["actor.updates", "–", "40", "–"],
        ["&lt;b&gt;", "–", "–", "1.5e-07"],
    ]


def test_predictions_outside_the_unit_interval_do_not_break_the_bar() -> None:
    html = page()
    assert "width: 100.0%" in html
    assert "1.50" in html


def test_light_and_dark_share_one_drawing() -> None:
    html = page()
    assert "prefers-color-scheme: dark" in html
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", html))
    light, dark = re.findall(r":root \{(.*?)\}", html, flags=re.DOTALL)
    for theme in (light, dark):
        assert used <= set(re.findall(r"(--[a-z0-9-]+):", theme))
    assert "#0101" not in html
    assert "#0303" not in html


def test_a_run_that_has_not_measured_anything_still_has_a_page() -> None:
    html = render(Report("empty", (), (), EpisodeCounts()))
    assert "Nothing was evaluated yet." in html
    assert "<svg" not in html
    half = render(Report("half", (), (PhaseSummary(0), *phases(count=1)), EpisodeCounts()))
    assert "split-test" in half


def test_the_page_tells_of_the_potential_beside_the_clock_where_there_is_one() -> None:
    numbers = {"mechanism.auc_steps": 0.812, "mechanism.auc_steps_clock": 0.731,
               "mechanism.positive_share_of_failures": 0.694}  # fmt: skip
    html = render(Report("r", (), (PhaseSummary(0), PhaseSummary(1, losses=numbers)), EpisodeCounts()))
    assert "Does the potential do what it is for?" in html
    row = html[html.index("rises where a failure reaches a milestone") :]
    assert re.findall(r"<td>([^<]*)</td>", row)[:2] == ["–", "0.81"]
    assert "0.69" in html
    without = render(Report("r", (), (PhaseSummary(1, losses={"actor.ratio.r2": 0.5}),), EpisodeCounts()))
    assert "Does the potential do what it is for?" not in without


def test_splits_without_a_verdict_are_drawn_without_a_line() -> None:
    nothing = PhaseSummary(0, {"test": SplitResult(None, 0, 0.0, 1.0)})
    html = render(Report("r", (), (nothing,), EpisodeCounts()))
    assert "–" in html


def test_each_site_has_a_panel_of_its_own_with_every_split() -> None:
    group = GroupResult(0.5, 10, 0.4, 0.6)
    sites = {name: group for name in ("admin", "code", "forum", "shop")}
    known, unseen = SplitResult(0.5, 40, 0.4, 0.6, sites), SplitResult(0.1, 10, 0.0, 0.2, {"shop": group})
    svg = ElementTree.fromstring(site_chart([PhaseSummary(n, {"known": known, "unseen": unseen}) for n in range(3)]))
    words = [text for text in ("".join(e.itertext()).strip() for e in svg.iter() if e.tag.endswith("text")) if text]
    assert sorted(word for word in words if word.isalpha()) == sorted([*sites, "known", "unseen"])
    bands = [e for e in svg.iter() if e.attrib.get("id", "").startswith("FillBetween")]
    assert len(bands) == len(sites) + 1


@pytest.mark.parametrize("draw", [success_chart, site_chart])
def test_a_single_evaluation_has_no_ticks_between_phases(draw: Callable[[Sequence[PhaseSummary]], str]) -> None:
    svg = ElementTree.fromstring(draw(phases()[2:]))
    words = {text for e in svg.iter() if e.tag.endswith("text") and (text := "".join(e.itertext()).strip())}
    assert {word for word in words if re.fullmatch(r"[\d.]+", word)} == {"2"}


@pytest.mark.parametrize("draw", [success_chart, site_chart, lambda p: loss_chart(p, [*p[-1].losses]), time_chart])
def test_charts_are_well_formed_repeatable_and_take_any_name(draw: object) -> None:
    assert callable(draw)
    data = phases("<b>&$x_1$")
    svg = draw(data)
    assert svg == draw(data)
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.attrib["role"] == "img"
    assert "<b>" not in svg


def test_predictions_must_fit_the_steps() -> None:
    with pytest.raises(ValueError, match="expected 2 answers of the potential critic, found 1"):
        EpisodeView.of(episode(), critics={"potential": (0.5,)})


def test_only_pictures_become_pictures() -> None:
    assert data_uri(png()).startswith("data:image/png;base64,iVBOR")
    assert data_uri(b"\xff\xd8\xff\xe0").startswith("data:image/jpeg;")
    with pytest.raises(ValueError, match="expected a PNG or JPEG"):
        data_uri(b"<svg onload=alert(1)>")
