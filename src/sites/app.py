"""The one ASGI application that serves every embedded site.

Owns dispatch by host name (``<site>.<token>.localhost``, ``<site>.localhost`` for a person), the script
that sites' pages share, the page that says in which order forms were sent, and the control API under ``/_control/``.
Invariants: a request sees the state of
its own token only; the control API answers nobody without the secret; hosts other than ``*.localhost``
are refused; a session that may visit one site only is told of no other.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sites.faults import FaultSettings
from sites.registry import SITES
from sites.sessions import PUBLIC, SessionError, SessionStore
from sites.site import Session, Site
from telemetry import meter, table
from telemetry.prometheus_sink import PrometheusSink

ORDER = "/_frame/order"
"""Address, on every site, of the page that says whether the forms in its query were last sent in that order."""
CONTROL_HEADER = "X-Waymark-Control"
"""Name of the header that carries the control secret."""
SCRIPTS = "/_frame/scripts.js"
"""Address, on every site, of the script that pages may use (``page_scripts.js`` says how)."""
_SCRIPTS = (Path(__file__).parent / "page_scripts.js").read_text(encoding="utf-8")


def create_app(
    seed: int = 0,
    secret: str | None = None,
    max_sessions: int = 1024,
    sites: Mapping[str, Site] | None = None,
    faults: FaultSettings | None = None,
    measured: bool = False,
) -> Starlette:
    """Build the application over base data made from ``seed``.

    ``secret`` guards the control API (a random one is made when absent; read it at
    ``app.state.secret``); ``max_sessions`` bounds the open sessions; ``sites`` defaults to all; ``faults``
    are met by every session that states none of its own; ``measured`` records the metrics of ``Place.SITES``, which is
    the affair of the process that only serves. In one process, ``app.state.sessions`` may be used directly.
    """
    store = SessionStore(SITES if sites is None else sites, seed, max_sessions, faults)
    app = Starlette(
        routes=[
            Route("/_control/health", _health),
            Route("/_control/metrics", _metrics),
            Route("/_control/sessions/{token}", _open_session, methods=["POST"]),
            Route("/_control/sessions/{token}", _known_session, methods=["GET"]),
            Route("/_control/sessions/{token}", _drop_session, methods=["DELETE"]),
            Mount("/", app=HostDispatch(store, measured)),
        ],
        exception_handlers={SessionError: _session_error},
    )
    app.state.sessions = store
    app.state.secret = secret or secrets.token_urlsafe(24)
    app.state.seed = seed
    return app


class HostDispatch:
    """Hands a request to the site that its host names, with the state that its token owns."""

    def __init__(self, store: SessionStore, measured: bool = False) -> None:
        self._store = store
        self._is_measured = measured
        self._apps: dict[str, ASGIApp] = {
            name: Starlette(
                routes=[Route(SCRIPTS, _scripts), Route(ORDER, _order), *site.routes],
                exception_handlers={HTTPException: _http_error},
            )
            for name, site in store.sites.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request; raise ``SessionError`` for an unknown host or token."""
        if scope["type"] != "http":
            raise RuntimeError(f"the sites speak HTTP only, found a {scope['type']} connection")
        request = Request(scope)
        site, token = self._parse(request.headers.get("host", ""))
        send = _measured(site, send) if self._is_measured else send
        session = self._store.get(token)
        if site not in session.sites:
            raise SessionError(403, f"this session may not visit {site}; its sites are {sorted(session.sites)}")
        fault = None if session.faults is None else await session.faults.meet(request)
        if fault is not None:
            await fault(scope, receive, send)
            return
        own = {
            "session": session.state(site),
            "neighbours": _neighbours(session, site, request),
            "layout": session.layout,
            "sent": session.sent,
        }
        inner = {**scope, "root_path": "", "state": {**scope.get("state", {}), **own}}
        await self._apps[site](inner, receive, send)
        if request.method == "POST":
            session.note_sent(site, request.url.path)

    def _parse(self, host: str) -> tuple[str, str]:
        labels = host.split(":", 1)[0].lower().split(".")
        if labels[-1] == "localhost" and 2 <= len(labels) <= 3 and labels[0] in self._apps:
            return labels[0], labels[1] if len(labels) == 3 else PUBLIC
        known = ", ".join(f"http://{name}.localhost" for name in self._apps)
        raise SessionError(404, f"no site at host {host!r}; the sites are {known}")


