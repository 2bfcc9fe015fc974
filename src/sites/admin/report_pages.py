"""Pages of the reports: a period is asked for first, then the table is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing
from sites.admin import reports
from sites.admin.access import admin, logged_in
from sites.admin.dates import is_date
from sites.admin.grid import filters_of, grid
from sites.admin.records import Order
from sites.rendering import render

ROWS = 8
"""Rows on one page of a report."""


@dataclass(frozen=True)
class Report:
    """What a report is called, what its columns say, and how its rows come from orders and a step."""

    title: str
    columns: tuple[str, str, str]
    rows: Callable[[Sequence[Order], str], reports.Ranked]


REPORTS = {
    "sales": Report("Sales report", ("Period", "Orders", "Total"), reports.sales),
    "customers": Report(
        "Customer report", ("Customer", "Orders", "Total"), lambda orders, step: reports.customers(orders)
    ),
    "bestsellers": Report(
        "Bestseller report", ("Product", "Sold", "Total"), lambda orders, step: reports.bestsellers(orders)
    ),
}


@logged_in
async def report(request: Request) -> Response:
    """One report, empty until a period is given."""
    kind = request.path_params["kind"]
    shown = existing(REPORTS.get(kind))
    wanted = filters_of(request, start="", end="", **({"step": "Month"} if kind == "sales" else {}))
    asked = "start" in request.query_params
    error = _error(wanted) if asked else ""
    rows: reports.Ranked = []
    if asked and not error:
        orders = reports.counted(admin(request).orders.all(), wanted["start"], wanted["end"])
        rows = shown.rows(orders, wanted.get("step", ""))
    page = {"report": shown, "error": error, "asked": asked and not error, "steps": tuple(reports.STEPS)}
    status = 422 if error else 200
    return render(request, "admin/report.html", status_code=status, grid=grid(request, rows, wanted, ROWS), **page)


@logged_in
async def terms(request: Request) -> Response:
    """What visitors searched the shop for, the most frequent first."""
    return render(request, "admin/terms.html", grid=grid(request, admin(request).data.terms, {}, ROWS))


def _error(wanted: dict[str, str]) -> str:
    if not (is_date(wanted["start"]) and is_date(wanted["end"])):
        return "Choose both dates"
    if wanted["start"] > wanted["end"]:
        return "The end is before the start"
    return "" if wanted.get("step", "Month") in reports.STEPS else "Choose a step"


ROUTES = (
    Route("/reports/terms", terms),
    Route("/reports/{kind}", report),
)
"""Routes of the reports."""
