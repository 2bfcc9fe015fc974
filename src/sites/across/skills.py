"""What tasks over several sites have in common: going from one site to another, a product found.

Owns the way over the bar of other sites, which every page of a session with several sites has at its top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sites import checks
from sites.old_form import Intent, Skill
from sites.shop import checks as shop

Data = Mapping[str, Any]
"""The data of a task's sites by their names."""


def go_to(site: str) -> Skill:
    """Go to the front page of another of the task's sites."""
    return (yield Intent("click", site, "link"))


def found_in_shop(name: str) -> checks.Check:
    """The search results or the page of a product are shown."""
    listed = checks.both(shop.at("/search?*"), checks.shows(name))
    return checks.either(listed, shop.at(shop.product_path(name)))


def both(one: checks.Evaluation, other: checks.Evaluation) -> checks.Evaluation:
    """Return the evaluation that wants the page contents of two evaluations."""
    if [one["eval_types"], other["eval_types"]] != [["program_html"]] * 2:
        raise ValueError(f"expected evaluations of page contents, found {one['eval_types']} and {other['eval_types']}")
    return {**one, "program_html": [*one["program_html"], *other["program_html"]]}
