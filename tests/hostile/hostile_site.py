"""A site whose pages mean harm: they hang, flood, tamper with the page script, or try to get out.

Each page loads as a calm one with a button ``Go`` where its harm waits for a click; ``/load/…`` pages do it at once.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from records.episodes import Task
from sites.site import Site, State

CALM = (
    "<!doctype html><title>Calm</title><h1>Calm</h1><button onclick=\"out.textContent = 'done'\">Go</button><p id=out>"
)

HANGING = {
    "load": "for (;;) {}",
    "parsed": "addEventListener('DOMContentLoaded', () => { for (;;) {} })",
    "timer": "setTimeout(() => { for (;;) {} }, 30)",
    "microtasks": "const again = () => Promise.resolve().then(again); again()",
    "resize": (
        "new MutationObserver(() => { document.body.append('x') }).observe(document, {childList: "
        "true, subtree: true});addEventListener('load', () => document.body.append('x'))"
    ),
    "unload": (
        "addEventListener('beforeunload', () => { for (;;) {} }); addEventListener('pagehide', () => { for (;;) {} })"
    ),
    "worker": "for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob(['for (;;) {}'])))",
    "synchronous": "const r = new XMLHttpRequest(); r.open('GET', '/slow', false); r.send()",
    "getter": "Object.defineProperty(document, 'title', {get() { for (;;) {} }})",
}
"""Scripts that never let go, by when they start; each is tried at load and behind a click."""

FLOODING = {
    "elements": "document.body.innerHTML += '<p>word <a href=/calm>link</a>'.repeat(50000)",
    "text": "document.body.append('ten bytes '.repeat(1e6))",
    "attribute": "Go.setAttribute('aria-label', 'label '.repeat(2e6))",
    "title": "document.title = 'title '.repeat(2e6)",
    "option": ("document.body.innerHTML += `<select aria-label=List>${'<option>choice'.repeat(50000)}</select>`"),
    "longoption": ("document.body.innerHTML += `<select aria-label=List><option>${'choice '.repeat(4e5)}</select>`"),
    "value": (
        "document.body.innerHTML += '<textarea aria-label=Text></textarea>';document.querySelector('t"
        "extarea').value = 'value '.repeat(1e6)"
    ),
    "labelledby": (
        "document.body.innerHTML += `<p id=l>${'x '.repeat(1e5)}</p><a href=/ aria-labelledby='${'l "
        "'.repeat(500)}'>y</a>`"
    ),
    "address": "history.replaceState(0, '', '/calm?' + 'a'.repeat(1.5e6))",
    "deep": (
        "let at = document.body; for (let i = 0; i < 20000; i++) at = "
        "at.appendChild(document.createElement('div'));at.textContent = 'deepest'"
    ),
    "deeplater": (
        "setTimeout(() => { let at = document.body; for (let i = 0; i < 20000; i++) at = "
        "at.appendChild(document.createElement('div'));at.textContent = 'deepest' }, 100)"
    ),
    "texts": "for (let i = 0; i < 300000; i++) document.body.append('x ')",
    "deepinline": (
        "let at = document.body; for (let i = 0; i < 20000; i++) at = "
        "at.appendChild(document.createElement('b'));at.textContent = 'deepest'"
    ),
    "frames": "document.body.innerHTML += '<iframe srcdoc=hi></iframe>'.repeat(2000)",
    "nested": (
        "const nest = (d, n) => { const f = d.body.appendChild(d.createElement('iframe'));if (n) "
        "nest(f.contentDocument, n - 1) }; nest(document, 60)"
    ),
    "console": "for (let i = 0; i < 100000; i++) console.log('x'.repeat(1000), {i})",
    "errors": "for (let i = 0; i < 50000; i++) setTimeout(() => { throw new Error('e'.repeat(1000)) })",
    "dialogs": "for (;;) alert('again')",
    "confirms": "while (confirm('again'));",
    "prompts": "while (prompt('again', 'x') !== null);",
    "manydialogs": "for (let i = 0; i < 2e6; i++) alert('again' + i)",
    "popups": "for (let i = 0; i < 40; i++) open('/calm?' + i)",
    "blankpopups": "for (let i = 0; i < 300; i++) open('about:blank')",
    "popupclicks": (
        "const a = Object.assign(document.createElement('a'), {href: '/calm', target: '_blank', rel: "
        "'noopener'});document.body.append(a); for (let i = 0; i < 40; i++) a.click()"
    ),
    "popuptimer": "setInterval(() => open('/calm'), 5)",
    "popupchain": "open('/load/popupchain')",
    "write": "for (;;) document.write('<p>more '.repeat(1000))",
    "append": (
        "const more = () => { for (let i = 0; i < 1000; i++) "
        "document.body.append(document.createElement('p'));setTimeout(more) }; more()"
    ),
    "heap": "const kept = []; for (;;) kept.push(new Array(1e5).fill(Math.random()))",
    "hoard": (
        "const kept = [], more = () => { if (kept.push(new Uint8Array(1 << 25).fill(1)) < 24) "
        "setTimeout(more, 20) }; more()"
    ),
    "buffers": "const kept = []; for (;;) kept.push(new Uint8Array(1 << 26).fill(1))",
    "reload": "location.reload()",
    "jump": "location.href = '/load/jump?' + Math.random()",
    "hashes": "setInterval(() => { location.hash = Math.random() }, 1)",
    "pushes": "setInterval(() => history.pushState(0, '', '?' + Math.random()), 1)",
    "history": "for (let i = 0; i < 500; i++) history.pushState({x: 'x'.repeat(1e5)}, '', '?' + i)",
    "travels": (
        "for (let i = 0; i < 40; i++) history.pushState(0, '', '?' + i);for (const by of [-9, 7, -1, 1]) "
        "setInterval(() => history.go(by), 2)"
    ),
    "reloads": "setInterval(() => { location.reload(); history.pushState(0, '', '?'); history.back() }, 1)",
    "unloads": (
        "for (const type of ['beforeunload', 'pagehide', 'unload']) addEventListener(type, () => { "
        "history.go(0); location.href = '/calm?' + Math.random() });setInterval(() => history.go(0), 5)"
    ),
    "redirects": "location.href = '/redirect/0'",
    "refresh": "location.href = '/refresh'",
    "requests": "for (let i = 0; i < 2000; i++) fetch('/calm?' + i)",
    "polling": "setInterval(() => fetch('/calm'), 1)",
    "timers": "const t = () => { setTimeout(t); setTimeout(t) }; setTimeout(t, 50)",
    "animation": "document.body.animate([{opacity: 0}, {opacity: 1}], {duration: 100, iterations: Infinity})",
    "downloads": (
        "for (let i = 0; i < 50; i++) { const a = document.createElement('a'); a.download = 'x' + "
        "i;a.href = URL.createObjectURL(new Blob(['x'])); a.click() }"
    ),
    "cookies": "for (let i = 0; i < 2000; i++) document.cookie = 'c' + i + '=' + 'x'.repeat(3000)",
    "storage": "for (let i = 0; i < 100; i++) try { localStorage['k' + i] = 'x'.repeat(1e5) } catch {}",
    "files": (
        "for (let i = 0; i < 100; i++) Object.assign(document.createElement('input'), {type: 'file'}).showPicker()"
    ),
    "printing": "for (let i = 0; i < 50; i++) print()",
    "fullscreen": "document.documentElement.requestFullscreen(); document.documentElement.requestPointerLock()",
    "closing": "close()",
    "crash": "location.href = 'chrome://crash'",
}
"""Scripts that give more than anyone can take."""

TAMPERING = {
    "stringify": "JSON.stringify = () => { throw new Error('no') }",
    "stringify_number": "JSON.stringify = () => 7",
    "stringify_garbage": "JSON.stringify = () => '{not json'",
    "stringify_list": "JSON.stringify = () => '[]'",
    "stringify_empty": "JSON.stringify = () => '{}'",
    "stringify_null": "JSON.stringify = () => 'null'",
    "stringify_nan": "JSON.stringify = () => 'NaN'",
    "stringify_deep": "JSON.stringify = () => '['.repeat(100000) + ']'.repeat(100000)",
    "stringify_huge": "JSON.stringify = () => '\"' + 'x'.repeat(3e8) + '\"'",
    "stringify_surrogate": 'JSON.stringify = v => \'{"code": "\\\\ud800", "navigating": false}\'',
    "stringify_digits": "JSON.stringify = () => '9'.repeat(100000)",
    "tojson": "Array.prototype.toJSON = () => 'gone'; Object.prototype.toJSON = () => 1",
    "tojson_strings": "String.prototype.toJSON = function () { return 7 }",
    "array": (
        "for (const name of Object.getOwnPropertyNames(Array.prototype)) if (name !== "
        "'constructor')Array.prototype[name] = () => { throw new Error(name) }"
    ),
    "iterator": "Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1 }",
    "setters": (
        "for (const name of ['code', 'detail', 'root', 'n', 'name', 'type', 'value', 'href', "
        "'feedback', '0', 'url'])Object.defineProperty(Object.prototype, name, {set(v) { throw new "
        "Error(name) }, get() { return {} }})"
    ),
    "defaults": (
        "Object.assign(Object.prototype, {code: 5, detail: [], n: 3, href: 1, mark: 'x', options: 7, input: 9})"
    ),
    "promise": "Promise = function () { throw new Error('no') }; ",
    "then": "Promise.prototype.then = function () { return new Promise(() => {}) }",
    "listeners": (
        "EventTarget.prototype.addEventListener = EventTarget.prototype.dispatchEvent = () => { throw new Error('no') }"
    ),
    "observer": "MutationObserver = function () { throw new Error('no') };",
    "elements": (
        "for (const name of ['getAttribute', 'getBoundingClientRect', 'matches', "
        "'getClientRects'])Element.prototype[name] = () => ({})"
    ),
    "names": ("Object.defineProperty(Element.prototype, 'localName', {get() { return {toString() { return 'p' }} }})"),
    "styles": "getComputedStyle = () => null",
    "channel": "MessageChannel = function () { return {port1: {}, port2: {postMessage() {}}} }",
    "title": "Object.defineProperty(document, 'title', {get() { return {a: 1} }})",
    "data": ("Object.defineProperty(CharacterData.prototype, 'data', {get() { return {replace: () => ({a: 1})} }})"),
    "clobber": (
        "document.body.innerHTML += '<form name=body><input name=innerText></form><img "
        "name=title><form name=activeElement>'"
    ),
    "waymark": "try { window.__waymark = {step: () => 'mine'} } catch {}; delete window.__waymark",
    "state": (
        "Object.assign(window.__waymark.state, {refs: null, feedback: 5, invalid: {}, origins: 7, code: {}, roots: 3})"
    ),
    "feedback": (
        "setInterval(() => { window.__waymark.state.feedback.push({code: 'nonsense', detail: {}}, null, 5) })"
    ),
    "muchfeedback": (
        "setInterval(() => { for (let i = 0; i < 1e4; i++) __waymark.state.feedback.push({code: "
        "'dialog', detail: 'x'}) })"
    ),
    "refs": "setInterval(() => { window.__waymark.state.refs = Array(9).fill(document.body) })",
    "frozen": "Object.freeze(window.__waymark.state)",
    "imitation": 'document.body.insertAdjacentText(\'beforeend\', \'{"code": "", "navigating": false}\')',
    "everything": (
        "for (const kind of [Object, Array, String, Promise, Element, Node, EventTarget, JSON, Math, "
        "Map, Set, URL, Number])for (const name of Object.getOwnPropertyNames(kind)) try { "
        "kind[name] = () => { throw 5 } } catch {}"
    ),
    "popup": (
        "const w = open('about:blank'); w.__waymark = {step: () => 'x'.repeat(4e8), begin: () => ({}), finish: () => 5}"
    ),
    "popup_reply": (
        "const w = open('about:blank'); w.__waymark = {step: () => JSON.stringify({navigating: "
        "false, code: 'zz',feedback: 3, url: 5, title: null, root: [1, 2], invalid: 'x', new_tab: 0, "
        "still: 9, status: '200', redirects: [], entry: {}})}"
    ),
    "popup_thenable": "const w = open('about:blank'); w.__waymark = {step: () => ({then() {}})}",
    "popup_navigating": "const w = open('about:blank'); w.__waymark = {step: () => '{\"navigating\": true}'}",
    "popup_tree": (
        "const w = open('about:blank'); const root = JSON.parse('['.repeat(900) + "
        "']'.repeat(900));w.__waymark = {step: () => JSON.stringify({navigating: false, code: '', "
        "detail: '', feedback: [], url: w.location.href,title: '', root, invalid: -1, new_tab: false, "
        "posted: false, still: true, status: 0, redirects: 0, entry: '', cut: false})}"
    ),
}
"""Scripts that get in the way of the page script or speak in its place."""

ALL = {"hang": HANGING, "flood": FLOODING, "tamper": TAMPERING}


def _trap(request: Request) -> Response:
    kind, name, when = (request.path_params[part] for part in ("kind", "name", "when"))
    script = ALL[kind][name]
    once = f"const harm = () => {{ {script} }};" + ("harm()" if when == "load" else "Go.onclick = harm")
    return HTMLResponse(
        f"<!doctype html><title>Trap</title><button id=Go>Go</button><p>text</p><script>{once}</script>"
    )


def _load(request: Request) -> Response:
    script = FLOODING[request.path_params["name"]]
    return HTMLResponse(f"<!doctype html><title>Again</title><button id=Go>Go</button><script>{script}</script>")


def _redirect(request: Request) -> Response:
    return RedirectResponse(f"/redirect/{request.path_params['number'] + 1}", status_code=302)


def _refresh(request: Request) -> Response:
    return HTMLResponse("<!doctype html><meta http-equiv=refresh content=0><title>Refresh</title>")


async def _slow(request: Request) -> Response:
    await asyncio.sleep(20)
    return HTMLResponse("late")


def _html(request: Request) -> Response:
    return HTMLResponse(request.query_params["html"])


TRAP = Site(
    name="lab",
    routes=(
        Route("/calm", lambda request: HTMLResponse(CALM)),
        Route("/trap/{kind}/{name}/{when}", _trap),
        Route("/load/{name}", _load),
        Route("/redirect/{number:int}", _redirect),
        Route("/refresh", _refresh),
        Route("/slow", _slow),
        Route("/html", _html),
        Route("/worker.js", lambda request: Response("", media_type="text/javascript")),
    ),
    build=lambda seed: None,
    new_state=lambda data, login: State(),
)


def trap_task(start: str = "/calm") -> Task:
    """A task that starts at ``start`` and is done when the start page is shown."""
    rule = {
        "eval_types": ["url_match"],
        "reference_url": "__LAB__/calm",
        "url_note": "EXACT",
        "reference_answers": None,
    }
    return Task("trap.1", ("lab",), "get by", f"__LAB__{start}", rule, "lab")
