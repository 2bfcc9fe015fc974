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
from sites.admin.state import Refused
from sites.admin.words import GROUPS, PRODUCT_STATUSES
from sites.rendering import complaints, form_page, read_form, render, see_other

_CODE = re.compile(r"[A-Z]{3,10}\d{0,3}")
_LONGEST = 60
_PAGES = 8


@logged_in
async def coupons(request: Request) -> Response:
    """All coupons."""
    return render(request, "admin/coupons.html", grid=grid(request, admin(request).coupons.all(), {}))


@logged_in
async def coupon(request: Request) -> Response:
    """The form of one coupon, or of a new one."""
    state, code = admin(request), request.path_params.get("code")
    found = known(state.coupons, code) if code else None
    fields = {"name": "", "code": "", "percent": "", "group": GROUPS[0], "start": "", "end": ""}
    if found:
        fields = {name: str(getattr(found, name)) for name in fields}
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        fields.update({name: form.get(name, "") for name in fields if name != "code" or not found})
        errors = _errors(fields)
        try:
            if not errors:
                state.save_coupon(_coupon(fields), new=found is None)
        except Refused as refusal:
            errors.append(str(refusal))
        if not errors:
            state.flash("The coupon is saved")
            return see_other(f"/coupons/{fields['code']}")
    return form_page(request, "admin/coupon.html", errors, coupon=found, fields=fields, groups=GROUPS)


@logged_in
async def delete_coupon(request: Request) -> Response:
    """Delete a coupon, after asking once more."""
    state = admin(request)
    found = known(state.coupons, request.path_params["code"])
    if request.method == "GET":
        return render(request, "admin/coupon_delete.html", coupon=found)
    state.coupons.remove(found.code)
    state.flash(f"Deleted {found.code}")
    return see_other("/coupons")


@logged_in
async def pages(request: Request) -> Response:
    """All content pages."""
    return render(request, "admin/pages.html", grid=grid(request, admin(request).pages.all(), {}, _PAGES))


@logged_in
async def page(request: Request) -> Response:
    """The form of one content page."""
    state = admin(request)
    found = known(state.pages, request.path_params["slug"])
    fields = {"title": found.title, "text": found.text, "status": found.status}
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        fields.update({name: form.get(name, "") for name in fields})
        errors = [f"Write a {name}" for name in ("title", "text") if not 0 < len(fields[name]) <= 4 * _LONGEST]
        if fields["status"] not in PRODUCT_STATUSES:
            errors.append("Choose a status")
        if not errors:
            state.pages.put(found.slug, Page(found.slug, **fields))
            state.flash("The page is saved")
            return see_other(f"/pages/{found.slug}")
    return form_page(request, "admin/page.html", errors, page=found, fields=fields, statuses=PRODUCT_STATUSES)


def _coupon(fields: dict[str, str]) -> Coupon:
    code, name, group = fields["code"], fields["name"], fields["group"]
    return Coupon(code, name, int(fields["percent"]), group, fields["start"], fields["end"])


def _errors(fields: dict[str, str]) -> list[str]:
    """Say what is wrong with the fields of a coupon."""
    percent, dates = fields["percent"], (fields["start"], fields["end"])
    return complaints(
        (not 0 < len(fields["name"]) <= _LONGEST, "Write a name"),
        (not _CODE.fullmatch(fields["code"]), "A code is capital letters, then digits"),
        (not re.fullmatch(r"\d{1,2}", percent) or not 1 <= int(percent) <= 90, "Percent must be 1 to 90"),
        (fields["group"] not in GROUPS, "Choose a group"),
        (not all(is_date(date) for date in dates), "Choose both dates"),
        (dates[0] > dates[1] > "", "The end is before the start"),
    )


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
