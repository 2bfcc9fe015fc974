"""Pages that move: what a browser shows of them in the end depends on frames.

Owns ``PAGES`` and how they are served. Each is a page in small of what applications do: dialogues and drawers that fade
and slide, lists that load as they are scrolled, parts that are measured, told of, counted in frames.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from environments.browser.environment import BrowserEnvironment
from records.environment import Action, Observation
from records.episodes import Task

GO = "<button id=go>Go</button>"
PRESS, SCROLL, BOTH = "press", "scroll", "scroll, then press"
TALL = "<div style='height:3000px'>tall</div>"
STILL = "a page that stands still"
_FRAME_S = 0.2
"""The first frame comes within this time where frames are drawn; it tells observers how a page begins."""
_PAGE = "<!doctype html><title>Frames</title><style>{style}</style>{body}<p id=out></p><script>{script}</script>"
_RULE = {"eval_types": ["url_match"], "reference_url": "__LAB__/", "url_note": "EXACT", "reference_answers": None}

PAGES = {
    STILL: (PRESS, "", GO + "<div id=m>a</div>", "go.onclick = () => { m.textContent = 'b' }"),
    "a dialogue that fades in": (
        PRESS,
        "#m { visibility: hidden; opacity: 0; transition: opacity 300ms, visibility 300ms } "
        "#m.on { visibility: visible; opacity: 1 }",
        GO + "<div id=m><h2>Sure?</h2><button>Yes</button></div>",
        "go.onclick = () => { m.className = 'on' }",
    ),
    "one that fades out": (
        PRESS,
        "#m { transition: opacity 300ms, visibility 300ms } #m.off { visibility: hidden; opacity: 0 }",
        GO + "<div id=m><h2>Sure?</h2><button>Yes</button></div>",
        "go.onclick = () => { m.className = 'off' }; m.ontransitionend = () => { m.hidden = true }",
    ),
    "a modal dialogue that leaves by an animation": (
        PRESS,
        "@keyframes out { to { opacity: 0 } } dialog.closing { animation: out 250ms forwards }",
        "<dialog id=m><button id=go>Go</button></dialog><p>Behind</p>",
        "m.showModal(); go.onclick = () => { m.className = 'closing'; m.onanimationend = () => m.close() }",
    ),
    "a popover that starts from nothing": (
        PRESS,
        "#m { transition: opacity 200ms, display 200ms allow-discrete; opacity: 0 } #m:popover-open { opacity: 1 } "
        "@starting-style { #m:popover-open { opacity: 0 } }",
        GO + "<div id=m popover><button>Inside</button></div>",
        "go.onclick = () => m.showPopover()",
    ),
    "a drawer from beyond the edge": (
        PRESS,
        "#m { position: fixed; left: 0; top: 60px; width: 200px; transform: translateX(-210px); "
        "transition: transform 300ms } #m.on { transform: none }",
        GO + "<nav id=m><a href='/x'>Home</a></nav>",
        "go.onclick = () => { m.className = 'on' }",
    ),
    "a section that unfolds": (
        PRESS,
        "#m { max-height: 0; overflow: hidden; transition: max-height 400ms } #m.on { max-height: 300px }",
        GO + "<div id=m><button>Folded</button></div>",
        "go.onclick = () => { m.className = 'on' }",
    ),
    "a message that goes": (
        PRESS,
        "#m { transition: opacity 200ms 100ms } #m.off { opacity: 0 }",
        GO + "<div id=m hidden>Saved</div>",
        "m.ontransitionend = () => m.remove();"
        "go.onclick = () => { m.hidden = false; m.offsetTop; m.className = 'off' }",
    ),
    "a skeleton that is counted in frames": (
        PRESS,
        "",
        GO + "<div id=m>...</div>",
        "let n = 0; const more = () => { "
        "m.textContent = ++n < 12 ? '...' : 'Loaded'; if (n < 12) requestAnimationFrame(more) };"
        "go.onclick = () => requestAnimationFrame(more)",
    ),
    "a spinner that never ends beside what comes": (
        PRESS,
        "@keyframes turn { to { rotate: 360deg } } #m { animation: turn 1s infinite }",
        GO + "<div id=m>busy</div>",
        "go.onclick = () => setTimeout(() => { out.textContent = 'there' }, 80)",
    ),
    "slides that move on": (
        PRESS,
        "#m { width: 200px; overflow: hidden } #r { display: flex; width: 400px; transition: transform 300ms } "
        "#r.on { transform: translateX(-200px) } #r > * { width: 200px }",
        GO + "<div id=m><div id=r><a href='/a'>First</a><a href='/b'>Second</a></div></div>",
        "go.onclick = () => { r.className = 'on' }; r.ontransitionend = () => { out.textContent = 'moved' }",
    ),
    "classes of a framework": (
        PRESS,
        ".e { opacity: 0 } .a { opacity: 1; transition: opacity 200ms }",
        GO + "<div id=m></div>",
        "const enter = () => { "
        "n.classList.add('a'); n.ontransitionend = () => { n.className = ''; out.textContent = 'entered' } };"
        "go.onclick = () => { m.innerHTML = '<b id=n class=e>New</b>'; "
        "requestAnimationFrame(() => requestAnimationFrame(enter)) }",
    ),
    "what is said of what is in sight": (
        PRESS,
        "",
        GO + "<div id=m>a</div>" + TALL + "<div id=n>b</div>",
        "const seen = new IntersectionObserver(all => { for (const e of all) out.textContent += "
        "`${e.target.id} ${e.isIntersecting} ${e.intersectionRatio} ` });"
        "go.onclick = () => { seen.observe(m); seen.observe(n) }",
    ),
    "half of it in sight": (
        PRESS,
        "#box { width: 100px; height: 100px; overflow: auto } #m { height: 80px; margin-top: 60px }",
        GO + "<div id=box><div id=m>a</div></div>",
        "const seen = new IntersectionObserver(all => { for (const e of all) out.textContent += "
        "`${e.isIntersecting} ${e.intersectionRatio} ${e.rootBounds.width} ` }, "
        "{root: box, rootMargin: '10% 0px 0px 0px', threshold: [0, 0.5, 1]});"
        "go.onclick = () => { seen.observe(m); setTimeout(() => { box.scrollTop = 30 }, 60) }",
    ),
    "a list that loads at its end": (
        SCROLL,
        "#m > p { height: 100px }",
        "<div id=m></div><div id=end style='height:1px'></div>",
        "let n = 0; const more = () => { "
        "for (let i = 0; i < 8; i += 1) m.insertAdjacentHTML('beforeend', `<p>row ${n++}</p>`) }; more();"
        "new IntersectionObserver(([e]) => { if (e.isIntersecting && n < 32) setTimeout(more, 20) }).observe(end)",
    ),
    "a size that changes": (
        PRESS,
        "#m { width: 100px; height: 20px; padding: 5px; border: 1px solid; box-sizing: border-box }",
        GO + "<div id=m>a</div>",
        "new ResizeObserver(all => { for (const {contentRect: r, borderBoxSize: [b]} of all) "
        "out.textContent += `${r.width} ${r.height} ${r.x} ${b.inlineSize} ` }).observe(m);"
        "go.onclick = () => { m.style.width = '160px' }",
    ),
    "sizes of boxes that are none": (
        PRESS,
        "",
        GO + "<span id=m>line</span><div id=n hidden>b</div>"
        "<svg width=90 height=40><rect id=r width=30 height=12 /></svg>",
        "const sized = new ResizeObserver(all => { for (const e of all) out.textContent += "
        "`${e.target.id} ${e.contentRect.width} ${e.contentRect.height} ` });"
        "for (const e of [m, n, r]) sized.observe(e);"
        "go.onclick = () => { n.hidden = false; n.style.width = '70px'; n.style.height = '30px' }",
    ),
    "who is told no more": (
        PRESS,
        "",
        GO + "<div id=m style='width:50px;height:9px'></div>",
        "const sized = new ResizeObserver(() => { out.textContent += 'sized ' }); sized.observe(m);"
        "go.onclick = () => { sized.disconnect(); m.style.width = '90px' }",
    ),
    "a page that is scrolled": (
        SCROLL,
        "",
        "<p id=top>top</p>" + TALL,
        "addEventListener('scroll', () => { out.textContent = scrollY > 100 ? 'below' : 'above' })",
    ),
    "a part that is scrolled": (
        PRESS,
        "#box { height: 60px; overflow: auto }",
        GO + "<div id=box>" + TALL + "</div>",
        "box.addEventListener('scroll', e => { out.textContent = `${e.target.id} ${e.bubbles} ${box.scrollTop}` });"
        "go.onclick = () => { box.scrollTop = 40 }",
    ),
    "what glides to its place": (
        PRESS,
        "html { scroll-behavior: smooth }",
        GO + TALL + "<div id=m>end</div>",
        "addEventListener('scrollend', () => { out.textContent = scrollY > 500 ? 'arrived' : 'not there' });"
        "go.onclick = () => m.scrollIntoView({behavior: 'smooth'})",
    ),
    "what moves after scrolling": (
        BOTH,
        "#go { position: fixed; top: 0 } #m { opacity: 0; transition: opacity 300ms } #m.on { opacity: 1 }",
        GO + TALL + "<div id=m>end</div>",
        "go.onclick = () => { m.className = 'on' }; m.ontransitionend = () => { out.textContent = 'faded in' };"
        "requestAnimationFrame(() => { m.title = 'begun' })",
    ),
    "what glides to an anchor": (
        PRESS,
        "html { scroll-behavior: smooth }",
        "<a href='#m' id=go>Go</a>" + TALL + "<div id=m>end</div>",
        "addEventListener('scroll', () => { if (scrollY > 500) out.textContent = 'arrived' })",
    ),
    "a change of view": (
        PRESS,
        "",
        GO + "<div id=m>old</div>",
        "go.onclick = () => { const change = () => { m.textContent = 'new' }; "
        "document.startViewTransition ? document.startViewTransition(change) : change() }",
    ),
}  # fmt: skip
"""By name: what is done, styles, body and script."""


def written(folder: Path) -> None:
    """Write the pages to ``folder``, from which they are served."""
    for number, (_, style, body, script) in enumerate(PAGES.values()):
        (folder / f"{number}.html").write_text(_PAGE.format(style=style, body=body, script=script), encoding="utf-8")


async def opened(env: BrowserEnvironment, name: str) -> tuple[Observation, Action]:
    """Open a page, scroll it where that comes first; return what it shows and the action to watch."""
    kind, start = PAGES[name][0], f"__LAB__/{list(PAGES).index(name)}.html"
    seen = await env.reset(Task("moving.1", ("lab",), "look", start, _RULE, "lab"))
    await asyncio.sleep(_FRAME_S)
    if kind == BOTH:
        seen = await env.step(Action("scroll_down"))
    if kind == SCROLL:
        return seen, Action("scroll_down")
    return seen, Action("click", element_id=seen.find("Go").element_id)
