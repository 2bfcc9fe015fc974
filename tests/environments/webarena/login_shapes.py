"""Log-in pages of many shapes: those of WebArena's four sites, forms in two steps, forms without a form."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from environments.webarena.login.forms import LoginForm
from tests.environments.webarena.fake_sites import PASSWORD, USERNAME

SEARCH = """<form action="/search"><input name="q" id="search" placeholder="Search the account books">
<button>Go</button></form>"""
NEWSLETTER = '<form class="form subscribe" action="/newsletter" method="post"><input type="email" name="email"></form>'


@dataclass(frozen=True)
class Shape:
    """A log-in page at ``path`` with the fields ``names``; ``logout`` is what a logged-in page holds."""

    path: str
    page: str
    logout: str
    names: tuple[str, str] = ("username", "password")
    second: str = ""
    """The page that asks for the password, where it is another."""


SHAPES = {
    "shopping": Shape(
        "/customer/account/login/",
        SEARCH
        + """<div style="display:none"><form><input name="username" type="email">
        <input name="password" type="password">
        <button>Sign In</button></form></div>
        <form action="" method="post" id="login-form"><input name="form_key" type="hidden" value="k">
        <input name="login[username]" id="email" type="email">
        <input name="login[password]" type="password" id="pass">
        <button type="submit" name="send"><span>Sign In</span></button></form>"""
        + NEWSLETTER,
        '<a href="http://{host}/customer/account/logout/">Sign Out</a>',
        ("login[username]", "login[password]"),
    ),
    "shopping_admin": Shape(
        "/admin",
        """<form method="post" action="" id="login-form"><input name="form_key" type="hidden" value="k">
        <input type="text" id="username" name="login[username]" placeholder="user name">
        <input type="text" name="dummy" style="display:none">
        <input type="password" id="login" name="login[password]">
        <button class="action-login"><span>Sign in</span></button>
        </form>""",
        '<a href="/admin/admin/auth/logout/key/1/">Sign Out</a>',
        ("login[username]", "login[password]"),
    ),
    "reddit": Shape(
        "/login",
        '<nav class="site-nav">'
        + SEARCH
        + """<a href="/login">Log in</a></nav><form action="/login" method="POST" class="form--login">
        <input type="hidden" name="_csrf_token" value="t">
        <input type="text" name="_username" id="login-username" required>
        <input type="password" name="_password" id="login-password" required>
        <button class="button">Log in</button>
        <a href="/reset_password" class="button">Reset password</a></form>""",
        '<form action="/logout?token=1" method="POST"><button>Log out</button></form>',
        ("_username", "_password"),
    ),
    "gitlab": Shape(
        "/users/sign_in",
        """<form id="new_ldap_user" action="/users/auth/ldap" style="display:none"><input name="username">
        <input type="password" name="password"><input type="submit" value="Sign in"></form>
        <form id="new_new_user" action="/users" method="post"><input name="new_user[email]" type="email">
        <input name="new_user[password]" type="password" autocomplete="new-password">
        <button>Register</button></form>
        <form id="new_user" action="" method="post"><input name="user[login]" type="text" id="user_login">
        <input name="user[password]" type="password" id="user_password">
        <input type="hidden" name="user[remember_me]" value="0">
        <input type="checkbox" name="user[remember_me]" value="1">
        <input type="submit" name="commit" value="Sign in"></form>""",
        '<a class="sign-out-link" data-method="post" href="/users/sign_out">Sign out</a>',
        ("user[login]", "user[password]"),
    ),
    "two pages": Shape(
        "/login",
        SEARCH + NEWSLETTER + '<form method="post"><input type="email" name="username"><button>Next</button></form>',
        '<a href="/logout">Log out</a>',
        second='<form method="post"><p>Hello</p><input name="password" type="password"><button>Log in</button></form>',
    ),
    "two steps of one page": Shape(
        "/login",
        """<form method="post"><input name="username">
        <button type="button" onclick="this.remove(); rest.hidden = false">Next</button>
        <div id="rest" hidden><input name="password" type="password"><button>Log in</button></div></form>""",
        '<a href="/logout">Log out</a>',
    ),
    "no button": Shape(
        "/login",
        '<form method="post"><input name="username"><input name="password" type="password"></form>',
        '<button formaction="/logout">Log out</button>',
    ),
    "drawn late and without a form": Shape(
        "/login",
        """<div id="app"></div><script>
        const send = () => {
          const body = new URLSearchParams({username: user.value, password: word.value});
          fetch(location.href, {method: "POST", body}).then(reply => { location.href = reply.url; });
        };
        setTimeout(() => {
          app.innerHTML = '<input id="user"><input id="word" type="password">';
          const button = document.createElement("button");
          button.textContent = "Log in";
          button.onclick = send;
          app.append(button);
        }, 300);</script>""",
        '<a href="/logout">Log out</a>',
    ),
    "changing a password beside it": Shape(
        "/login",
        """<form><input name="who"><input type="password" name="a"><input type="password" name="b">
        <button>Change</button></form>
        <form method="post"><input name="username"><input name="password" type="password"><button>In</button></form>""",
        '<a href="/logout">Log out</a>',
    ),
}


@dataclass
class ShapedSite:
    """A site with a log-in page of one shape; ``after`` replaces what follows a right password."""

    shape: Shape
    form: LoginForm
    after: Response | None = None
    received: list[dict[str, str]] = field(default_factory=list)

    def app(self) -> Starlette:
        """The site as an application."""
        login = Route(self.shape.path, self._login, methods=["GET", "POST"])
        return Starlette(routes=[Route("/welcome", self._welcome), login])

    async def _login(self, request: Request) -> Response:
        if request.method == "GET":
            return self._page(self.shape.page)
        sent = {name: str(value) for name, value in (await request.form()).items()}
        self.received.append(sent)
        user, word = self.shape.names
        if self.shape.second and sent == {user: USERNAME}:
            return self._page(self.shape.second)
        named = {user: USERNAME} if not self.shape.second else {}
        if {name: sent.get(name) for name in (*named, word)} == {**named, word: PASSWORD}:
            return self.after or RedirectResponse("/welcome", 303)
        return self._page(self.shape.page)

    async def _welcome(self, request: Request) -> Response:
        if not self.received:
            return PlainTextResponse("not logged in", 403)
        host = request.headers["host"]
        reply = self._page(f"<h1>Welcome</h1>{self.shape.logout.format(host=host)}")
        reply.set_cookie("SESSION", "s1")
        return reply

    def _page(self, body: str) -> Response:
        return HTMLResponse(f"<!doctype html><title>Site</title>{body}")
