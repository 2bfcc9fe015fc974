"""How pages are written down: hand-written pages against the lines an agent should see."""

import pytest

from environments.browser.settings import BrowserSettings
from environments.browserless.html_page import HtmlPage
from environments.interface.observation import inner_text, page_text, render, render_waymark
from environments.interface.snapshot import MAX_DEPTH, Node, Snapshot
from tests.environments.lab_site import FORM, PAGES

ALL = 100_000


def lines(html: str) -> list[str]:
    return render_waymark(HtmlPage(html, "http://x/").snapshot(), ALL).text.split("\n")


def test_text_links_and_hidden_parts() -> None:
    assert lines(PAGES["/"]) == [
        "@ Lab",
        "link Form 0",
        "link Table 1",
        "link Post 2",
        "link Scripts 3",
        "link New tab 4",
        "link Away 5",
        "link Hidden way out 6",
        "link Part 7",
        "Plain boldtext & more space",
        "button More 8",
        "Before",
        "link picture of it 9",
        "after",
        "searchbox Search 10",
        "# Part",
    ]


def test_form_controls_have_names_values_and_options() -> None:
    assert lines(FORM) == [
        "@ Form",
        "# A form",
        "textbox Who = me 0",
        "textbox Mail 1",
        "textbox Count = 2 2",
        "textbox Secret 3",
        "textbox Say it = first second 4",
        "select Size = Medium size (Small | Medium size | Large) 5",
        "checkbox Gift wrap 6",
        "Pay",
        "radio Card = checked 7",
        "radio Cash 8",
        "textbox Fixed = same 9",
        "button Later disabled",
        "button Clear 10",
        "button Send 11",
        "link Start 12",
    ]


def test_tables_lists_and_definitions() -> None:
    assert lines(PAGES["/table"]) == [
        "@ Table",
        "Orders",
        "Name | Price",
        "Mug | $3",
        "link Buy Mug 0",
        "left | right",
        "only",
        "Colour: Red",
        "Weight: 2 kg",
        "one",
        "two",
        "link three 1",
        "line",
        "break",
    ]


def test_page_text_holds_links_and_labels_but_no_values() -> None:
    text = page_text(HtmlPage(FORM, "http://x/").snapshot())
    assert text == "A form Who Mail Count Size Gift wrap Pay Card Cash Later Clear Send Start"


def test_a_password_is_not_shown() -> None:
    page = HtmlPage('<input type="password" value="hunter2" aria-label="Secret">', "http://x/")
    rendered = render_waymark(page.snapshot(), ALL)
    assert rendered.text.split("\n")[1] == "textbox Secret = ******** 0"
    assert "hunter2" not in rendered.elements[0].value


def test_names_follow_the_order_of_the_rules() -> None:
    found = lines(
        '<b id="t">Told</b><button aria-label="Said" title="T">Own</button><button aria-labelledby="t">Own</button>'
        '<button title="T">Own</button><button title="T"></button><input placeholder="P" name="n"><input name="n">'
        '<input type="submit"><a href="/x"><img alt="Alt" src="data:,"></a><button></button>'
    )
    assert found[2:] == [
        "button Said 0", "button Told 1", "button Own 2", "button T 3", "textbox P 4", "textbox n 5", "button Submit 6",
        "link Alt 7", "button 8",
    ]  # fmt: skip


def test_long_names_values_and_option_lists_are_cut() -> None:
    page = HtmlPage(
        f"<button>{'n' * 201}</button><input aria-label=v value={'w' * 200}>"
        f"<select aria-label=s>{''.join(f'<option>{i}' for i in range(50))}</select>",
        "http://x/",
    )
    rendered = render_waymark(page.snapshot(), ALL)
    _, button, rest, field, sampler = rendered.text.split("\n")
    assert (button, rest) == (f"button {'n' * 80} 0", "n" * 201)
    assert rendered.elements[0].name == "n" * 80
    assert field == f"textbox v = {'w' * 120}… 1"
    assert sampler.endswith("| 18 | 19 | …) 2")
    assert rendered.elements[1].value == "w" * 200
    assert len(rendered.elements[2].options) == 50


def test_no_text_is_lost_to_a_name() -> None:
    words = " ".join(f"word{i}" for i in range(20))
    called = f"<button aria-label='Open the card'>{words}</button>"
    page = HtmlPage(f"<a href=/>{words}</a><button aria-label=Buy>Buy now</button>{called}", "http://x/")
    assert len(words) > 80
    assert render_waymark(page.snapshot(), ALL).text.split("\n")[1:] == [
        f"link {words} 0", "button Buy 1", "button Open the card 2", words,
    ]  # fmt: skip
    assert render_waymark(page.snapshot(), ALL).elements[0].name == words[:80].rstrip()


def test_what_is_for_eyes_only_names_nothing_that_has_other_words() -> None:
    page = HtmlPage(
        "<button><i aria-hidden=true>menu</i>Menu</button><button><i aria-hidden=true>close</i></button>", "http://x/"
    )
    assert render_waymark(page.snapshot(), ALL).text.split("\n")[1:] == ["button Menu 0", "button close 1"]


def test_a_label_keeps_the_text_of_its_links() -> None:
    page = HtmlPage("<label><input type=checkbox> I accept the <a href=/terms>terms</a></label>", "http://x/")
    assert render_waymark(page.snapshot(), ALL).text.split("\n")[1:] == [
        "checkbox I accept the terms 0",
        "link terms 1",
    ]


def test_a_long_page_is_cut_at_a_line_and_says_so() -> None:
    page = HtmlPage("".join(f"<p><a href=/{i}>item {i}</a></p>" for i in range(100)), "http://x/")
    rendered = render_waymark(page.snapshot(), 200)
    shown = rendered.text.split("\n")
    assert len(rendered.text) < 230
    assert shown[-1] == f"… {100 - len(rendered.elements)} more lines"
    assert shown[-2] == f"link item {len(rendered.elements) - 1} {len(rendered.elements) - 1}"
    assert len(rendered.targets) == len(rendered.elements)


def test_long_texts_of_a_long_page_are_shortened_before_a_line_goes() -> None:
    page = HtmlPage(f"<p>{'word ' * 100}</p><a href=/>{'n' * 79}</a><p>short</p>", "http://x/")
    whole = render_waymark(page.snapshot(), 700).text.split("\n")
    assert whole[1] == ("word " * 100).strip()
    tight = render_waymark(page.snapshot(), 400).text.split("\n")
    assert tight == ["@", f"{('word ' * 40).strip()}…", whole[2], "short"]
    tighter = render_waymark(page.snapshot(), 250)
    assert tighter.text.split("\n") == [*tight[:2], "… 2 more lines"]
    assert tighter.elements == ()


def test_several_tabs_are_listed() -> None:
    snapshot = Snapshot("http://x/", "Here", Node("body"), tabs=("Here", "There"), tab=1)
    assert render_waymark(snapshot, ALL).text == "@ Here\ntabs 0 Here | 1 There (current)"


def test_deep_pages_are_read() -> None:
    depth = MAX_DEPTH * 2
    found = lines(f"{'<div>' * depth}<a href=/>deep</a>{'</div>' * depth}<p>end</p>")
    assert found[-2:] == ["link deep 0", "end"]


def test_inner_text_has_a_line_per_block() -> None:
    page = HtmlPage(PAGES["/table"], "http://x/")
    assert inner_text(page.node_of(page.root.find(".//ul"))) == "one\ntwo three"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="observation_format must be 'waymark' or 'webrl', found 'html'"):
        render(Snapshot("http://x/", "", Node("body")), BrowserSettings(observation_format="html"))
