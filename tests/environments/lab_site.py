"""A site for tests: pages with every kind of control, scripts, dialogs, tabs, frames and faults."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from records.episodes import Task
from sites.app import create_app
from sites.site import Site, State

SECRET = "lab-secret"

FORM = """<!doctype html><title>Form</title><h1>A <i>form</i></h1>
<form action="/echo" method="{method}">
<label for="who">Who</label> <input id="who" name="who" value="me">
<label>Mail <input name="mail" type="email"></label>
<label>Count <input name="count" type="number" min="1" max="5" value="2"></label>
<input type="password" name="secret" aria-label="Secret">
<textarea name="text" placeholder="Say it" maxlength="20">
first
second</textarea>
<label for="size">Size</label><select id="size" name="size"><option>Small<option selected value="m">Medium size
<option value="l" label="Large">x</select>
<input type="checkbox" id="gift" name="gift"><label for="gift">Gift wrap</label>
<fieldset><legend>Pay</legend><label><input type="radio" name="pay" value="card" checked>Card</label>
<label><input type="radio" name="pay" value="cash">Cash</label></fieldset>
<input name="fixed" value="same" readonly title="Fixed"> <button type="button" disabled>Later</button>
<input type="hidden" name="token" value="t1"><button type="reset">Clear</button>
<button name="go" value="1">Send</button></form><a href="/">Start</a>"""

PAGES = {
    "/": """<!doctype html><title>Lab</title><body><nav><a href="/form">Form</a> <a href="/table">Table</a>
<a href="/post">Post</a> <a href="/scripts">Scripts</a> <a href="/new" target="_blank">New tab</a>
<a href="http://evil.example/">Away</a> <a href="/away">Hidden way out</a> <a href="#part">Part</a></nav>
<p>Plain <b>bold</b>text &amp; more&nbsp;space</p><p hidden>never</p><p style="display: none">nor this</p>
<details><summary>More</summary>Folded <a href="/table">inside</a></details>
<p>Before <a href="/new"><img alt="picture" src="data:,"> <span>of it</span></a> after</p>
<form action="/search"><input type="search" name="q" aria-label="Search"></form><h2 id="part">Part</h2>""",
    "/table": """<!doctype html><title>Table</title><table><caption>Orders</caption><thead><tr><th>Name<th>Price</thead>
<tr><td><p>Mug</p><td>$3<td><a href="/">Buy Mug</a><td>left<td>right<tr><td><td>only</table>
<dl><dt>Colour</dt><dd>Red</dd><dt>Weight<dd>2 kg</dl><ul><li>one<li>two <a href="/form">three</a></ul>line<br>break""",
    "/new": "<!doctype html><title>New</title><h1>New page</h1><a href='/'>Start</a>",
    "/post": FORM.format(method="post"),
    "/form": FORM.format(method="get"),
    "/input": """<!doctype html><title>Input</title><style>
