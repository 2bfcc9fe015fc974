"""Task templates on the shop's pages with scripts: suggestions, a menu that opens on hover, late stock, a question.

Owns the collection ``scripted`` (see ``sites.collections``). Their experts hover, wait and confirm, so they need a
browser; their pages are reached from the finder only.
"""

from __future__ import annotations

import random
import re
from urllib.parse import urlencode

from records.episodes import Task
from sites import checks
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.catalogue_pages import SORT_ORDERS
from sites.shop.data import CITIES, LABELS, ShopData
from sites.shop.finder_pages import WAREHOUSES, stock_by_warehouse, suggestions
from sites.shop.tasks_catalogue import product_path
from sites.task_template import Expert, Intent, Parameters, TaskTemplate, noting

NO_ANSWER = "N/A"
"""What a task that cannot be answered expects to be told, as in WebArena."""
_PIECES = r"(?<=: )\d+(?= pieces)"
_ORDERS = {label.lower(): key for key, label in SORT_ORDERS.items() if key != "popular"}


def _product(data: ShopData, name: str) -> sampling.Product:
    return data.products[name.lower().replace(" ", "-")]


def _start(name: str) -> str:
    """What is typed of a name: all words but the last, which the suggestions then differ in."""
    return name.rsplit(" ", 1)[0]


def _findable(data: ShopData, rng: random.Random) -> str:
    """Draw a product in stock that is suggested for the first words of its name, among others."""
    while True:
        name = sampling.product(data, rng).name
        offered = suggestions(data.products, _start(name))
        if name in offered and len(offered) > 1:
            return name


def shown(name: str) -> checks.Check:
    """The finder shows this product."""
    return c.at(f"/finder?{urlencode({'name': name})}")


def find(name: str) -> experts.Skill:
    """On the finder: type the first words, take the suggestion, and show the product."""
    yield Intent("type", "Product", "textbox", argument=_start(name))
    yield from experts.click(name, "button", experts.PRODUCT)
    return (yield from experts.click("Show", "button"))


def wait_for_stock() -> experts.Skill:
    """On a product in the finder: wait until the warehouses have answered."""
    return (yield Intent("wait"))


def _pieces(text: str, city: str) -> str:
    found = re.search(rf"{city}: (\d+) pieces", text)
    return found[1] if found else NO_ANSWER


