"""The table of products and the form of one: name, SKU, category, price, stock, status."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.data import slug_of
from sites.admin.grid import ALL, contains, filters_of, grid, matching, passes
from sites.admin.records import Product
from sites.admin.state import Refused
from sites.admin.words import PRODUCT_STATUSES
from sites.rendering import complaints, form_page, read_form, render, see_other

_NAME = re.compile(r"[A-Za-z][A-Za-z ]{1,38}[A-Za-z]")
_SKU = re.compile(r"[A-Z]{2}-\d{2}")
_NUMBER = re.compile(r"\d{1,4}")


@logged_in
async def products(request: Request) -> Response:
    """All products, filtered by name and status."""
    wanted = filters_of(request, name="", status=ALL)
    rows = matching(
        admin(request).products.all(),
        lambda product: contains(product.name, wanted["name"]),
        lambda product: passes(product.status, wanted["status"]),
    )
    return render(request, "admin/products.html", grid=grid(request, rows, wanted), statuses=(ALL, *PRODUCT_STATUSES))


@logged_in
async def product(request: Request) -> Response:
    """The form of one product, or of a new one."""
    state, slug = admin(request), request.path_params.get("slug")
    found = known(state.products, slug) if slug else None
    categories = sorted({other.category for other in state.products.all()})
    chosen = {"category": categories[0], "price": "", "stock": "0", "status": PRODUCT_STATUSES[0]}
    fields = {"name": "", "sku": "", **chosen}
    if found:
        fields = {name: str(getattr(found, name)) for name in fields}
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        fields.update({name: form.get(name, "") for name in fields})
        errors = _errors(fields, categories)
        address = slug or slug_of(fields["name"])
        if not slug and state.products.get(address):
            errors.append("This name is taken")
        try:
            if not errors:
                state.save_product(_product(address, fields))
        except Refused as refusal:
            errors.append(str(refusal))
        if not errors:
            state.flash("The product is saved")
            return see_other(f"/products/{address}")
    choices = {"categories": categories, "statuses": PRODUCT_STATUSES}
    return form_page(request, "admin/product.html", errors, product=found, fields=fields, **choices)


def _product(slug: str, fields: dict[str, str]) -> Product:
    numbers = {"price": int(fields["price"]), "stock": int(fields["stock"])}
    return Product(slug, fields["name"], fields["sku"], fields["category"], status=fields["status"], **numbers)


def _errors(fields: dict[str, str], categories: list[str]) -> list[str]:
    """Say what is wrong with the fields of a product."""
    return complaints(
        (not _NAME.fullmatch(fields["name"]), "Write a name of letters"),
        (not _SKU.fullmatch(fields["sku"]), "An SKU is like AB-12"),
        (fields["category"] not in categories, "Choose a category"),
        (not _NUMBER.fullmatch(fields["price"]) or not int(fields["price"]), "Price must be a number above 0"),
        (not _NUMBER.fullmatch(fields["stock"]), "Stock must be a number, 0 or more"),
        (fields["status"] not in PRODUCT_STATUSES, "Choose a status"),
    )


ROUTES = (
    Route("/products", products),
    Route("/products/new", product, methods=["GET", "POST"]),
    Route("/products/{slug}", product, methods=["GET", "POST"]),
)
"""Routes of products."""
