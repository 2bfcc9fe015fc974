"""What tasks over several sites have in common: going from one site to another, draws of one site's data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from sites.checks import Check, both, either, shows
from sites.experts import Actions, Intent
from sites.shop import checks as shop
from sites.shop import sampling as goods

Data = Mapping[str, Any]
"""The data of a task's sites by their names."""


def on(site: str, draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return a draw over several sites' data that is the ``draw`` of one of them."""

    def drawn_there(data: Data, rng: random.Random, *of: Any) -> Any:
        return draw(data[site], rng, *of)

    return drawn_there


def two_of_different_price(data: Data, rng: random.Random) -> dict[str, str]:
    """Draw two products of the shop of which one is cheaper."""
    first, second = goods.product(data["shop"], rng), goods.product(data["shop"], rng)
    while data["shop"].product(first).price == data["shop"].product(second).price:
        second = goods.product(data["shop"], rng)
    return {"first": first, "second": second}


def go_to(site: str) -> Actions:
    """Go to the front page of another of the task's sites, by the bar at the top of every page."""
    return (yield Intent("click", site, "link"))


def found_in_shop(name: str) -> Check:
    """The search results or the page of a product are shown."""
    return either(both(shop.at("/search?*"), shows(name)), shop.at(shop.product_path(name)))
