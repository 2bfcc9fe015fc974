"""Task templates of many steps, put together from what shorter ones teach."""

from __future__ import annotations

import random
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData, slug_of
from sites.admin.records import CreditMemo
from sites.admin.tasks_marketing import add_coupon, coupon_path, coupon_summary, open_coupons, page_of, page_path
from sites.admin.tasks_orders import becomes, path, shipped
from sites.admin.tasks_records import add_product, move_customer, product_path, regrouped
from sites.admin.words import REFUND_REASONS, REFUNDED
from sites.old_form import Parameters, TaskTemplate
from sites.shop.data import SHIPPED

_ORDINALS = ("first", "second", "third")


def _sample_products(data: AdminData, rng: random.Random) -> Parameters:
    one, other = rng.sample(list(data.products.values()), 2)
    price, stock = sampling.price_and_stock(one, rng)
    other_price, other_stock = sampling.price_and_stock(other, rng)
    return {
        "first": one.name, "price": price, "stock": stock,
        "second": other.name, "other_price": other_price, "other_stock": other_stock,
    }  # fmt: skip


def _changed(p: Parameters, data: AdminData) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return address and summary of both products as they shall be."""
    one, other = (data.products[slug_of(p[name])] for name in _ORDINALS[:2])
    return (
        (product_path(one.name), replace(one, price=p["price"], stock=p["stock"]).summary),
        (product_path(other.name), replace(other, price=p["other_price"], stock=p["other_stock"]).summary),
    )


def _judge_products(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(*(c.record(*target) for target in _changed(p, data)))


def _products_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    (one, summary), (other, other_summary) = _changed(p, data)
    return checks.milestones(
        ("The first product is open", c.at(one)),
        ("The first product is saved", c.recorded(one, summary)),
        ("The second product is open", c.at(other)),
        ("The second product is saved", c.recorded(other, other_summary)),
    )


def _edit_first(task: Task) -> experts.Skill:
    p = task.parameters
    return (yield from experts.edit_product(p["first"], {"Price": str(p["price"]), "Stock": str(p["stock"])}))


def _edit_second(task: Task) -> experts.Skill:
    p = task.parameters
    fields = {"Price": str(p["other_price"]), "Stock": str(p["other_stock"])}
    return (yield from experts.edit_product(p["second"], fields))


def _sample_three(data: AdminData, rng: random.Random) -> Parameters:
    fit = [order.number for order in data.orders.values() if order.status in sampling.OPEN]
    numbers = dict(zip(_ORDINALS, rng.sample(fit, 3), strict=True))
    codes = {f"{name}_tracking": sampling.tracking(rng) for name in _ORDINALS}
    return {**numbers, "carrier": sampling.to_ship(data, rng)["carrier"], **codes}


def _parcels(p: Parameters) -> list[Parameters]:
    """Return order, carrier and tracking number of each parcel."""
    return [{"number": p[n], "carrier": p["carrier"], "tracking": p[f"{n}_tracking"]} for n in _ORDINALS]


def _judge_three(p: Parameters, data: AdminData) -> checks.Evaluation:
    targets = []
    for parcel in _parcels(p):
        targets.append(c.record(path(parcel), becomes(parcel, data, SHIPPED)))
        targets.append(c.includes(path(parcel), "#shipment", shipped(parcel)))
    return checks.pages(*targets)


def _three_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    first, second, third = (c.recorded(path(parcel), shipped(parcel)) for parcel in _parcels(p))
    return checks.milestones(
        ("The first order is shipped", first),
        ("The second order is shipped", second),
        ("The third order is open", c.at(f"/orders/{p['third']}*")),
        ("The third order is shipped", third),
    )


def _ship_three(task: Task) -> experts.Skill:
    for parcel in _parcels(task.parameters):
        yield from experts.open_order(parcel["number"])
        seen = yield from experts.ship(parcel["carrier"], parcel["tracking"])
    return seen


def _sample_refund(data: AdminData, rng: random.Random) -> Parameters:
    order = sampling.order(data, rng, lambda o: o.invoice is not None and o.memo is None)
    reason, amount = rng.choice(REFUND_REASONS[1:]), rng.randint(5, order.total - 1)
    return {"number": order.number, "reason": reason, "amount": amount, **sampling.new_group(data, rng)}


def _judge_refund(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(
        c.record(path(p), becomes(p, data, REFUNDED)),
        c.includes(path(p), "#memo", _refunded(p)),
        c.record(*regrouped(p, data)),
    )


def _refunded(p: Parameters) -> str:
    memo = CreditMemo(0, p["reason"], p["amount"])
    return f": {memo.reason}, ${memo.amount}"


def _refund_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    customer, summary = regrouped(p, data)
    return checks.milestones(
        ("The order is open", c.at(f"{path(p)}*")),
        ("The order is refunded", c.recorded(path(p), _refunded(p))),
        ("The customer is open", c.at(f"{customer}*")),
        ("The customer is moved", c.recorded(customer, summary)),
    )


def _refund(task: Task) -> experts.Skill:
    p = task.parameters
    yield from experts.open_order(p["number"])
    yield from experts.click("Credit memo", "link")
    yield from experts.choose("Reason", p["reason"])
    yield from experts.write({"Refund": str(p["amount"])})
    return (yield from experts.click("Submit credit memo", "button"))


def _sample_replace(data: AdminData, rng: random.Random) -> Parameters:
    return {"old": rng.choice(list(data.coupons)), **sampling.new_coupon(rng)}


def _judge_replace(p: Parameters, data: AdminData) -> checks.Evaluation:
    gone = c.equals(f"/coupons/{p['old']}", "#record", "")
    count = c.equals("/coupons", "#count", f"{len(data.coupons)} coupons")
    return checks.pages(c.record(coupon_path(p), coupon_summary(p, data)), gone, count)


def _replace_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at("/coupons/new"), c.recorded(coupon_path(p), coupon_summary(p, data))
    deleted = checks.both(c.at("/coupons"), checks.shows(f"Deleted {p['old']}"))
    return checks.milestones(
        ("The coupons are shown", c.at("/coupons*")),
        ("The old coupon is deleted", deleted),
        ("The form is open", form),
        ("The new coupon is saved", done),
    )


def _delete_old(task: Task) -> experts.Skill:
    seen = yield from open_coupons(task)
    if task.parameters["old"] not in seen.page_text:
        seen = yield from experts.click("Next page", "link")
    yield from experts.row_action(seen, rf"\| {task.parameters['old']} \|", "Delete")
    return (yield from experts.click("Confirm", "button"))


def _replace_steps(p: Parameters, data: AdminData) -> int:
    return 13 + list(data.coupons).index(p["old"]) // 5


def _sample_launch(data: AdminData, rng: random.Random) -> Parameters:
    return {**sampling.new_product(data, rng), **sampling.new_coupon(rng), **sampling.new_text(data, rng)}


def _launched(p: Parameters, data: AdminData) -> tuple[tuple[str, str], tuple[str, str], tuple[str, str]]:
    """Return address and summary of the product, the coupon and the content page as they shall be."""
    return (
        (product_path(p["product"]), sampling.product_of(p).summary),
        (coupon_path(p), coupon_summary(p, data)),
        (page_path(p), replace(page_of(p, data), text=p["text"]).summary),
    )


def _judge_launch(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(*(c.record(*target) for target in _launched(p, data)))


def _launch_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    item, coupon, page = (c.recorded(*target) for target in _launched(p, data))
    return checks.milestones(
        ("The product is saved", item),
        ("The coupon's form is open", checks.either(c.at("/coupons/new"), coupon)),
        ("The coupon is saved", coupon),
        ("The page is saved", page),
    )


def _change_text(task: Task) -> experts.Skill:
    yield from experts.open_page(task.parameters["page"])
    yield from experts.put("Text", task.parameters["text"])
    return (yield from experts.save())


TWO_PRODUCTS = TaskTemplate(
    name="admin.two_products",
    site="admin",
    intent="Change the {first} to ${price} and {stock} in stock, and the {second} to ${other_price} "
    "and {other_stock} in stock.",
    sample=_sample_products,
    evaluation=_judge_products,
    milestones=_products_milestones,
    expert=experts.script(_edit_first, _edit_second),
    horizon=17,
)
SHIP_THREE = TaskTemplate(
    name="admin.ship_three",
    site="admin",
    intent="Ship orders {first}, {second} and {third} by {carrier} with the tracking numbers {first_tracking}, "
    "{second_tracking} and {third_tracking}.",
    sample=_sample_three,
    evaluation=_judge_three,
    milestones=_three_milestones,
    expert=experts.script(_ship_three),
    horizon=19,
)
REFUND_AND_MOVE = TaskTemplate(
    name="admin.refund_and_move",
    site="admin",
    intent="Refund ${amount} of order {number} with the reason {reason}, then move the customer {name} "
    "to the group {group}.",
    sample=_sample_refund,
    evaluation=_judge_refund,
    milestones=_refund_milestones,
    expert=experts.script(_refund, move_customer),
    horizon=14,
)
REPLACE_COUPON = TaskTemplate(
    name="admin.replace_coupon",
    site="admin",
    intent="Delete the coupon {old} and add the coupon {name} with the code {code}: {percent} percent for the group "
    "{group} from {start} to {end}.",
    sample=_sample_replace,
    evaluation=_judge_replace,
    milestones=_replace_milestones,
    expert=experts.script(_delete_old, add_coupon),
    horizon=_replace_steps,
    split="validation",
)
LAUNCH = TaskTemplate(
    name="admin.launch",
    site="admin",
    intent="Add the product {product} with the SKU {sku} to the {category}: ${price}, {stock} in stock. Add the coupon "
    "{name} with the code {code}: {percent} percent for the group {group} from {start} to {end}. Change the text of "
    "the page {page} to: {text}",
    sample=_sample_launch,
    evaluation=_judge_launch,
    milestones=_launch_milestones,
    expert=experts.script(add_product, open_coupons, add_coupon, _change_text),
    horizon=25,
)
TEMPLATES = (REPLACE_COUPON, REFUND_AND_MOVE, TWO_PRODUCTS, SHIP_THREE, LAUNCH)
"""Long templates."""
