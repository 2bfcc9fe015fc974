"""What a person could use is offered whatever a page is made of, is told apart, and no text is lost to it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.embedded.sessions import SiteEndpoint
from records.environment import Action, Observation
from sites.app import create_app
from tests.environments.lab_site import SECRET, serving
from tests.hostile.hostile_site import TRAP, trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

LONG = "all of this text is a good deal longer than eighty characters so that a name could not hold it all"
ROWS = "".join(f"<tr><td>Row {i}<td>value {i}<td>{LONG} {i}" for i in range(12))
SPOKEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0,0,0,0)"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
HEAR = (
    "for (const e of document.querySelectorAll('.heard')) e.addEventListener('click', () => { out.append('heard ') });"
)


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(create_app(secret=SECRET, sites={"lab": TRAP})) as port:
        yield SiteEndpoint(port, SECRET)


async def look(env: BrowserEnvironment, body: str, script: str = "") -> list[str]:
    """Return the lines of a page after its title."""
    return (await opened(env, body, script)).text.split("\n")[1:]


async def opened(env: BrowserEnvironment, body: str, script: str = "") -> Observation:
    page = f"<!doctype html><title>t</title>{body}<p id=out></p><script>{HEAR}{script}</script>"
    return await env.reset(trap_task(f"/html?html={quote(page)}"))


OFFERED = {
    "an anchor without an address that listens": ("<a class=heard>More</a>", ["link More 0"]),
    "an anchor with a pointer": ("<a style='cursor:pointer'>More</a>", ["link More 0"]),
    "an anchor alone": ("<a>More</a>", ["More"]),
    "a card": ("<div class=heard><h3>Title</h3><p>words</p></div>", ["clickable Title words 0"]),
    "a row with a control": (
        "<table><tr class=heard><td>Ann<td>4<td><button>Edit</button></table>", ["row Ann | 4 0", "button Edit 1"],
    ),
    "a button in a pointer": (
        "<div style='cursor:pointer' class=heard>Tab one<i class='icon-close heard' style='padding:9px'></i></div>",
        ["clickable Tab one 0", "clickable close 1"],
    ),
    "what is in a button already": ("<button class=heard><span class=heard>Save</span></button>", ["button Save 0"]),
    "a wrapper without words": (
        "<div class=heard><button>A</button><button>B</button></div>", ["button A 0", "button B 1"],
    ),
    "a cell of a grid of divisions": (
        "<div role=grid><div role=row class=heard><div role=gridcell>Ann</div><div role=gridcell>4</div></div></div>",
        ["row Ann | 4 0"],
    ),
    "a row that is not pressed": ("<div role=row><div role=cell>Ann</div><div role=cell>4</div></div>", ["Ann | 4"]),
    "a drawn button": ("<svg width=9 height=9 class=heard><title>Pin</title><rect /></svg>", ["clickable Pin 0"]),
    "a picture": ("<svg width=9 height=9><title>Pin</title><rect /></svg>", ["Pin"]),
    "words in a picture": ("<svg width=90 height=20><text y=15>March</text></svg>", ["March"]),
    "one in the order of the focus": ("<div tabindex=0>Panel</div>", ["clickable Panel 0"]),
    "one that is dragged": ("<div draggable=true>Card</div>", ["clickable Card 0"]),
    "a field in a frame that hears presses": (
        "<div class=heard style='padding:9px'><label for=f>Name</label><input id=f></div>",
        ["textbox Name 0"],
    ),
    "a field in what is pressed for something else": (
        "<div class=heard>Open <input aria-label=Note></div>",
        ["clickable Open 0", "textbox Note 1"],
    ),
    "a film": ("<video controls width=99 height=99 title=Trailer></video>", ["video Trailer = paused 0"]),
    "a film without controls": ("<video width=99 height=99 title=Trailer></video>", []),
}  # fmt: skip

NOT_OFFERED = {
    "inert": "<div inert><button>X</button></div>",
    "beyond the page": "<button style='position:absolute;left:-9999px'>X</button>",
    "cut off": "<div style='height:20px;overflow:hidden'><button style='margin-top:90px'>X</button></div>",
    "for a reader of screens only": f"<button style='{SPOKEN}'>X</button>",
    "a line that a column is made wider by": "<p class=heard style='width:5px;height:30px' title=X></p>",
    "of no size": "<button style='width:0;height:0;padding:0;border:0;overflow:hidden'>X</button>",
    "beside an open dialog": "<button>X</button><dialog id=d>Sure</dialog><script>d.showModal()</script>",
}  # fmt: skip

NAMED = {
    "a title": ("<button title=Settings></button>", "button Settings 0"),
    "an icon's class": ("<button><i class='fa fa-trash'></i></button>", "button trash 0"),
    "a drawing's source": ("<button><svg><use href='/icons.svg#icon-star'></use></svg></button>", "button icon star 0"),
    "a picture's file": ("<button><img src='/img/add-item.png?2' width=9 height=9></button>", "button add item 0"),
    "where a link leads": ("<a href='/users/ann'><i style='padding:9px'></i></a>", "link ann 0"),
    "its own class": ("<p onclick='1' class=player-next style='height:9px'></p>", "clickable player next 0"),
    "the head of its column": (
        "<table><tr class=heard><th>Item<input type=search><th>Price</table>",
        "searchbox Item 1",
    ),
    "the words before a slider": (
        "<div>Volume</div><div role=slider tabindex=0 aria-valuenow=3 style='height:9px'><i hidden>3</i></div>",
        "slider Volume = 3 0",
    ),
    "the text beside": ("<div><span>Age</span><div><input></div></div>", "textbox Age 0"),
}

STATES = {
    "pressed": ("<button aria-pressed=true>Bold</button>", "button Bold = pressed 0"),
    "not pressed": ("<button aria-pressed=false>Bold</button>", "button Bold 0"),
    "selected": ("<div role=tab aria-selected=true>One</div>", "tab One = selected 0"),
    "collapsed": ("<button aria-expanded=false>More</button>", "button More = collapsed 0"),
    "on by its class": ("<div class='heard toggle on'>Dark</div>", "clickable Dark = on 0"),
    "off by its class": ("<div class='heard toggle'>Dark</div>", "clickable Dark 0"),
    "partly": ("<div role=checkbox aria-checked=mixed>All</div>", "checkbox All = mixed 0"),
    "chosen": (
        "<div role=combobox aria-label=Size aria-expanded=false>Large</div>",
        "combobox Size = Large, collapsed 0",
    ),
}


@pytest.mark.parametrize("what", OFFERED)
async def test_what_can_be_used_is_offered(env: BrowserEnvironment, what: str) -> None:
    body, expected = OFFERED[what]
    assert await look(env, body) == expected


@pytest.mark.parametrize("what", NOT_OFFERED)
async def test_what_no_pointer_gets_to_is_not(env: BrowserEnvironment, what: str) -> None:
    seen = await opened(env, NOT_OFFERED[what])
    assert "X" not in [element.name for element in seen.elements]


@pytest.mark.parametrize("what", NAMED)
async def test_what_has_no_words_is_told_apart(env: BrowserEnvironment, what: str) -> None:
    body, expected = NAMED[what]
    assert expected in await look(env, body)


@pytest.mark.parametrize("what", STATES)
async def test_a_state_that_is_said_is_shown(env: BrowserEnvironment, what: str) -> None:
    body, expected = STATES[what]
    assert (await look(env, body))[0] == expected


async def test_a_table_that_listens_for_its_rows_offers_them(env: BrowserEnvironment) -> None:
    script = "table.addEventListener('click', e => { out.textContent = e.target.closest('tr').rowIndex })"
    seen = await opened(env, f"<table id=table>{ROWS}</table>", script)
    assert [element.role for element in seen.elements] == ["row"] * 12
    assert seen.text.split("\n")[4] == f"row Row 3 | value 3 | {LONG} 3 3"
    seen = await env.step(Action("click", element_id=3))
    assert seen.page_text.endswith(" 3")


ICON = "<i class=icon style='display:inline-block;width:16px;height:16px' title='{}'></i>"
BAR = "".join(ICON.format(name) for name in ("Bold", "Italic", "Link"))


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        (f"<div id=bar>{BAR}</div>", ["Bold", "Italic", "Link"]),
        (f"<div id=bar><p>{LONG}<button>More</button></p>{BAR}</div>", ["More", "Bold", "Italic", "Link"]),
        (f"<ul id=bar><li>Milk {ICON.format('Drop')}<li>Eggs</ul>", ["Milk", "Drop", "Eggs"]),
        (f"<div id=bar>{ICON.format('Bold')}</div>", ["Bold"]),
        (f"<div id=bar>Ann {ICON.format('a sign')}</div>", ["Ann"]),
        (f"<div id=bar><button>{BAR}</button></div>", ["Bold Italic Link"]),
        (f"<p>{LONG}</p>{BAR}", []),
    ],
    ids=["a bar", "a bar with words", "in a row", "one", "a sign beside words", "in a button", "nobody listens"],
)
async def test_icons_of_which_only_what_holds_them_hears_are_offered(
    env: BrowserEnvironment, body: str, offered: list[str]
) -> None:
    script = "document.getElementById('bar')?.addEventListener('click', e => { out.textContent = e.target.title })"
    seen = await opened(env, body, script)
    assert [element.name for element in seen.elements] == offered
    if "Italic" in offered:
        seen = await env.step(Action("click", element_id=offered.index("Italic")))
        assert seen.text.endswith("Italic")


async def test_the_words_of_a_long_card_follow_it(env: BrowserEnvironment) -> None:
    lines = await look(env, f"<article class=heard><h3>Heading</h3><p>{LONG}</p><p>{LONG}</p></article>")
    assert lines == [f"clickable {f'Heading {LONG}'[:80].rstrip()} 0", "# Heading", LONG, LONG]


async def test_what_react_svelte_and_jquery_keep_for_themselves_is_known(env: BrowserEnvironment) -> None:
    script = """a['__reactProps$x1'] = {onClick() {}}; b.__click = () => {};
      window.jQuery = {_data: one => one === document ? {click: [{selector: '.mine'}]} : undefined};"""
    body = "<div id=a>React</div><div id=b>Svelte</div><div class=mine>jQuery</div><p>Nothing</p>"
    assert await look(env, body, script) == [
        "clickable React 0",
        "clickable Svelte 1",
        "clickable jQuery 2",
        "Nothing",
    ]


async def test_a_part_of_a_picture_can_be_pressed(env: BrowserEnvironment) -> None:
    body = (
        f"<img usemap='#m' width=100 height=50 src='{PIXEL}'><map name=m>"
        "<area shape=rect coords='0,0,50,50' href='#left' alt=Left>"
        "<area shape=rect coords='50,0,100,50' href='#right' alt=Right></map>"
    )
    seen = await opened(env, body)
    assert seen.text.split("\n")[1:] == ["link Left 0", "link Right 1"]
    seen = await env.step(Action("click", element_id=1))
    assert seen.url.endswith("#right")


async def test_what_is_written_in_the_page_is_a_value(env: BrowserEnvironment) -> None:
    seen = await opened(env, "<div contenteditable role=textbox aria-label=Memo>Old <b>memo</b></div>")
    assert seen.text.split("\n")[1] == "textbox Memo = Old memo 0"
    seen = await env.step(Action("type", "A new one", 0))
    assert seen.elements[0].value == "A new one"


async def test_an_editor_over_a_field_that_does_not_show_is_written_into(env: BrowserEnvironment) -> None:
    """As CodeMirror, Ace and Monaco are made: keys go to a field of no size, the text is drawn beside it."""
    body = """<div id=editor class=code style='width:300px;height:60px'><div style='width:0;height:0;overflow:hidden'>
      <textarea id=sink></textarea></div><div class=gutter>1</div><div id=drawn>old text</div></div>"""
    script = """let all = false;
      sink.onkeydown = e => { if (e.key === 'a' && (e.ctrlKey || e.metaKey)) all = true; };
      sink.oninput = () => {
        drawn.textContent = (all ? '' : drawn.textContent) + sink.value; all = false; sink.value = ''; };"""
    seen = await opened(env, body, script)
    assert seen.text.split("\n")[1] == "textbox editor = old text 0"
    seen = await env.step(Action("type", "let x = 1", 0))
    assert seen.elements[0].value == "let x = 1"


COMPONENTS = """
const make = (name, html) => customElements.define(name, class extends HTMLElement {
  connectedCallback() {
    this.attachShadow({mode: 'open'}).innerHTML = html.replace('LABEL', this.getAttribute('label'));
  }
});
make('x-field', '<label for=input>LABEL</label><input id=input>');
make('x-button', '<button><slot></slot></button>');
make('x-tab', '<div style="cursor:pointer"><slot></slot></div>');
make('x-menu', '<slot name=trigger></slot>');
for (const menu of document.querySelectorAll('x-menu')) {
  menu.shadowRoot.querySelector('slot').addEventListener('click', () => { out.textContent += 'opened ' });
}
"""


async def test_a_label_names_the_field_of_its_own_component(env: BrowserEnvironment) -> None:
    body = "<x-field label=Name></x-field><x-field label=City></x-field><label for=input>Far</label><input id=input>"
    assert await look(env, body, COMPONENTS) == ["textbox Name 0", "textbox City 1", "textbox Far 2"]


async def test_what_a_component_is_made_of_is_offered_once(env: BrowserEnvironment) -> None:
    body = "<x-tab role=tab tabindex=0>Alpha</x-tab><x-menu><x-button slot=trigger>Menu</x-button></x-menu>"
    seen = await opened(env, body, COMPONENTS)
    assert seen.text.split("\n")[1:] == ["tab Alpha 0", "button Menu 1"]
    seen = await env.step(Action("click", element_id=1))
    assert "opened" in seen.text.split("\n")


async def test_a_field_that_only_keeps_a_components_value_is_not_offered(env: BrowserEnvironment) -> None:
    kept = "<input style='position:absolute;left:0;top:0;width:90px;opacity:0' aria-hidden=true tabindex=-1>"
    body = f"<div style='position:relative'><input role=combobox aria-label=Fruit>{kept}</div>"
    assert await look(env, body) == ["textbox Fruit 0"]


async def test_a_button_tells_the_state_that_only_its_class_names(env: BrowserEnvironment) -> None:
    body = "<button class='v-btn v-btn--active'>Left</button><button class='v-btn'>Right</button>"
    assert await look(env, body) == ["button Left = active 0", "button Right 1"]
