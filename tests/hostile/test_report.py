"""The report of a run whose episodes were written by an enemy: names, addresses, actions and pictures."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from analysis.report import EpisodeView, Report, StepView, pictures_in, render
from analysis.results import EpisodeCounts

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
HOSTILE = [
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" style="position:fixed',
    "</pre></details></main></body></html><iframe src=//evil.example>",
    "{{ 7 * 191 }}{% for x in [].__class__.__mro__ %}{% endfor %}",
    "]]><svg onload=alert(1)>",
    "--><style>body { display: none }</style>",
    "%s%n{0.__class__}\x00\u202e",
    "../../../etc/passwd",
]


class Page(HTMLParser):
    """What a browser would act on."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_about(text: str) -> Page:
    step = StepView(text, text, text, text, text, text, (True,), {text: 0.5, "value": 0.5}, PNG)
    view = EpisodeView(text, text, text, text, text, 1, "solved", text, text, text, (text,), (True,), (step,))
    return Page(render(Report(text, ((text, text),), (), EpisodeCounts(2, 1, {text: 1}), (view,), (text,))))


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_an_episode_says_the_page_has_the_same_elements(text: str) -> None:
    plain, hostile = page_about("plain"), page_about(text)
    assert hostile.tags == plain.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    assert hostile.text.count(text.replace("\x00", "\ufffd")) + hostile.text.count(text) >= 12


@pytest.mark.parametrize("text", HOSTILE)
def test_no_address_of_an_episode_becomes_a_link(text: str) -> None:
    for name, value in page_about(text).attributes:
        assert name not in {"href", "action", "srcdoc"}
        assert name != "src" or value.startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "e1/../../secret.png", "e1/link.png", "e1", "", "none\0"]
)
def test_a_name_that_leads_out_of_the_folder_has_no_picture(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "pictures"
    (folder / "e1").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "e1" / "link.png").symlink_to(tmp_path / "secret.png")
    assert pictures_in(folder)(name) is None


def test_a_picture_is_found_by_its_name_and_nothing_else_is_a_picture(tmp_path: Path) -> None:
    (tmp_path / "e1").mkdir()
    (tmp_path / "e1" / "00.png").write_bytes(PNG)
    (tmp_path / "e1" / "01.png").write_bytes(b"<svg onload=alert(1)>")
    assert pictures_in(tmp_path)("e1/00.png") == PNG
    assert pictures_in(tmp_path)("e1/01.png") is None
