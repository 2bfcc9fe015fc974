"""Task templates about the reports of a period."""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, reports
from sites.admin.data import AdminData
from sites.admin.dates import draw_period
from sites.old_form import Expert, Parameters, TaskTemplate

_SHOWN_FIRST = "Month"


def _sample_sales(data: AdminData, rng: random.Random) -> Parameters:
    start, end = draw_period(rng)
    return {"start": start, "end": end, "step": rng.choice([s for s in reports.STEPS if s != _SHOWN_FIRST])}


def _sales_path(p: Parameters) -> str:
    return f"/reports/sales?start={p['start']}&end={p['end']}&step={p['step']}"


def _judge_sales(p: Parameters, data: AdminData) -> checks.Evaluation:
    return c.ends_at(_sales_path(p))


def _period_milestones(p: Parameters, report: str) -> checks.Milestones:
    step = f"&step={p['step']}" if "step" in p else ""
    shown = c.at(f"/reports/{report}?start={p['start']}&end={p['end']}{step}")
    return checks.milestones(
        ("The report is open", c.at(f"/reports/{report}*")),
        ("The first day is written", checks.either(checks.has("From", p["start"]), shown)),
        ("The last day is written", checks.either(checks.has("To", p["end"]), shown)),
        ("The report of the period is shown", shown),
    )


def _sales_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    return _period_milestones(p, "sales")


def _show_sales(task: Task) -> experts.Skill:
    p = task.parameters
    return (yield from experts.show_period("Sales report", p["start"], p["end"], p["step"]))


def _ranked(p: Parameters, data: AdminData, kind: str) -> reports.Ranked:
    orders = reports.counted(data.orders.values(), p["start"], p["end"])
    return reports.customers(orders) if kind == "customers" else reports.bestsellers(orders)


def _sample_best(kind: str, data: AdminData, rng: random.Random) -> Parameters:
    """Only periods in which one row leads."""
    while True:
        start, end = draw_period(rng)
        first, second, *_ = _ranked({"start": start, "end": end}, data, kind)
        if (first[2] > second[2]) if kind == "customers" else (first[1] > second[1]):
            return {"start": start, "end": end}


def _sample_customer(data: AdminData, rng: random.Random) -> Parameters:
    return _sample_best("customers", data, rng)


def _judge_customer(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(_ranked(p, data, "customers")[0][0])


def _customer_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    return _period_milestones(p, "customers")


def _find_customer(task: Task) -> Expert:
    seen = yield from experts.show_period("Customer report", task.parameters["start"], task.parameters["end"])
    yield from experts.finish(experts.read(seen, rf"Total ({experts.PERSON})"), experts.PERSON)


def _sample_product(data: AdminData, rng: random.Random) -> Parameters:
    return _sample_best("bestsellers", data, rng)


def _judge_product(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(_ranked(p, data, "bestsellers")[0][0])


def _product_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    return _period_milestones(p, "bestsellers")


def _find_product(task: Task) -> Expert:
    seen = yield from experts.show_period("Bestseller report", task.parameters["start"], task.parameters["end"])
    name = r"[A-Z][a-z]+ [A-Z][a-z]+ [A-Z][a-z]+"
    yield from experts.finish(experts.read(seen, rf"Total ({name})"), name)


SHOW_SALES = TaskTemplate(
    name="admin.show_sales",
    site="admin",
    intent="Show the sales report from {start} to {end} by {step}.",
    sample=_sample_sales,
    evaluation=_judge_sales,
    milestones=_sales_milestones,
    expert=experts.script(_show_sales),
    horizon=7,
)
BEST_CUSTOMER = TaskTemplate(
    name="admin.best_customer",
    site="admin",
    intent="Which customer spent most from {start} to {end}?",
    sample=_sample_customer,
    evaluation=_judge_customer,
    milestones=_customer_milestones,
    expert=_find_customer,
    horizon=6,
)
BESTSELLER = TaskTemplate(
    name="admin.bestseller",
    site="admin",
    intent="Which product sold best from {start} to {end}?",
    sample=_sample_product,
    evaluation=_judge_product,
    milestones=_product_milestones,
    expert=_find_product,
    horizon=6,
    split="test",
)
TEMPLATES = (BEST_CUSTOMER, BESTSELLER, SHOW_SALES)
"""Templates about reports."""
