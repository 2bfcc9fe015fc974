"""Coupons (price rules) and the shop's content pages: tables and forms."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.dates import is_date
from sites.admin.grid import grid
from sites.admin.records import Coupon, Page
from sites.admin.words import GROUPS, PRODUCT_STATUSES
from sites.forms import Filling, form, refuse_if, show
from sites.rendering import render

_CODE = re.compile(r"[A-Z]{3,10}\d{0,3}")
_LONGEST = 60
_PAGES = 8


@logged_in
async def coupons(request: Request) -> Response:
    """All coupons."""
    return render(request, "admin/coupons.html", grid=grid(request, admin(request).coupons.all(), {}))


@logged_in
@form("admin/coupon.html", whole=True)
def coupon(request: Request) -> Filling:
    """The form of one coupon, whose code stays, or of a new one."""
    state, code = admin(request), request.path_params.get("code")
    found = known(state.coupons, code) if code else None
    blank = {"name": "", "code": "", "percent": "", "group": GROUPS[0], "start": "", "end": ""}
    fields = {name: str(getattr(found, name)) for name in blank} if found else blank
    sent = yield show(fields, coupon=found, groups=GROUPS)
    sent["code"] = code or sent["code"]
    percent, start, end = sent["percent"], sent["start"], sent["end"]
    refuse_if(
        (not 0 < len(sent["name"]) <= _LONGEST, "Write a name"),
        (not _CODE.fullmatch(sent["code"]), "A code is capital letters, then digits"),
        (not re.fullmatch(r"\d{1,2}", percent) or not 1 <= int(percent) <= 90, "Percent must be 1 to 90"),
        (sent["group"] not in GROUPS, "Choose a group"),
        (not (is_date(start) and is_date(end)), "Choose both dates"),
        (start > end > "", "The end is before the start"),
    )
    made = Coupon(sent["code"], sent["name"], int(percent), sent["group"], start, end)
    state.save_coupon(made, new=found is None)
    state.flash("The coupon is saved")
    return f"/coupons/{made.code}"


@logged_in
@form("admin/coupon_delete.html")
def delete_coupon(request: Request) -> Filling:
    """Delete a coupon, after asking once more."""
    state = admin(request)
    found = known(state.coupons, request.path_params["code"])
    yield show(coupon=found)
    state.coupons.remove(found.code)
    state.flash(f"Deleted {found.code}")
    return "/coupons"


@logged_in
async def pages(request: Request) -> Response:
    """All content pages."""
    return render(request, "admin/pages.html", grid=grid(request, admin(request).pages.all(), {}, _PAGES))


@logged_in
@form("admin/page.html", whole=True)
def page(request: Request) -> Filling:
    """The form of one content page."""
    state = admin(request)
    found = known(state.pages, request.path_params["slug"])
    fields = {"title": found.title, "text": found.text, "status": found.status}
    sent = yield show(fields, page=found, statuses=PRODUCT_STATUSES)
    refuse_if(
        *((not 0 < len(sent[name]) <= 4 * _LONGEST, f"Write a {name}") for name in ("title", "text")),
        (sent["status"] not in PRODUCT_STATUSES, "Choose a status"),
    )
    state.pages.put(found.slug, Page(found.slug, **sent))
    state.flash("The page is saved")
    return f"/pages/{found.slug}"


_FORM = ["GET", "POST"]
ROUTES = (
    Route("/coupons", coupons),
    Route("/coupons/new", coupon, methods=_FORM),
    Route("/coupons/{code}", coupon, methods=_FORM),
    Route("/coupons/{code}/delete", delete_coupon, methods=_FORM),
    Route("/pages", pages),
    Route("/pages/{slug}", page, methods=_FORM),
)
"""Routes of coupons and content pages."""
