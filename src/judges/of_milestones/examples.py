"""Examples of milestones by kind of site, which a model is shown before it writes its own.

Owns the examples: two for each kind, after templates of the embedded sites, and which sites are of which kind. They
are ours, and no task of an evaluation set is among them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from judges.of_milestones.proposal import ProposedMilestones


@dataclass(frozen=True, slots=True)
class Example:
    """A task and its milestones, as a model should answer."""

    kind: str
    task: str
    answer: ProposedMilestones


def examples_for(sites: tuple[str, ...], shuffled_by: str, most: int = 6) -> list[Example]:
    """Return ``most`` examples, those of the task's kinds of site among them, in an order that ``shuffled_by`` decides.

    The order is not that of kinds: a model must not learn what stands where.
    """
    kinds = {_KINDS.get(site, site) for site in sites}
    order = random.Random(shuffled_by)
    near = [example for example in EXAMPLES if example.kind in kinds]
    far = [example for example in EXAMPLES if example.kind not in kinds]
    chosen = (order.sample(near, len(near)) + order.sample(far, len(far)))[:most]
    return order.sample(chosen, len(chosen))


def _url(pattern: str) -> dict[str, str]:
    return {"kind": "url", "value": pattern}


def _text(text: str) -> dict[str, str]:
    return {"kind": "text", "value": text}


def _field(name: str, holds: str = "", role: str = "") -> dict[str, str]:
    return {"kind": "element", "value": name, "holds": holds, "role": role}


def _example(kind: str, task: str, *milestones: tuple[str, list[dict[str, str]]]) -> Example:
    listed: list[dict[str, Any]] = [{"description": said, "conditions": conditions} for said, conditions in milestones]
    return Example(kind, task, ProposedMilestones.model_validate({"milestones": listed}))


_KINDS = {
    "shopping": "shop",
    "shopping_admin": "admin",
    "reddit": "forum",
    "gitlab": "code",
    "wikipedia": "wiki",
}
"""Which kind another benchmark's site is of."""

