"""Pages of a customer: log-in, account, addresses, wish list, newsletter, messages.

Owns the validation of these forms. A log-in only ever leads back into the shop itself.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.rendering import read_form, render, see_other
from sites.shop.access import customer, login_first, shop
from sites.shop.catalogue_pages import find_product
from sites.shop.data import FREQUENCIES, SUBJECTS, Address
from sites.shop.state import Message, Newsletter, Refused, find_address

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_POSTCODE = re.compile(r"[0-9]{4}")
_LONGEST = 60


async def login(request: Request) -> Response:
    """The log-in form."""
    state = shop(request)
    after, email = request.query_params.get("next", "/"), ""
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        after, email = form.get("next", "/"), form.get("email", "")
        try:
            state.log_in(email, form.get("password", ""))
        except Refused as refusal:
            errors.append(str(refusal))
        else:
            state.flash("You are logged in")
            return see_other(after if re.fullmatch(r"/[a-z0-9/-]*", after) and "//" not in after else "/")
    status = 422 if errors else 200
    return render(request, "shop/login.html", status_code=status, errors=errors, email=email, next=after)


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
async def edit_address(request: Request) -> Response:
    """The address form: new in the account, new in the checkout, or a change."""
    state, owner = shop(request), customer(request)
    in_checkout = request.url.path.startswith("/checkout")
    known = None if request.url.path.endswith("/new") else find_address(owner, request.query_params.get("label", ""))
    if known is None and not request.url.path.endswith("/new"):
        state.flash("There is no such address")
        return see_other("/addresses")
    values = {"label": "", "street": "", "city": "", "postcode": ""}
    if known:
        values = {"label": known.label, "street": known.street, "city": known.city, "postcode": known.postcode}
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        values.update({name: form.get(name, "") for name in values})
        errors = _address_errors(values)
        try:
            if not errors:
                state.save_address(owner, Address(**values), replaces=known.label if known else "")
        except Refused as refusal:
            errors.append(str(refusal))
        if not errors:
            state.flash(f"Saved {values['label']}")
            if in_checkout:
                state.draft.address = values["label"]
            return see_other("/checkout" if in_checkout else "/addresses")
    heading = f"Edit {known.label}" if known else "New address"
    status = 422 if errors else 200
    return render(request, "shop/address_form.html", status_code=status, heading=heading, values=values, errors=errors)


@login_first
async def delete_address(request: Request) -> Response:
    """Delete an address."""
    state, owner = shop(request), customer(request)
    label = (await read_form(request)).get("label", "")
    owner.addresses[:] = [address for address in owner.addresses if address.label != label]
    state.flash(f"Deleted {label}")
    return see_other("/addresses")


@login_first
async def wish_list(request: Request) -> Response:
    """The wish list."""
    return render(request, "shop/wishlist.html", wishes=customer(request).wishes)


@login_first
async def wish(request: Request) -> Response:
    """Put a product on the wish list."""
    state, product = shop(request), find_product(request)
    try:
        state.wish(customer(request), product)
        state.flash(f"{product.name} is on your wish list")
    except Refused as refusal:
        state.flash(str(refusal))
    return see_other(f"/product/{product.slug}")


@login_first
async def move_wish(request: Request) -> Response:
    """Move a product from the wish list to the cart, in its first colour and size."""
    state, product, owner = shop(request), find_product(request), customer(request)
    try:
        state.add_to_cart(product, product.colours[0], product.sizes[0] if product.sizes else "", 1)
    except Refused as refusal:
        state.flash(str(refusal))
        return see_other("/wishlist")
    owner.wishes[:] = [wished for wished in owner.wishes if wished != product]
    state.flash(f"Moved {product.name}")
    return see_other("/cart")


@login_first
async def remove_wish(request: Request) -> Response:
    """Take a product off the wish list."""
    state, product, owner = shop(request), find_product(request), customer(request)
    owner.wishes[:] = [wished for wished in owner.wishes if wished != product]
    state.flash(f"Removed {product.name}")
    return see_other("/wishlist")


async def newsletter(request: Request) -> Response:
    """The newsletter form."""
    state = shop(request)
    values = {"email": "", "frequency": FREQUENCIES[0]}
    errors: list[str] = []
    if request.method == "POST":
        values.update(await read_form(request))
        if len(values["email"]) > _LONGEST or not _EMAIL.fullmatch(values["email"]):
            errors.append("Write a valid email")
        if values["frequency"] not in FREQUENCIES:
            errors.append("Choose how often")
        if not errors:
            state.newsletter = Newsletter(values["email"], values["frequency"])
            state.flash("You are subscribed")
            return see_other("/newsletter")
    status = 422 if errors else 200
    return render(
        request, "shop/newsletter.html", status_code=status, values=values, frequencies=FREQUENCIES, errors=errors
    )


@login_first
async def contact(request: Request) -> Response:
    """The form for a message to the shop."""
    state = shop(request)
    values = {"subject": SUBJECTS[0], "text": ""}
    errors: list[str] = []
    if request.method == "POST":
        values.update(await read_form(request))
        if values["subject"] not in SUBJECTS:
            errors.append("Choose a subject")
        if not values["text"]:
            errors.append("Write a text")
        try:
            if not errors:
                state.send_message(Message(values["subject"], values["text"]))
        except Refused as refusal:
            errors.append(str(refusal))
        if not errors:
            state.flash("Your message is sent")
            return see_other("/messages")
    status = 422 if errors else 200
    return render(request, "shop/contact.html", status_code=status, values=values, subjects=SUBJECTS, errors=errors)


@login_first
async def messages(request: Request) -> Response:
    """Messages sent to the shop."""
    return render(request, "shop/messages.html")


def _address_errors(values: dict[str, str]) -> list[str]:
    errors = [f"Write a {name}" for name in ("label", "street", "city") if not 0 < len(values[name]) <= _LONGEST]
    return errors if _POSTCODE.fullmatch(values["postcode"]) else [*errors, "Postcode must be 4 digits"]


_FORM = ["GET", "POST"]
ROUTES = (
    Route("/login", login, methods=_FORM),
    Route("/logout", logout, methods=["POST"]),
    Route("/account", account),
    Route("/addresses", addresses),
    Route("/addresses/new", edit_address, methods=_FORM),
    Route("/addresses/edit", edit_address, methods=_FORM),
    Route("/addresses/delete", delete_address, methods=["POST"]),
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
