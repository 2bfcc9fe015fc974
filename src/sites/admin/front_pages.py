"""The dashboard, the search over everything, and the log-in."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, logged_in
from sites.admin.grid import contains
from sites.admin.words import REVIEW_STATUSES
from sites.forms import Filling, form, show
from sites.rendering import clean_text, render, see_other

SHOWN = 5
"""Most orders, customers and products each that a search shows."""
_INSIDE = re.compile(r"/(?![/\\])[^\x00-\x20]*")


@logged_in
async def dashboard(request: Request) -> Response:
    """What happened last; ``session_pages`` in the address says after how many more pages the log-in runs out."""
    state, lasts = admin(request), request.query_params.get("session_pages", "")
    if re.fullmatch(r"\d{1,3}", lasts):
        state.limit(int(lasts))
    orders = sorted(state.orders.all(), key=lambda order: (order.date, order.number), reverse=True)
    waiting = sum(review.status == REVIEW_STATUSES[0] for review in state.reviews.all())
    return render(request, "admin/dashboard.html", orders=orders[:4], count=len(orders), waiting=waiting)


@logged_in
async def search(request: Request) -> Response:
    """Orders by their number, customers and products by their name."""
    state, words = admin(request), clean_text(request.query_params.get("q", ""))
    orders = [order for order in state.orders.all() if str(order.number) == words]
    customers = [c for c in state.customers.all() if words and contains(c.name, words)][:SHOWN]
    products = [p for p in state.products.all() if words and contains(p.name, words)][:SHOWN]
    return render(request, "admin/search.html", query=words, orders=orders, customers=customers, products=products)


@form("admin/login.html")
def login(request: Request) -> Filling:
    """The log-in form; it leads back to where the user came from, and never out of this site."""
    state = admin(request)
    wanted = request.query_params.get("next", "/") if request.method == "GET" else "/"
    sent = yield show({"user": "", "password": "", "next": wanted})
    state.log_in(sent["user"], sent["password"])
    state.flash("You are logged in")
    return sent["next"] if _INSIDE.fullmatch(sent["next"]) else "/"


async def logout(request: Request) -> Response:
    """Log out."""
    admin(request).log_out()
    admin(request).flash("You are logged out")
    return see_other("/login")


ROUTES = (
    Route("/", dashboard),
    Route("/search", search),
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
)
"""Routes of the dashboard, the search and the log-in."""
