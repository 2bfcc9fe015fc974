"""Task templates about one coupon or one content page."""

from __future__ import annotations

import random
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData, slug_of
from sites.admin.records import Page
from sites.admin.tasks_records import saved
from sites.admin.words import PAGE_TITLES
from sites.old_form import Parameters, TaskTemplate


def _sample_coupon(data: AdminData, rng: random.Random) -> Parameters:
    return sampling.new_coupon(rng)


def coupon_path(p: Parameters) -> str:
    """Return the address of the coupon that the task describes."""
    return f"/coupons/{p['code']}"


def coupon_summary(p: Parameters, data: AdminData) -> str:
    """Return what the page of that coupon says."""
    return sampling.coupon_of(p).summary


def _coupon_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at("/coupons/new"), c.recorded(coupon_path(p), coupon_summary(p, data))
    named = checks.both(checks.has("Name", p["name"]), checks.has("Code", p["code"]))
    chosen = checks.both(named, checks.has("Group", p["group"]))
    return checks.milestones(
        ("The form is open", form),
        ("Name and code are written", checks.either(checks.both(form, named), done)),
        ("The group is chosen", checks.either(checks.both(form, chosen), done)),
        ("The coupon is saved", done),
    )


def add_coupon(task: Task) -> experts.Skill:
    """On the table of coupons: add the coupon that the task describes."""
    p = task.parameters
    dates = {"From": p["start"], "To": p["end"]}
    fields = {"Name": p["name"], "Code": p["code"], "Percent": str(p["percent"]), **dates}
    return (yield from experts.add_coupon(fields, p["group"]))


def open_coupons(task: Task) -> experts.Skill:
    """Open the table of coupons."""
    return (yield from experts.open_from_menu("Marketing", "Coupons"))


def _sample_rename(data: AdminData, rng: random.Random) -> Parameters:
    return {"page": rng.choice(list(data.pages.values())).title, "title": rng.choice(PAGE_TITLES)}


def page_path(p: Parameters) -> str:
    """Return the address of the task's content page; it stays when the page is renamed."""
    return f"/pages/{slug_of(p['page'])}"


def page_of(p: Parameters, data: AdminData) -> Page:
    """Return the task's content page as it is at first."""
    return data.pages[slug_of(p["page"])]


def _renamed(p: Parameters, data: AdminData) -> str:
    return replace(page_of(p, data), title=p["title"]).summary


def _rename_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at(page_path(p)), c.recorded(page_path(p), _renamed(p, data))
    return checks.milestones(
        ("The pages are shown", c.at("/pages*")),
        ("The page is open", form),
        ("The title is written", checks.either(checks.both(form, checks.has("Title", p["title"])), done)),
        ("The page is saved", done),
    )


def _rename(task: Task) -> experts.Skill:
    yield from experts.open_page(task.parameters["page"])
    yield from experts.put("Title", task.parameters["title"])
    return (yield from experts.save())


RENAME_PAGE = TaskTemplate(
    name="admin.rename_page",
    site="admin",
    intent="Change the title of the page {page} to {title}.",
    sample=_sample_rename,
    evaluation=saved(page_path, _renamed),
    milestones=_rename_milestones,
    expert=experts.script(_rename),
    horizon=6,
)
ADD_COUPON = TaskTemplate(
    name="admin.add_coupon",
    site="admin",
    intent="Add the coupon {name} with the code {code}: {percent} percent for the group {group} from {start} to {end}.",
    sample=_sample_coupon,
    evaluation=saved(coupon_path, coupon_summary),
    milestones=_coupon_milestones,
    expert=experts.script(open_coupons, add_coupon),
    horizon=11,
)
TEMPLATES = (RENAME_PAGE, ADD_COUPON)
"""Templates about coupons and content pages."""
