"""Pages of a customer: log-in, account, addresses, wish list, newsletter, messages.

Owns the validation of these forms. A log-in only ever leads back into the shop itself.
"""

from __future__ import annotations

import re
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.forms import Filling, form, refuse_if, show
from sites.rendering import read_form, render, see_other
from sites.shop.access import customer, known_product, login_first, shop
from sites.shop.data import FREQUENCIES, SUBJECTS, Address
from sites.shop.state import Message, Newsletter, find_address

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_POSTCODE = re.compile(r"[0-9]{4}")
_LONGEST = 60


@form("shop/login.html")
def login(request: Request) -> Filling:
    """The log-in form."""
    state = shop(request)
    wanted = request.query_params.get("next", "/") if request.method == "GET" else "/"
    sent = yield show({"email": "", "password": "", "next": wanted})
    state.log_in(sent["email"], sent["password"])
    state.flash("You are logged in")
    after = sent["next"]
    return after if re.fullmatch(r"/[a-z0-9/-]*", after) and "//" not in after else "/"


async def logout(request: Request) -> Response:
    """Log out."""
    shop(request).log_out()
    shop(request).flash("You are logged out")
    return see_other("/")


@login_first
async def account(request: Request) -> Response:
    """Who is logged in."""
    return render(request, "shop/account.html", customer=customer(request))


@login_first
async def addresses(request: Request) -> Response:
    """All addresses."""
    return render(request, "shop/addresses.html", addresses=customer(request).addresses)


@login_first
@form("shop/address_form.html", whole=True)
def edit_address(request: Request) -> Filling:
    """The address form: new in the account, new in the checkout, or a change."""
    state, owner = shop(request), customer(request)
    is_new, in_checkout = request.url.path.endswith("/new"), request.url.path.startswith("/checkout")
    known = None if is_new else find_address(owner, request.query_params.get("label", ""))
    if known is None and not is_new:
        state.flash("There is no such address")
        return "/addresses"
    fields = {"label": "", "street": "", "city": "", "postcode": ""}
    sent = yield show(asdict(known) if known else fields, heading=f"Edit {known.label}" if known else "New address")
    refuse_if(
        *((not 0 < len(sent[name]) <= _LONGEST, f"Write a {name}") for name in ("label", "street", "city")),
        (not _POSTCODE.fullmatch(sent["postcode"]), "Postcode must be 4 digits"),
    )
    state.save_address(owner, Address(**sent), replaces=known.label if known else "")
    state.flash(f"Saved {sent['label']}")
    if in_checkout:
        state.draft.address = sent["label"]
    return "/checkout" if in_checkout else "/addresses"


@login_first
async def delete_address(request: Request) -> Response:
    """Delete an address, and return to the page that lists them."""
    state, owner = shop(request), customer(request)
    label = (await read_form(request)).get("label", "")
    owner.addresses[:] = [address for address in owner.addresses if address.label != label]
    state.flash(f"Deleted {label}")
    return see_other(request.url.path.removesuffix("/delete"))


@login_first
async def wish_list(request: Request) -> Response:
    """The wish list."""
    return render(request, "shop/wishlist.html", wishes=customer(request).wishes)


@login_first
async def wish(request: Request) -> Response:
    """Put a product on the wish list."""
    state, product = shop(request), known_product(request)
    with state.telling():
        state.wish(customer(request), product)
        state.flash(f"{product.name} is on your wish list")
    return see_other(f"/product/{product.slug}")


@login_first
async def move_wish(request: Request) -> Response:
    """Move a product from the wish list to the cart, in its first colour and size."""
    state, product, owner = shop(request), known_product(request), customer(request)
    with state.telling():
        state.add_to_cart(product, product.colours[0], product.sizes[0] if product.sizes else "", 1)
        owner.wishes[:] = [wished for wished in owner.wishes if wished != product]
        state.flash(f"Moved {product.name}")
        return see_other("/cart")
    return see_other("/wishlist")


@login_first
async def remove_wish(request: Request) -> Response:
    """Take a product off the wish list."""
    state, product, owner = shop(request), known_product(request), customer(request)
    owner.wishes[:] = [wished for wished in owner.wishes if wished != product]
    state.flash(f"Removed {product.name}")
    return see_other("/wishlist")


@form("shop/newsletter.html")
def newsletter(request: Request) -> Filling:
    """The newsletter form."""
    state = shop(request)
    sent = yield show({"email": "", "frequency": FREQUENCIES[0]}, frequencies=FREQUENCIES)
    refuse_if(
        (len(sent["email"]) > _LONGEST or not _EMAIL.fullmatch(sent["email"]), "Write a valid email"),
        (sent["frequency"] not in FREQUENCIES, "Choose how often"),
    )
    state.newsletter = Newsletter(**sent)
    state.flash("You are subscribed")
    return "/newsletter"


@login_first
@form("shop/contact.html")
def contact(request: Request) -> Filling:
    """The form for a message to the shop."""
    state = shop(request)
    sent = yield show({"subject": SUBJECTS[0], "text": ""}, subjects=SUBJECTS)
    refuse_if((sent["subject"] not in SUBJECTS, "Choose a subject"), (not sent["text"], "Write a text"))
    state.send_message(Message(**sent))
    state.flash("Your message is sent")
    return "/messages"


@login_first
async def messages(request: Request) -> Response:
    """Messages sent to the shop."""
    return render(request, "shop/messages.html")


_FORM = ["GET", "POST"]
ROUTES = (
    Route("/login", login, methods=_FORM),
    Route("/logout", logout, methods=["POST"]),
    Route("/account", account),
    Route("/addresses", addresses),
    Route("/addresses/new", edit_address, methods=_FORM),
    Route("/addresses/edit", edit_address, methods=_FORM),
    Route("/addresses/delete", delete_address, methods=["POST"]),
    Route("/address-book/delete", delete_address, methods=["POST"]),
    Route("/checkout/address/new", edit_address, methods=_FORM),
    Route("/wishlist", wish_list),
    Route("/product/{slug}/wish", wish, methods=["POST"]),
    Route("/wishlist/{slug}/move", move_wish, methods=["POST"]),
    Route("/wishlist/{slug}/remove", remove_wish, methods=["POST"]),
    Route("/newsletter", newsletter, methods=_FORM),
    Route("/contact", contact, methods=_FORM),
    Route("/messages", messages),
)
"""Routes of a customer's own pages."""
