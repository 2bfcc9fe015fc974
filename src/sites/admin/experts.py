"""The skills that the back office's scripted experts are put together from.

Owns menus, filters, rows of tables and the forms that many tasks share. Experts read pages and the task's
parameters, never the site's state; ``rivals`` names what a careless person might have taken instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from records.environment import Observation
from records.episodes import Task
from sites.experts import read
from sites.old_form import Expert, Intent, Skill
from sites.skills import ANY, choose, click, finish, write

__all__ = [
    "ANY", "Skill", "add_coupon", "add_product", "choose", "click", "edit_customer", "edit_product", "filter_rows",
    "finish", "lines_of", "look_for", "open_from_menu", "open_order", "open_page", "put", "read", "row_action", "save",
    "script", "ship", "show_period", "staying_logged_in", "tick_all", "write",
]  # fmt: skip
NONE = "N/A"
"""What an expert answers where the site does not say."""
MONEY = r"\$\d+"
PERSON = r"[A-Z][a-z]+ [A-Z][a-z]+"


def open_from_menu(menu: str, entry: str) -> Skill:
    """Open a menu of the header and follow one of its links."""
    yield from click(menu, "button")
    return (yield from click(entry, "link"))


def look_for(words: str, rivals: str | None = r"\d+") -> Skill:
    """Use the search over everything; a number may be mistyped unless ``rivals`` is None."""
    return (yield Intent("search", "Search", "searchbox", argument=words, rivals=rivals))


def open_order(number: int) -> Skill:
    """Search for an order by its number and open it."""
    yield from look_for(str(number))
    return (yield from click("View", "link"))


def row_action(seen: Observation, row: str, action: str) -> Skill:
    """Click the link ``action`` of the table row whose text matches ``row``: all rows have a link of that name."""
    lines = seen.text.splitlines()
    at = next((i for i, line in enumerate(lines) if re.search(row, line)), None)
    later = [] if at is None else [line for line in lines[at + 1 :] if line.startswith(f"link {action} ")]
    if not later:
        raise LookupError(f"expected a row {row!r} with a link {action!r} on {seen.url}, found {lines}")
    element = int(later[0].rsplit(" ", 1)[1])
    nth = sum(e.name == action and e.role == "link" for e in seen.elements[:element])
    return (yield Intent("click", action, "link", nth))


def put(name: str, value: str) -> Skill:
    """Type a value that nobody gets wrong into a field."""
    return (yield Intent("type", name, "textbox", argument=value))


def filter_rows(field: str, value: str) -> Skill:
    """Filter the table of this page by a text."""
    yield from put(field, value)
    return (yield from click("Filter", "button"))


def save() -> Skill:
    """Save the form of this page."""
    return (yield from click("Save", "button"))


def edit_product(name: str, fields: dict[str, str]) -> Skill:
    """Find a product through the menu, write these fields of its form, and save it."""
    yield from open_from_menu("Catalog", "Products")
    seen = yield from filter_rows("Name", name)
    yield from row_action(seen, re.escape(name), "Edit")
    yield from write(fields)
    return (yield from save())


def add_product(fields: dict[str, str], category: str) -> Skill:
    """Add a product through the menu."""
    yield from open_from_menu("Catalog", "Products")
    yield from click("Add product", "link")
    yield from write({name: fields[name] for name in ("Name", "SKU")})
    yield from choose("Category", category)
    yield from write({name: fields[name] for name in ("Price", "Stock")})
    return (yield from save())


def edit_customer(name: str, group: str) -> Skill:
    """Find a customer by name and move them to another group."""
    yield from click("Customers", "link")
    seen = yield from filter_rows("Name", name)
    yield from row_action(seen, rf"^{name} \|", "View")
    yield from click("Edit", "link")
    yield from choose("Group", group)
    return (yield from save())


def add_coupon(fields: dict[str, str], group: str) -> Skill:
    """On the table of coupons: add one."""
    yield from click("Add coupon", "link")
    yield from write({name: fields[name] for name in ("Name", "Code", "Percent")})
    yield from choose("Group", group)
    yield from write({name: fields[name] for name in ("From", "To")})
    return (yield from save())


def open_page(title: str) -> Skill:
    """Open the form of a content page."""
    seen = yield from open_from_menu("Marketing", "Pages")
    return (yield from row_action(seen, rf"^{title} \|", "Edit"))


def ship(carrier: str, tracking: str) -> Skill:
    """On an order's page: ship it."""
    yield from click("Ship", "link")
    yield from choose("Carrier", carrier)
    yield from put("Tracking number", tracking)
    return (yield from click("Submit shipment", "button"))


def show_period(report: str, start: str, end: str, step: str = "") -> Skill:
    """Open a report and show a period of it."""
    yield from open_from_menu("Reports", report)
    yield from put("From", start)
    yield from put("To", end)
    if step:
        yield from choose("Step", step)
    return (yield from click("Show report", "button"))


def tick_all(names: list[str]) -> Skill:
    """Tick these rows of a table."""
    seen: Observation | None = None
    for name in names:
        seen = yield from click(name, "checkbox", r"Select \d+")
    if seen is None:
        raise LookupError("expected rows to tick, found none")
    return seen


def lines_of(seen: Observation, role: str, pattern: str) -> list[str]:
    """Return the names of this page's elements of a role that match ``pattern``."""
    return [e.name for e in seen.elements if e.role == role and re.fullmatch(pattern, e.name)]


def staying_logged_in(attempt: Callable[[], Expert], user: str, password: str) -> Expert:
    """Follow an expert, log in again where the log-in has run out, and begin anew where a form was lost by that."""
    expert = attempt()
    intent = next(expert)
    while True:
        seen = yield intent
        if "/login" not in seen.url:
            intent = expert.send(seen)
            continue
        yield from write({"User name": user, "Password": password})
        seen = yield from click("Log in", "button")
        if seen.url.endswith("__ADMIN__/"):
            expert = attempt()
            intent = next(expert)
        else:
            intent = expert.send(seen)


def script(*steps: Callable[[Task], Skill]) -> Callable[[Task], Expert]:
    """Return the expert that carries out these steps in turn and then ends the episode."""

    def expert(task: Task) -> Expert:
        for step in steps:
            yield from step(task)
        yield from finish()

    return expert