EXAMPLES = (
    _example(
        "shop",
        "Put 2 of the Nova Linen Pen in Blue in the cart.",
        ("The page of the Nova Linen Pen is open", [_url("__SHOP__/product/nova-linen-pen*")]),
        ("The colour Blue is chosen", [_url("__SHOP__/product/nova-linen-pen*"), _field("Colour", "Blue")]),
        ("The quantity 2 is chosen", [_url("__SHOP__/product/nova-linen-pen*"), _field("Quantity", "2")]),
        ("The cart holds 2 of the Nova Linen Pen in Blue", [_url("__SHOP__/cart*"), _text("Nova Linen Pen, Blue")]),
    ),
    _example(
        "shop",
        "What is the total of order 1016?",
        ("The list of orders is open", [_url("__SHOP__/orders*")]),
        ("Order 1016 is listed", [_url("__SHOP__/orders*"), _text("Order 1016")]),
        ("The page of order 1016 is open", [_url("__SHOP__/orders/1016*")]),
        ("The total of order 1016 is in sight", [_url("__SHOP__/orders/1016*"), _text("Total")]),
    ),
    _example(
        "admin",
        "How many orders with the status Cancelled were placed in September?",
        ("The list of orders is open", [_url("__ADMIN__/orders*")]),
        ("The status Cancelled is chosen", [_field("Status", "Cancelled", "select")]),
        ("September is written as the time", [_field("From", "2025-09-01"), _field("To", "2025-09-30")]),
        ("The cancelled orders of September are listed", [_url("__ADMIN__/orders?*status=Cancelled*2025-09*")]),
    ),
    _example(
        "admin",
        "What is the group of the customer Cleo Green?",
        ("The list of customers is open", [_url("__ADMIN__/customers*")]),
        ("Cleo Green is searched for by name", [_field("Name", "Cleo Green")]),
        ("Cleo Green is among the customers found", [_url("__ADMIN__/customers?*"), _field("Cleo Green", role="link")]),
        ("The page of Cleo Green is open", [_url("__ADMIN__/customers/*"), _text("Cleo Green"), _text("Group")]),
    ),
    _example(
        "forum",
        "Submit a thread to the forum cars with the title New concert story and the text: That is great news",
        ("The form for a new thread is open", [_url("__FORUM__/submit*")]),
        ("The forum cars is chosen", [_url("__FORUM__/submit*"), _field("Forum", "cars")]),
        ("Title and text are written", [_field("Title", "New concert story"), _field("Text", "That is great news")]),
        ("The thread is in the forum cars", [_url("__FORUM__/f/cars/*"), _text("New concert story")]),
    ),
    _example(
        "forum",
        "Send the user jonas96 the message: That is great news",
        ("The profile of jonas96 is open", [_url("__FORUM__/user/jonas96*")]),
        ("The form for a message to jonas96 is open", [_url("__FORUM__/user/jonas96/message*")]),
        ("The message is written", [_field("Message", "That is great news", "textbox")]),
        ("The message is sent", [_url("__FORUM__/user/jonas96/message*"), _text("was sent")]),
    ),
    _example(
        "code",
        "Invite anna to the project mobile/login as Guest.",
        ("The project mobile/login is open", [_url("__CODE__/mobile/login*")]),
        ("Its members are open", [_url("__CODE__/mobile/login/members*")]),
        ("The invitation names anna and the role Guest", [_field("User name", "anna"), _field("Role", "Guest")]),
        ("The page says that anna was invited", [_text("anna was invited as Guest")]),
    ),
    _example(
        "code",
        "Show the to-do items of the type review from nora.",
        ("The to-do list is open", [_url("__CODE__/todos*")]),
        ("The type review is chosen", [_url("__CODE__/todos*"), _field("Type", "review")]),
        ("The author nora is chosen", [_url("__CODE__/todos*"), _field("Author", "nora")]),
        ("The items of the type review from nora are shown", [_url("__CODE__/todos?*type=review*author=nora*")]),
    ),
    _example(
        "map",
        "Which bank is nearest to Old Pharmacy, Northam?",
        ("Old Pharmacy is searched for", [_url("__MAP__/search*"), _text("Old Pharmacy")]),
        ("The page of Old Pharmacy in Northam is open", [_url("__MAP__/place/*"), _text("Old Pharmacy")]),
        ("The search for places nearby is open", [_url("__MAP__/place/*/nearby*")]),
        ("The banks nearby are shown", [_url("__MAP__/place/*/nearby?*kind=bank*")]),
    ),
    _example(
        "map",
        "At what time does Red Pharmacy, Elmford close on weekdays?",
        ("A search is made", [_url("__MAP__/search*")]),
        ("Red Pharmacy is among the places found", [_url("__MAP__/search*"), _field("Red Pharmacy", role="link")]),
        ("The page of Red Pharmacy in Elmford is open", [_url("__MAP__/place/*"), _text("Red Pharmacy")]),
        ("Its opening hours are in sight", [_url("__MAP__/place/*"), _text("Opening hours")]),
    ),
    _example(
        "wiki",
        "What does the encyclopedia say under Birthplace about the architect of Corner Park?",
        ("Corner Park is searched for", [{"kind": "acted", "action": "search", "value": "Search"}]),
        ("The article Corner Park is open", [_url("__WIKI__/wiki/corner-park*")]),
        ("The architect is named on the page", [_url("__WIKI__/wiki/corner-park*"), _text("Architect")]),
        ("The article about the architect is open", [_url("__WIKI__/wiki/*"), _text("Birthplace")]),
    ),
    _example(
        "wiki",
        "Who wrote the first version of the article Elmford University?",
        ("The article Elmford University is open", [_url("__WIKI__/wiki/elmford-university*")]),
        ("Its history is open", [_url("__WIKI__/wiki/elmford-university/history*")]),
        ("The first version is in sight", [_url("__WIKI__/wiki/elmford-university/history*"), _text("First version")]),
        ("The name of its author is answered", [_url("__WIKI__/wiki/*/history*"), _text("First version")]),
    ),
)