#menu { display: none } #over:hover + #menu { display: block }
.under { position: relative; width: 9em } .lid { position: absolute; inset: 0; background: #fff }
.away { position: absolute; left: -9999px } .untouched { pointer-events: none }</style>
<button id="press">Press</button><input id="field" aria-label="Field" value="old">
<input aria-label="Digits" type="number">
<button id="over">Over</button><p id="menu">Menu <a href="/new">Deep</a></p>
<div class="under"><button>Below</button><div class="lid" role="dialog" aria-label="Cookies">Take <b>all</b></div></div>
<a class="away" href="/new">Beyond</a><label class="away">Box beyond<input type="checkbox"></label>
<input type="checkbox" class="untouched" aria-label="Tick me">
<form action="/new"><input type="submit" class="untouched" value="Skip"></form>
<button onclick="">Dead</button><button onclick="window.open('/closing')">Open</button>
<button onclick="file.click()">Attach</button>
<button onclick="Object.assign(document.createElement('input'), {type: 'file'}).click()">Attach anew</button>
<input id="file" type="file" style="display: none" aria-label="File">
<button id="keyed">Keyed</button><div style="height: 3000px"></div><button id="low">Low</button><ol id="log"></ol>
<script>
const note = text => { log.append(Object.assign(document.createElement('li'), {textContent: text})); };
for (const type of ['mousedown', 'click', 'contextmenu']) for (const button of [press, low])
  button.addEventListener(type, e => note(`${e.type} ${e.isTrusted} ${button.id}`));
for (const type of ['keydown', 'beforeinput', 'input', 'keyup', 'change'])
  field.addEventListener(type, e => note(`${e.type} ${e.isTrusted} ${e.key ?? e.data ?? ''}`));
keyed.addEventListener('keydown', e => note(`${e.key} ${e.isTrusted}`));</script>""",
    "/files": """<!doctype html><title>Files</title><a href="/new" download>Save</a> <a href="/report.csv">Report</a>
<button onclick="prompt('Your name?', 'me'); confirm('Sure?')">Ask twice</button>
<button onclick="window.onbeforeunload = e => e.preventDefault()">Hold</button><a href="/new">Leave</a>
<a href="/new" target="_blank">Beside</a>""",
    "/subscribe": """<!doctype html><title>Subscribe</title>
<form action="/subscribed" method="post"><button>Send</button></form>""",
    "/closing": """<!doctype html><title>Closing</title><button onclick="window.close()">Close</button>""",
    "/icons": """<!doctype html><title>Icons</title><button aria-label="Close"><i class="x"></i></button>
<button title="Bold"></button><a href="/new"><img alt="Logo" src="data:,"></a>
<a href="/new" title="Feed"><svg></svg></a>
<button><svg viewBox="0 0 9 9"><title>Delete</title><path d="M0 0h9v9z"/></svg></button>
<button><svg aria-label="Share"></svg></button><input type="image" alt="Find" src="data:,">""",
    "/frames": """<!doctype html><title>Frames</title><p>Outside</p><iframe src="/inner" height="300"></iframe>
<iframe srcdoc="<style>body { padding: 9px }</style>
<button onclick='this.textContent = 9'>Written in</button>"></iframe>
<iframe src="http://evil.example/page" title="Advert"></iframe><iframe src="http://evil.example/" width="1" height="1">
</iframe><div id="host"></div><p>After</p><script>
host.attachShadow({mode: 'open'}).innerHTML =
'<p id="said">In the shadow</p><label>Dark <input></label><button aria-labelledby="said">x</button><slot></slot>';
host.shadowRoot.querySelector('button').addEventListener('click', e => { e.target.before(`trusted ${e.isTrusted}`); });
</script>""",
    "/late-frames": """<!doctype html><title>Late</title><iframe src="/slow"></iframe><iframe src="/hang"></iframe>
<iframe src="http://evil.example/page" title="Advert"></iframe><button>Outside</button>""",
    "/late-frame": """<!doctype html><title>Late</title><iframe src="/slow"></iframe><button>Outside</button>""",
    "/inner": """<!doctype html><title>Inner</title><body style="margin: 40px"><a href="/new">Leave frame</a>
<button onclick="fetch('/slow').then(r => r.text()).then(t => { this.after(t) })">Load</button>
<input aria-label="Inside" oninput="out.textContent = this.value"><b id="out"></b>""",
    "/scripts": """<!doctype html><title>Scripts</title>
<button onclick="document.title='Changed'; out.textContent='at once'">Now</button>
<button onclick="setTimeout(() => { out.textContent='after a while' }, 120)">Soon</button>
<button onclick="fetch('/slow').then(r => r.text()).then(t => { out.textContent = t })">Fetch</button>
<button onclick="ask('script', {src: '/slow.js'})">Script</button>
<button onclick="ask('link', {rel: 'modulepreload', href: '/slow.js', onload() { import('/slow.js') }})">Module</button>
<button onclick="out.textContent = confirm('Really?') ? 'confirmed' : 'refused'">Ask</button>
<button onclick="setTimeout(() => { location.href = '/new' }, 50)">Leave</button>
<button onclick="this.remove()">Vanish</button>
<button onclick="requestAnimationFrame(() => { out.textContent='drawn' })">
Draw</button><button onclick="history.pushState(null, '', '/scripts?view=2'); out.textContent='pushed'">Push</button>
<button onclick="fetch('http://other.example/').then(() => {out.textContent='reached'},
() => {out.textContent='blocked'})">
Reach</button><div id="card">A card</div><p id="out">nothing</p><div contenteditable aria-label="Note"></div>
<script>const ask = (tag, what) => { document.head.append(Object.assign(document.createElement(tag), what)); };
document.getElementById('card').addEventListener('click', () => { out.textContent = 'card' })</script>""",
}


async def _page(request: Request) -> Response:
    return HTMLResponse(PAGES[request.url.path], headers={"Cache-Control": "no-store"})


async def _echo(request: Request) -> Response:
    fields = (await request.form()).multi_items() if request.method == "POST" else request.query_params.multi_items()
    shown = "".join(f"<li>{name}={value!r}" for name, value in fields)
    return HTMLResponse(
        f"<!doctype html><title>Echo</title><h1>{request.method}</h1><ul>{shown}</ul><a href='/'>Start</a>"
    )


def _subscribed(request: Request) -> Response:
    """A page that opens a tab by itself, but not before the look at it is under way, however late that begins."""
    return HTMLResponse("""<!doctype html><title>Subscribed</title><h1>Thank you</h1><a href="/">Start</a><script>
