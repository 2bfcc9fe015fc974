"""Task templates that ask about customers and about what visitors searched for; some have no answer."""

from __future__ import annotations

import random
import re

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts
from sites.admin.data import AdminData, Term
from sites.admin.report_pages import ROWS
from sites.old_form import Expert, Parameters, TaskTemplate
from sites.shop.data import MONTHS

_FACTS = ("phone number", "city", "group")


def _sample_fact(data: AdminData, rng: random.Random) -> Parameters:
    return {"fact": rng.choice(_FACTS), "name": rng.choice(list(data.customers.values())).name}


def _judge_fact(p: Parameters, data: AdminData) -> checks.Evaluation:
    customer = next(known for known in data.customers.values() if known.name == p["name"])
    found = {"phone number": customer.phone, "city": customer.city, "group": customer.group}[p["fact"]]
    return checks.answer(found) if found else checks.no_answer("No phone number of this customer is known.")


def _fact_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    customer = next(known for known in data.customers.values() if known.name == p["name"])
    path, listed = f"/customers/{customer.email}", f"/customers?name={p['name'].replace(' ', '+')}*"
    opened = c.at(f"{path}*")
    return checks.milestones(
        ("The customers are shown", checks.either(c.at("/customers*"), opened)),
        ("The name is written", checks.either(checks.has("Name", p["name"]), c.at(listed), opened)),
        ("The customer is listed", checks.either(checks.both(c.at(listed), checks.shows(p["name"])), opened)),
        ("The customer is open", checks.both(opened, checks.shows("Phone"))),
    )


def _find_fact(task: Task) -> Expert:
    name = task.parameters["name"]
    yield from experts.click("Customers", "link")
    seen = yield from experts.filter_rows("Name", name)
    seen = yield from experts.row_action(seen, rf"^{name} \|", "View")
    record = re.search(rf"{name}, \S+, (?P<group>\w+), (?P<city>\w+) ", seen.page_text)
    if record is None:
        raise LookupError(f"expected the record of {name!r}, found {seen.page_text!r}")
    phone = experts.read(seen, r"Phone: (\d{3}-\d{4})", lacking=experts.NONE)
    yield from experts.finish({"phone number": phone, **record.groupdict()}[task.parameters["fact"]])


def _term(p: Parameters, data: AdminData) -> Term:
    return next(term for term in data.terms if term.words == p["term"])


def _term_page(p: Parameters, data: AdminData) -> int:
    return data.terms.index(_term(p, data)) // ROWS


def _sample_term(data: AdminData, rng: random.Random) -> Parameters:
    return {"term": rng.choice(data.terms).words}


def _judge_term(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(str(_term(p, data).uses))


def _term_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    page, terms = _term_page(p, data), c.at("/reports/terms*")
    there = checks.both(terms, checks.shows(p["term"]))
    return checks.milestones(
        ("The menu is used", checks.either(checks.acted("click", "Reports"), c.at("/reports/*"))),
        ("The search terms are shown", terms),
        ("The list is turned over", checks.either(c.at(f"/reports/terms?page={page + 1}"), there)),
        ("The term is shown", there),
    )


def _to_term(p: Parameters, pages: int) -> experts.Skill:
    seen = yield from experts.open_from_menu("Reports", "Search terms")
    for _ in range(pages):
        if p["term"] in seen.page_text:
            break
        seen = yield from experts.click("Next page", "link")
    return seen


def _find_term(task: Task) -> Expert:
    seen = yield from _to_term(task.parameters, task.horizon)
    yield from experts.finish(experts.read(seen, rf"{task.parameters['term']} \d+ (\d+)"), r"\b\d{2,3}\b")


def _sample_month(data: AdminData, rng: random.Random) -> Parameters:
    return {**_sample_term(data, rng), "month": rng.choice(MONTHS)}


def _judge_month(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.no_answer("The report of search terms does not say when they were used.")


def _find_no_month(task: Task) -> Expert:
    yield from _to_term(task.parameters, task.horizon)
    yield from experts.finish(experts.NONE, r"\b\d{2,3}\b")


CUSTOMER_FACT = TaskTemplate(
    name="admin.customer_fact",
    site="admin",
    intent="What is the {fact} of the customer {name}?",
    sample=_sample_fact,
    evaluation=_judge_fact,
    milestones=_fact_milestones,
    expert=_find_fact,
    horizon=5,
)
TERM_USES = TaskTemplate(
    name="admin.term_uses",
    site="admin",
    intent="How often was {term} searched for?",
    sample=_sample_term,
    evaluation=_judge_term,
    milestones=_term_milestones,
    expert=_find_term,
    horizon=lambda p, data: 3 + _term_page(p, data),
)
TERM_IN_MONTH = TaskTemplate(
    name="admin.term_in_month",
    site="admin",
    intent="How often was {term} searched for in {month}?",
    sample=_sample_month,
    evaluation=_judge_month,
    milestones=_term_milestones,
    expert=_find_no_month,
    horizon=lambda p, data: 3 + _term_page(p, data),
)
TEMPLATES = (CUSTOMER_FACT, TERM_USES, TERM_IN_MONTH)
"""Questions about customers and search terms."""