def _measured(site: str, send: Send) -> Send:
    """Return ``send`` that records the answer's status and how long it took to begin."""
    began = time.perf_counter()

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            meter.record(table.SITE_REQUESTS, site=site, status=f"{message['status'] // 100}xx")
            meter.record(table.SITE_SECONDS, time.perf_counter() - began, site=site)
        await send(message)

    return sent


def _neighbours(session: Session, site: str, request: Request) -> tuple[tuple[str, str], ...]:
    """Return name and address of the session's other sites, by the port that the visitor came through."""
    token = "" if session.token == PUBLIC else f".{session.token}"
    port = f":{request.url.port}" if request.url.port else ""
    return tuple((name, f"http://{name}{token}.localhost{port}/") for name in session.sites if name != site)


async def _scripts(request: Request) -> Response:
    return Response(_SCRIPTS, media_type="text/javascript", headers={"Cache-Control": "max-age=3600"})


async def _order(request: Request) -> Response:
    """Say whether the forms ``form=SITE:PATH`` were all sent, each for the last time before the next one was."""
    wanted = [tuple(form.partition(":")[::2]) for form in request.query_params.getlist("form")]
    in_order = [form for form in request.state.sent if form in wanted] == wanted
    return Response(f'<p id="order">{"in order" if in_order else "not in order"}</p>', media_type="text/html")


def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = {404: "Page not found", 405: "Not allowed"}.get(status, "This did not work")
    page = f'<!doctype html><title>{what}</title><h1>{what}</h1><p><a href="/">Home</a></p>'
    return Response(page, status_code=status, media_type="text/html")


def _session_error(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, SessionError) else 500
    return PlainTextResponse(str(error), status_code=status)


def _require_secret(request: Request) -> None:
    given = request.headers.get(CONTROL_HEADER, "")
    if not hmac.compare_digest(given.encode(), request.app.state.secret.encode()):
        raise SessionError(403, f"the control API needs the server's secret in the header {CONTROL_HEADER}")


async def _health(request: Request) -> Response:
    _require_secret(request)
    store: SessionStore = request.app.state.sessions
    seed: int = request.app.state.seed
    return JSONResponse({"ok": True, "sessions": len(store), "sites": sorted(store.sites), "seed": seed})


async def _metrics(request: Request) -> Response:
    """Answer with the metrics of this process in Prometheus' text form; 404 where it records none."""
    _require_secret(request)
    sink = meter.sink()
    if not isinstance(sink, PrometheusSink):
        raise SessionError(404, "this server records no metrics; start it with --metrics RUN")
    meter.record(table.SITE_SESSIONS, len(request.app.state.sessions))
    return PlainTextResponse(sink.text())


async def _open_session(request: Request) -> Response:
    _require_secret(request)
    body = await request.body()
    store: SessionStore = request.app.state.sessions
    try:
        wanted = json.loads(body or b"{}")
        login, sites = wanted.get("login", []), wanted.get("sites", list(store.sites))
        faults = FaultSettings.from_json(wanted["faults"]) if "faults" in wanted else None
        data_seed = wanted.get("data_seed")
    except (ValueError, AttributeError, TypeError) as error:
        raise _bad_session(body) from error
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in (login, sites)):
        raise _bad_session(body)
    if data_seed is not None:
        if not isinstance(data_seed, int):
            raise _bad_session(body)
        await asyncio.to_thread(store.prepare, sites, data_seed)
    store.reset(request.path_params["token"], login=login, sites=sites, faults=faults, data_seed=data_seed)
    return JSONResponse({"token": request.path_params["token"], "login": login, "sites": sites})


def _bad_session(body: bytes) -> SessionError:
    expected = '{"login": ["shop"], "sites": ["shop"], "faults": {"error_share": 0.1}, "data_seed": 7}'
    return SessionError(400, f"expected JSON like {expected}, found {body[:200]!r}")


async def _known_session(request: Request) -> Response:
    """Answer 410 where the session is not open, as every page of it would."""
    _require_secret(request)
    return JSONResponse({"token": request.app.state.sessions.get(request.path_params["token"]).token})


async def _drop_session(request: Request) -> Response:
    _require_secret(request)
    dropped = request.app.state.sessions.drop(request.path_params["token"])
    return JSONResponse({"dropped": dropped})