(async () => {
  while (!window.__waymark.state.origins) await new Promise(resolve => { setTimeout(resolve, 5); });
  window.open('/new');
})();</script>""")


async def _slow(request: Request) -> Response:
    await asyncio.sleep(0.15)
    return HTMLResponse("fetched")


async def _slow_script(request: Request) -> Response:
    await asyncio.sleep(0.15)
    return Response("document.getElementById('out').textContent = 'brought along'", media_type="text/javascript")


def _report(request: Request) -> Response:
    return Response("a,b", media_type="text/csv", headers={"Content-Disposition": "attachment; filename=report.csv"})


async def _broken(request: Request) -> Response:
    return HTMLResponse("<h1>broken</h1>", status_code=503)


async def _hang(request: Request) -> Response:
    await asyncio.sleep(30)
    return HTMLResponse("<h1>late</h1>")


def _away(request: Request) -> Response:
    return RedirectResponse("http://evil.example/", status_code=302)


LAB = Site(
    name="lab",
    routes=(
        *(Route(path, _page) for path in PAGES),
        Route("/echo", _echo, methods=["GET", "POST"]),
        Route("/search", _echo),
        Route("/subscribed", _subscribed, methods=["POST"]),
        Route("/slow", _slow),
        Route("/slow.js", _slow_script),
        Route("/report.csv", _report),
        Route("/broken", _broken),
        Route("/hang", _hang),
        Route("/away", _away),
    ),
    build=lambda seed: None,
    new_state=lambda data, login: State(),
)


def lab_app() -> Starlette:
    """The lab as an application."""
    return create_app(secret=SECRET, sites={"lab": LAB})


def lab_task(start: str = "/", **evaluation: object) -> Task:
    """A task on the lab that starts at ``start``; without arguments it asks for the start page's address."""
    default = {"eval_types": ["url_match"], "reference_url": "__LAB__/", "url_note": "EXACT", "reference_answers": None}
    return Task("lab.1", ("lab",), "look around", f"__LAB__{start}", evaluation or default, "lab")


def target(url: str, locator: str, contents: dict[str, object]) -> dict[str, object]:
    """One entry of ``program_html``."""
    return {"url": url, "locator": locator, "required_contents": contents}


@contextlib.contextmanager
def serving(app: Starlette) -> Iterator[int]:
    """Serve ``app`` from a thread of this process; yields the port."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(1000):
        if server.started:
            break
        thread.join(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(5)
