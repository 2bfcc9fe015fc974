"""Task templates about one product or one customer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData, slug_of
from sites.admin.records import Customer
from sites.admin.words import PRODUCT_STATUSES
from sites.old_form import Parameters, TaskTemplate

_DISABLED = PRODUCT_STATUSES[1]


def product_path(name: str) -> str:
    """Return the address of a product."""
    return f"/products/{slug_of(name)}"


def saved(
    path: Callable[[Parameters], str], summary: Callable[[Parameters, AdminData], str]
) -> Callable[..., checks.Evaluation]:
    """Return the judge for whom a record's page must say what it should in the end."""
    return lambda p, data: checks.pages(c.record(path(p), summary(p, data)))


def _sample_price(data: AdminData, rng: random.Random) -> Parameters:
    item = sampling.product(data, rng)
    return {"product": item.name, "price": sampling.price_and_stock(item, rng)[0]}


def _product_path(p: Parameters) -> str:
    return product_path(p["product"])


def _priced(p: Parameters, data: AdminData) -> str:
    return replace(data.products[slug_of(p["product"])], price=p["price"]).summary


def _price_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at(_product_path(p)), c.recorded(_product_path(p), _priced(p, data))
    return checks.milestones(
        ("The products are shown", checks.either(c.at("/products*"), c.at("/search*"))),
        ("The product is open", form),
        ("The price is written", checks.either(checks.both(form, checks.has("Price", str(p["price"]))), done)),
        ("The product is saved", done),
    )


def _change_price(task: Task) -> experts.Skill:
    p = task.parameters
    return (yield from experts.edit_product(p["product"], {"Price": str(p["price"])}))


def _sample_disable(data: AdminData, rng: random.Random) -> Parameters:
    return {"product": sampling.product(data, rng).name}


def _off(p: Parameters, data: AdminData) -> str:
    return replace(data.products[slug_of(p["product"])], status=_DISABLED).summary


def _disable_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at(_product_path(p)), c.recorded(_product_path(p), _off(p, data))
    found = checks.either(c.at("/search*"), c.at("/products*"))
    return checks.milestones(
        ("The product is listed", checks.both(found, checks.shows(p["product"]))),
        ("The product is open", form),
        ("The status is chosen", checks.either(checks.both(form, checks.has("Status", _DISABLED)), done)),
        ("The product is saved", done),
    )


def _disable(task: Task) -> experts.Skill:
    yield from experts.look_for(task.parameters["product"], rivals=None)
    yield from experts.click(task.parameters["product"], "link")
    yield from experts.choose("Status", _DISABLED)
    return (yield from experts.save())


def _added(p: Parameters, data: AdminData) -> str:
    return sampling.product_of(p).summary


def _add_product_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at("/products/new"), c.recorded(_product_path(p), _added(p, data))
    named = checks.both(checks.has("Name", p["product"]), checks.has("SKU", p["sku"]))
    chosen = checks.both(named, checks.has("Category", p["category"]))
    return checks.milestones(
        ("The form is open", form),
        ("Name and SKU are written", checks.either(checks.both(form, named), done)),
        ("The category is chosen", checks.either(checks.both(form, chosen), done)),
        ("The product is saved", done),
    )


def add_product(task: Task) -> experts.Skill:
    """Add the product that the task describes."""
    p = task.parameters
    fields = {"Name": p["product"], "SKU": p["sku"], "Price": str(p["price"]), "Stock": str(p["stock"])}
    return (yield from experts.add_product(fields, p["category"]))


def _customer_path(p: Parameters) -> str:
    return f"/customers/{p['email']}"


def _new_customer(p: Parameters, data: AdminData) -> str:
    return Customer(**p).summary


def _judge_customer(p: Parameters, data: AdminData) -> checks.Evaluation:
    path = _customer_path(p)
    record = c.record(path, _new_customer(p, data))
    return checks.pages(record, c.equals(path, "#phone", f"Phone: {p['phone']}"))


def _customer_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at("/customers/new"), c.recorded(_customer_path(p), _new_customer(p, data))
    named = checks.both(checks.has("Name", p["name"]), checks.has("Email", p["email"]))
    chosen = checks.both(named, checks.has("Group", p["group"]))
    return checks.milestones(
        ("The form is open", form),
        ("Name and email are written", checks.either(checks.both(form, named), done)),
        ("The group is chosen", checks.either(checks.both(form, chosen), done)),
        ("The customer is saved", done),
    )


def _add_customer(task: Task) -> experts.Skill:
    p = task.parameters
    yield from experts.click("Customers", "link")
    yield from experts.click("Add customer", "link")
    yield from experts.put("Name", p["name"])
    yield from experts.put("Email", p["email"])
    yield from experts.choose("Group", p["group"])
    yield from experts.put("Phone", p["phone"])
    yield from experts.put("City", p["city"])
    return (yield from experts.save())


def regrouped(p: Parameters, data: AdminData) -> tuple[str, str]:
    """Return the address of the customer of this name, and what the page says when the group is the task's."""
    customer = next(known for known in data.customers.values() if known.name == p["name"])
    return f"/customers/{customer.email}", replace(customer, group=p["group"]).summary


def _judge_group(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(c.record(*regrouped(p, data)))


def _group_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    path, summary = regrouped(p, data)
    form, done = c.at(f"{path}/edit"), c.recorded(path, summary)
    return checks.milestones(
        ("The customer is open", c.at(f"{path}*")),
        ("The form is open", checks.either(form, done)),
        ("The group is chosen", checks.either(checks.both(form, checks.has("Group", p["group"])), done)),
        ("The customer is saved", done),
    )


def move_customer(task: Task) -> experts.Skill:
    """Move the task's customer to another group."""
    return (yield from experts.edit_customer(task.parameters["name"], task.parameters["group"]))


SET_PRICE = TaskTemplate(
    name="admin.set_price",
    site="admin",
    intent="Change the price of the {product} to ${price}.",
    sample=_sample_price,
    evaluation=saved(_product_path, _priced),
    milestones=_price_milestones,
    expert=experts.script(_change_price),
    horizon=8,
)
DISABLE_PRODUCT = TaskTemplate(
    name="admin.disable_product",
    site="admin",
    intent="Disable the product {product}.",
    sample=_sample_disable,
    evaluation=saved(_product_path, _off),
    milestones=_disable_milestones,
    expert=experts.script(_disable),
    horizon=5,
)
ADD_PRODUCT = TaskTemplate(
    name="admin.add_product",
    site="admin",
    intent="Add the product {product} with the SKU {sku} to the {category}: ${price}, {stock} in stock.",
    sample=sampling.new_product,
    evaluation=saved(_product_path, _added),
    milestones=_add_product_milestones,
    expert=experts.script(add_product),
    horizon=10,
)
ADD_CUSTOMER = TaskTemplate(
    name="admin.add_customer",
    site="admin",
    intent="Add the customer {name}, {email}, group {group}, phone {phone}, city {city}.",
    sample=sampling.new_customer,
    evaluation=_judge_customer,
    milestones=_customer_milestones,
    expert=experts.script(_add_customer),
    horizon=9,
)
MOVE_CUSTOMER = TaskTemplate(
    name="admin.move_customer",
    site="admin",
    intent="Move the customer {name} to the group {group}.",
    sample=sampling.new_group,
    evaluation=_judge_group,
    milestones=_group_milestones,
    expert=experts.script(move_customer),
    horizon=8,
    split="test",
)
TEMPLATES = (DISABLE_PRODUCT, SET_PRICE, MOVE_CUSTOMER, ADD_CUSTOMER, ADD_PRODUCT)
"""Templates about one record, from short to long."""