def _sample_product(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": _findable(data, rng)}


def _sample_order(data: ShopData, rng: random.Random) -> Parameters:
    return {"category": sampling.category(data, rng).name, "order": rng.choice(sorted(_ORDERS))}


def _sample_stock(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": _findable(data, rng), "city": rng.choice(WAREHOUSES)}


def _sample_no_warehouse(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": _findable(data, rng), "city": rng.choice([city for city in CITIES if city not in WAREHOUSES])}


def _sample_two(data: ShopData, rng: random.Random) -> Parameters:
    wished = {product.name for product in data.usual.wishes}
    while True:
        first, second, city = _findable(data, rng), _findable(data, rng), rng.choice(WAREHOUSES)
        pieces = [stock_by_warehouse(_product(data, name))[city] for name in (first, second)]
        if first != second and pieces[0] != pieces[1] and not wished & {first, second}:
            return {"first": first, "second": second, "city": city}


def _sample_label(data: ShopData, rng: random.Random) -> Parameters:
    return {"label": rng.choice(LABELS[1:])}


def _finding(name: str, *, last: tuple[str, checks.Check]) -> checks.Milestones:
    typed, chosen = checks.has("Product", _start(name)), checks.has("Product", name)
    return checks.milestones(
        ("The first words are typed", checks.either(typed, chosen, shown(name))),
        ("The product is chosen from the list", checks.either(chosen, shown(name))),
        ("The product is shown", shown(name)),
        last,
    )


def _judge_stock(p: Parameters, data: ShopData) -> checks.Evaluation:
    pieces = stock_by_warehouse(_product(data, p["product"])).get(p["city"])
    return checks.answer_including(NO_ANSWER if pieces is None else str(pieces))


def _stock_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return _finding(p["product"], last=("The warehouses have answered", checks.both(shown(p["product"]), _ANSWERED)))


_ANSWERED: checks.Check = checks.shows(*(f"{city}: " for city in WAREHOUSES))


def _more(p: Parameters, data: ShopData) -> str:
    """Return which of the two products the warehouse has more of."""
    names: tuple[str, str] = (p["first"], p["second"])
    return max(names, key=lambda name: stock_by_warehouse(_product(data, name))[p["city"]])


def _wish_more_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    seen = checks.both(shown(p["second"]), _ANSWERED)
    path = product_path(_more(p, data))
    return checks.milestones(
        ("The stock of the first product is seen", checks.both(shown(p["first"]), _ANSWERED)),
        ("The stock of the second product is seen", seen),
        ("The product with more pieces is open", c.at(path)),
        ("It is on the wish list", checks.shows(f"{_more(p, data)} is on your wish list")),
    )


def _show(task: Task) -> Expert:
    yield from find(task.parameters["product"])
    yield from experts.finish()


def _open_department(task: Task) -> Expert:
    p = task.parameters
    yield Intent("hover", "Departments", "button")
    yield from experts.click(p["category"], "link", "[A-Z][a-z]+s")
    yield from experts.choose("Sort by", p["order"].capitalize())
    yield from experts.click("Apply", "button")
    yield from experts.finish()


def _tell_stock(task: Task) -> Expert:
    p = task.parameters
    yield from find(p["product"])
    seen = yield from wait_for_stock()
    yield from experts.finish(_pieces(seen.page_text, p["city"]), _PIECES)


def _wish_more(task: Task) -> Expert:
    p, pieces = task.parameters, list[int]()
    for name in (p["first"], p["second"]):
        if pieces:
            yield from noting(f"{p['first']} {pieces[0]}", experts.click("Finder", "link"))
        yield from find(name)
        seen = yield from wait_for_stock()
        pieces.append(int(_pieces(seen.page_text, p["city"])))
    if pieces[0] > pieces[1]:
        yield from experts.click("Finder", "link")
        yield from find(p["first"])
    yield from experts.click("Product page", "link")
    yield from experts.click("Add to wish list", "button")
    yield from experts.finish()


def _delete(task: Task) -> Expert:
    yield from experts.click("Address book", "link")
    yield from experts.click(f"Delete {task.parameters['label']}", "button", "Delete .*")
    yield from experts.click("Confirm", "button")
    yield from experts.finish()


def _delete_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    book, label = c.at("/address-book"), p["label"]
    asked = checks.both(book, checks.acted("click", f"Delete {label}"))
    return checks.milestones(
        ("The address book is open", book),
        ("Deleting is asked for", asked),
        ("The question is answered", checks.both(asked, checks.acted("click", "Confirm"))),
        ("The address is deleted", checks.both(book, checks.shows(f"Deleted {label}"))),
    )


def _remaining(p: Parameters) -> str:
    return ", ".join(label for label in LABELS if label != p["label"])


def _department_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    page = c.at(f"/category/{p['category'].lower()}*")
    done = c.at(f"/category/{p['category'].lower()}?*sort={_ORDERS[p['order']]}*")
    return checks.milestones(
        ("The menu was opened", checks.either(checks.acted("hover", "Departments"), page)),
        ("The department is open", page),
        ("The order is chosen", checks.either(checks.both(page, checks.has("Sort by", p["order"].capitalize())), done)),
        ("The department is sorted", done),
    )


TEMPLATES = (
    TaskTemplate(
        name="shop.show_suggested",
        site="shop",
        intent="Show the {product} in the product finder.",
        sample=_sample_product,
        evaluation=lambda p, d: c.ends_at(f"/finder?{urlencode({'name': p['product']})}"),
        milestones=lambda p, d: _finding(
            p["product"], last=("Its price is shown", checks.both(shown(p["product"]), checks.shows("Stock")))
        ),
        expert=_show,
        horizon=4,
        start="/finder",
        scripted=True,
    ),
    TaskTemplate(
        name="shop.open_department",
        site="shop",
        intent="Open the {category} from the menu of departments and sort them by {order}.",
        sample=_sample_order,
        evaluation=lambda p, d: c.ends_at(f"/category/{p['category'].lower()}?kind=&sort={_ORDERS[p['order']]}"),
        milestones=_department_milestones,
        expert=_open_department,
        horizon=5,
        start="/finder",
        scripted=True,
    ),
    TaskTemplate(
        name="shop.warehouse_stock",
        site="shop",
        intent="How many pieces of the {product} are in the warehouse of {city}?",
        sample=_sample_stock,
        evaluation=_judge_stock,
        milestones=_stock_milestones,
        expert=_tell_stock,
        horizon=5,
        start="/finder",
        scripted=True,
    ),
    TaskTemplate(
        name="shop.no_such_warehouse",
        site="shop",
        intent="How many pieces of the {product} are in the warehouse of {city}? Answer N/A if that cannot be known.",
        sample=_sample_no_warehouse,
        evaluation=_judge_stock,
        milestones=_stock_milestones,
        expert=_tell_stock,
        horizon=5,
        start="/finder",
        scripted=True,
        split="test",
    ),
    TaskTemplate(
        name="shop.delete_address",
        site="shop",
        intent="Delete the address {label} from the address book.",
        sample=_sample_label,
        evaluation=lambda p, d: checks.pages(c.equals("/address-book", "#labels", _remaining(p))),
        milestones=_delete_milestones,
        expert=_delete,
        horizon=4,
        start="/finder",
        scripted=True,
    ),
    TaskTemplate(
        name="shop.wish_what_is_there",
        site="shop",
        intent="Put the {first} or the {second} on the wish list, whichever the warehouse of {city} has more of.",
        sample=_sample_two,
        evaluation=lambda p, d: checks.pages(c.includes("/wishlist", "#wish-list", _more(p, d))),
        milestones=_wish_more_milestones,
        expert=_wish_more,
        horizon=lambda p, d: 12 if _more(p, d) == p["second"] else 16,
        start="/finder",
        scripted=True,
        split="validation",
    ),
)
"""Templates on pages with scripts."""
