"""Sites that behave like WebArena's: a PHP session cookie, a log-in form, and faults on demand."""

from __future__ import annotations

import asyncio
import html
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from environments.webarena.login.accounts import Account, Accounts, Secret
from environments.webarena.login.forms import LoginForm
from records.episodes import Task

USERNAME, PASSWORD = "agent@shop.example", 'pa ss"&w0rd+/?'
COOKIE = "PHPSESSID"
ACCOUNT = Account(Secret(USERNAME), Secret(PASSWORD))
ACCOUNTS = Accounts(dict.fromkeys(("shopping", "reddit"), ACCOUNT))
FORM = LoginForm(
    path="/login",
    logged_out=".site-nav a[href='/login']",
    logout=re.compile("^/logout"),
    lifetime_s=3600.0,
    refused=".refused",
)
FORMS = {"shopping": FORM, "reddit": FORM}


@dataclass
class FakeSite:
    """One site; ``fault`` is "" or what every page does instead: ``error`` (500), ``hang``, ``broken_login``."""

    title: str
    fault: str = ""
    sessions: dict[str, str] = field(default_factory=dict)
    logins: int = 0
    stale: int = 0
    """Requests with a session that the site no longer has."""
    notes: list[str] = field(default_factory=list)
    visits: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)

    def app(self) -> Starlette:
        """The site as an application."""
        pages = [Route("/", self._start), Route("/page/{n}", self._page), Route("/where", self._where)]
        forms = [Route("/login", self._login, methods=["GET", "POST"]), Route("/logout", self._logout)]
        faults = [Route("/boom", self._boom), Route("/hang", self._hang)]
        return Starlette(routes=[*pages, *forms, *faults, Route("/note", self._note, methods=["POST"])])

    def expire(self) -> None:
        """Forget all sessions, as a restart or a timeout does."""
        self.sessions.clear()

    async def _answer(self, request: Request, body: str, status: int = 200) -> Response:
        """Wrap a page, and give a visitor without a session that we know a new one, as PHP does."""
        if self.fault == "error":
            return PlainTextResponse("broken", 500)
        if self.fault == "hang":
            await self._hang(request)
        self.visits.append(request.url.path)
        session = request.cookies.get(COOKIE, "")
        user = self.sessions.get(session, "")
        self.stale += bool(session) and session not in self.sessions
        account = f"{html.escape(user)} <a href='/logout'>Log out</a>" if user else "<a href='/login'>Log in</a>"
        head = f"<!doctype html><title>{self.title}</title><nav class='site-nav'><a href='/'>Start</a> {account}</nav>"
        reply = HTMLResponse(head + body, status)
        if session not in self.sessions:
            self._begin(reply, "")
        return reply

    def _begin(self, reply: Response, user: str) -> None:
        session = secrets.token_hex(8)
        self.sessions[session] = user
        reply.set_cookie(COOKIE, session, httponly=True)

    async def _start(self, request: Request) -> Response:
        links = "".join(f"<a href='{url}'>{name}</a> " for name, url in self.links.items())
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        form = "<form action='/note' method='post'><input name='note' aria-label='Note'><button>Save</button></form>"
        more = "<a href='/page/1'>One</a> <a href='/page/2'>Two</a> <a href='/boom'>Boom</a> <a href='/hang'>Hang</a>"
        script = "<script>localStorage.setItem('visited', document.title)</script>"
        return await self._answer(request, f"<h1>{self.title}</h1>{more} {links}{form}<ul>{notes}</ul>{script}")

    async def _page(self, request: Request) -> Response:
        return await self._answer(request, f"<h1>Page {request.path_params['n']}</h1><a href='/'>Back</a>")

    async def _where(self, request: Request) -> Response:
        script = (
            "navigator.geolocation.getCurrentPosition(at => { out.textContent = at.coords.latitude + ' '"
            " + at.coords.longitude + ' ' + innerWidth + 'x' + innerHeight; })"
        )
        return await self._answer(request, f"<p id='out'>nowhere</p><script>{script}</script>")

    async def _login(self, request: Request) -> Response:
        form = await request.form()
        wanted = (USERNAME, PASSWORD)
        if request.method == "POST" and (form.get("user"), form.get("word")) == wanted and self.fault != "broken_login":
            self.logins += 1
            reply = RedirectResponse("/", 303)
            self._begin(reply, "agent")
            return reply
        refused = f"<p class='refused'>{html.escape(str(form.get('word')))} is wrong</p>" if form else ""
        fields = "<input name='user'><input name='word' type='password'><input name='digits' type='number'>"
        return await self._answer(request, f"{refused}<form method='post'>{fields}<button>Log in</button></form>")

    async def _logout(self, request: Request) -> Response:
        self.sessions.pop(request.cookies.get(COOKIE, ""), None)
        return RedirectResponse("/", 303)

    async def _note(self, request: Request) -> Response:
        self.notes.append(str((await request.form()).get("note")))
        return RedirectResponse("/", 303)

    async def _boom(self, request: Request) -> Response:
        return PlainTextResponse("boom", 500)

    async def _hang(self, request: Request) -> Response:
        for _ in range(100):
            if self.fault != "hang" and request.url.path != "/hang":
                break
            await asyncio.sleep(0.05)
        return HTMLResponse("late")


@dataclass
class FakeResetServer:
    """A reset server for ``sites``; ``kind``: ``new`` (with a status), ``old``, ``failing``, ``stuck``, ``mute``."""

    sites: list[FakeSite] = field(default_factory=list)
    kind: str = "new"
    begun: int = 0
    polls: int = 0
    running: int = 0

    def app(self) -> Starlette:
        """The server as an application."""
        routes = [Route("/reset", self._reset)]
        if self.kind != "old":
            routes.append(Route("/status", self._status))
        return Starlette(routes=routes)

    def _restore(self) -> None:
        for site in self.sites:
            site.notes.clear()
            site.expire()

    def _reset(self, request: Request) -> Response:
        if self.running:
            return PlainTextResponse("Reset already running", 418)
        self.begun += 1
        if self.kind == "old":
            self._restore()
            return PlainTextResponse("Reset script executed successfully")
        self.running = 2
        return PlainTextResponse("Reset initiated")

    async def _status(self, request: Request) -> Response:
        self.polls += 1
        if self.kind == "mute":
            await asyncio.sleep(2)
        if self.kind == "failing":
            return PlainTextResponse("Error executing reset script: exit 3", 500)
        if self.kind != "stuck":
            self.running = max(0, self.running - 1)
        if self.running:
            return PlainTextResponse("Reset ongoing")
        self._restore()
        return PlainTextResponse("Ready for duty!")


def fake_task(start: str = "__SHOPPING__/", sites: tuple[str, ...] = ("shopping",), **changes: object) -> Task:
    """A reading task that asks for the start page's address; ``changes`` replace fields of the record."""
    evaluation = {
        "eval_types": ["url_match"], "reference_url": "__SHOPPING__/", "url_note": "EXACT", "reference_answers": None
    }  # fmt: skip
    fields: dict[str, object] = {"intent": "Show me the start page", "evaluation": evaluation, "require_login": True}
    return Task(task_id="w.1", sites=sites, start_url=start, template="w", **{**fields, **changes})  # type: ignore[arg-type]


def port_of(url: str) -> int:
    """The port of an address."""
    return urlsplit(url).port or 0
