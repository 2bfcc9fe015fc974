"""The skills of the back office's experts: menus, filters, rows of tables and the forms that many tasks share."""

from __future__ import annotations

import re
from collections.abc import Callable

from records.environment import Observation
from sites.admin.checks import at, new_coupon, new_product, product_path, recorded, shipped, ticked
from sites.admin.data import slug_of
from sites.admin.dates import TODAY
from sites.admin.review_pages import DECISIONS, DELETE
from sites.checks import Check, both, has, shows
from sites.experts import Actions, Expert
from sites.skills import ANY, NUMBER, choose, click, put, search, skill, write

PERSON = r"[A-Z][a-z]+ [A-Z][a-z]+"
PRODUCT = rf"{PERSON} [A-Z][a-z]+"
ROW = r"Select \d+"
"""What the checkbox of a row is called."""
_TABLES = {
    "Orders": ("Sales", "/orders"),
    "Invoices": ("Sales", "/sales/invoices"),
    "Products": ("Catalog", "/products"),
    "Reviews": ("Catalog", "/reviews"),
    "Coupons": ("Marketing", "/coupons"),
    "Pages": ("Marketing", "/pages"),
    "Search terms": ("Reports", "/reports/terms"),
    "Sales report": ("Reports", "/reports/sales"),
    "Customer report": ("Reports", "/reports/customers"),
    "Bestseller report": ("Reports", "/reports/bestsellers"),
}
"""The menu of the header that holds each table and report, and its path."""


@skill(lambda user, password: shows("You are logged in"))
def log_in(user: str, password: str) -> Actions:
    """On the log-in page: log in."""
    yield from write({"User name": user, "Password": password})
    return (yield from click("Log in", "button"))


def staying_logged_in(attempt: Callable[[], Actions | Expert], user: str, password: str) -> Expert:
    """Follow an expert, log in again where the log-in has run out, and begin anew where a form was lost by that."""
    expert = attempt()
    intent = next(expert)
    while True:
        seen = yield intent
        if "/login" in seen.url:
            seen = yield from log_in(user, password)
            if seen.url.endswith("__ADMIN__/"):
                expert = attempt()
                intent = next(expert)
                continue
        try:
            intent = expert.send(seen)
        except StopIteration:
            return


@skill(lambda name: at(f"{_TABLES[name][1]}*"))
def open_table(name: str) -> Actions:
    """Open a table or a report by its menu."""
    yield from click(_TABLES[name][0], "button")
    return (yield from click(name, "link"))


def filter_rows(field: str, value: str) -> Actions:
    """Filter the table of this page by a text."""
    yield from put(field, value)
    return (yield from click("Filter", "button"))


def row_action(seen: Observation, row: str, action: str) -> Actions:
    """Click the link ``action`` of the table row whose text matches ``row``: all rows have a link of that name."""
    lines = seen.text.splitlines()
    at = next((i for i, line in enumerate(lines) if re.search(row, line)), None)
    later = [] if at is None else [line for line in lines[at + 1 :] if line.startswith(f"link {action} ")]
    if not later:
        raise LookupError(f"expected a row {row!r} with a link {action!r} on {seen.url}, found {lines}")
    before = seen.elements[: int(later[0].rsplit(" ", 1)[1])]
    return (yield from click(action, "link", nth=sum((e.name, e.role) == (action, "link") for e in before)))


def rows(seen: Observation) -> list[str]:
    """Return the names of the checkboxes of the table's rows on this page."""
    return [e.name for e in seen.elements if e.role == "checkbox" and re.fullmatch(ROW, e.name)]


@skill(ticked)
def tick_all(names: list[str]) -> Actions:
    """Tick these rows of a table."""
    seen: Observation | None = None
    for name in names:
        seen = yield from click(name, "checkbox", ROW)
    if seen is None:
        raise LookupError("expected rows to tick, found none")
    return seen


@skill(lambda author, action: both(at("/reviews"), shows(f"{DECISIONS.get(action, 'Deleted')} ")))
def decide(author: str, action: str) -> Actions:
    """On the table of reviews: decide on all that wait, of one author."""
    yield from click("Filters", "button")
    seen = yield from filter_rows("Author", author)
    yield from tick_all(rows(seen))
    yield from choose("Action", action)
    seen = yield from click("Apply", "button")
    return (yield from click("Confirm", "button")) if action == DELETE else seen


def _period_shown(report: str, start: str, end: str, step: str = "") -> Check:
    return at(f"{_TABLES[report][1]}?start={start}&end={end}{step and f'&step={step}'}")


@skill(_period_shown)
def show_period(report: str, start: str, end: str, step: str = "") -> Actions:
    """Open a report and show a period of it."""
    yield from open_table(report)
    yield from write({"From": start, "To": end})
    if step:
        yield from choose("Step", step)
    return (yield from click("Show report", "button"))


@skill(lambda term: both(at("/reports/terms*"), shows(term)))
def find_term(term: str) -> Actions:
    """Turn over the list of search terms to one of them."""
    seen = yield from open_table("Search terms")
    while term not in seen.page_text:
        seen = yield from click("Next page", "link")
    return seen


@skill(lambda number, rivals=None: at(f"/orders/{number}"))
def open_order(number: int, rivals: str | None = NUMBER) -> Actions:
    """Search for an order by its number, which may be mistyped unless ``rivals`` is None, and open it."""
    yield from search(str(number), rivals=rivals)
    return (yield from click("View", "link"))


@skill(lambda number: both(at(f"/orders/{number}"), shows("The order is on hold")))
def hold_order(number: int) -> Actions:
    """Put an order on hold."""
    yield from open_order(number)
    return (yield from click("Hold", "button"))


@skill(lambda number, comment: both(at(f"/orders/{number}"), shows("The order is cancelled", f"{TODAY}: {comment}")))
def cancel_order(number: int, comment: str) -> Actions:
    """Cancel an order."""
    yield from open_order(number)
    yield from click("Cancel", "link")
    yield from put("Comment", comment)
    return (yield from click("Confirm", "button"))


@skill(lambda text, notify=False: shows(f"{text} (customer notified)" if notify else f"{TODAY}: {text}"))
def comment(text: str, notify: bool = False) -> Actions:
    """On an order's page: add a comment, of which the customer may be notified."""
    if notify:
        yield from click("Notify customer", "checkbox", ANY)
    yield from put("Comment", text)
    return (yield from click("Add comment", "button"))


@skill(lambda carrier, tracking: shows(shipped(carrier, tracking)))
def ship(carrier: str, tracking: str) -> Actions:
    """On an order's page: ship it."""
    yield from click("Ship", "link")
    yield from choose("Carrier", carrier)
    yield from put("Tracking number", tracking)
    return (yield from click("Submit shipment", "button"))


@skill(lambda name, fields: both(at(product_path(name)), *(has(field, value) for field, value in fields.items())))
def edit_product(name: str, fields: dict[str, str]) -> Actions:
    """Find a product through the menu, write these fields of its form, and save it."""
    yield from open_table("Products")
    seen = yield from filter_rows("Name", name)
    yield from row_action(seen, re.escape(name), "Edit")
    yield from write(fields)
    return (yield from click("Save", "button"))


@skill(lambda *product: recorded(*new_product(*product)))
def add_product(name: str, sku: str, category: str, price: int, stock: int) -> Actions:
    """Add a product through the menu."""
    yield from open_table("Products")
    yield from click("Add product", "link")
    yield from write({"Name": name, "SKU": sku})
    yield from choose("Category", category)
    yield from write({"Price": str(price), "Stock": str(stock)})
    return (yield from click("Save", "button"))


@skill(lambda name, group: both(at("/customers/*"), shows(f"{name}, ", f", {group}, ")))
def move_customer(name: str, group: str) -> Actions:
    """Find a customer by name and move them to another group."""
    yield from click("Customers", "link")
    seen = yield from filter_rows("Name", name)
    yield from row_action(seen, rf"^{name} \|", "View")
    yield from click("Edit", "link")
    yield from choose("Group", group)
    return (yield from click("Save", "button"))


@skill(lambda *coupon: recorded(*new_coupon(*coupon)))
def add_coupon(name: str, code: str, percent: int, group: str, start: str, end: str) -> Actions:
    """On the table of coupons: add one."""
    yield from click("Add coupon", "link")
    yield from write({"Name": name, "Code": code, "Percent": str(percent)})
    yield from choose("Group", group)
    yield from write({"From": start, "To": end})
    return (yield from click("Save", "button"))


@skill(lambda title, field, text: both(at(f"/pages/{slug_of(title)}"), has(field, text), shows("The page is saved")))
def edit_page(title: str, field: str, text: str) -> Actions:
    """Change the title or the text of a content page."""
    seen = yield from open_table("Pages")
    yield from row_action(seen, rf"^{title} \|", "Edit")
    yield from put(field, text)
    return (yield from click("Save", "button"))
