"""The table of products and the form of one: name, SKU, category, price, stock, status."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.data import slug_of
from sites.admin.grid import ALL, contains, filters_of, grid, passes
from sites.admin.records import Product
from sites.admin.words import PRODUCT_STATUSES
from sites.forms import Filling, form, refuse_if, show
from sites.rendering import render

_NAME = re.compile(r"[A-Za-z][A-Za-z ]{1,38}[A-Za-z]")
_SKU = re.compile(r"[A-Z]{2}-\d{2}")
_NUMBER = re.compile(r"\d{1,4}")


@logged_in
async def products(request: Request) -> Response:
    """All products, filtered by name and status."""
    wanted = filters_of(request, name="", status=ALL)
    rows = [
        product
        for product in admin(request).products.all()
        if contains(product.name, wanted["name"]) and passes(product.status, wanted["status"])
    ]
    return render(request, "admin/products.html", grid=grid(request, rows, wanted), statuses=(ALL, *PRODUCT_STATUSES))


@logged_in
@form("admin/product.html", whole=True)
def product(request: Request) -> Filling:
    """The form of one product, whose address stays, or of a new one."""
    state, slug = admin(request), request.path_params.get("slug")
    found = known(state.products, slug) if slug else None
    categories = sorted({other.category for other in state.products.all()})
    chosen = {"category": categories[0], "price": "", "stock": "0", "status": PRODUCT_STATUSES[0]}
    blank = {"name": "", "sku": "", **chosen}
    fields = {name: str(getattr(found, name)) for name in blank} if found else blank
    sent = yield show(fields, product=found, categories=categories, statuses=PRODUCT_STATUSES)
    address, price, stock = slug or slug_of(sent["name"]), sent["price"], sent["stock"]
    refuse_if(
        (not _NAME.fullmatch(sent["name"]), "Write a name of letters"),
        (not _SKU.fullmatch(sent["sku"]), "An SKU is like AB-12"),
        (sent["category"] not in categories, "Choose a category"),
        (not _NUMBER.fullmatch(price) or not int(price), "Price must be a number above 0"),
        (not _NUMBER.fullmatch(stock), "Stock must be a number, 0 or more"),
        (sent["status"] not in PRODUCT_STATUSES, "Choose a status"),
        (found is None and state.products.get(address) is not None, "This name is taken"),
    )
    made = Product(address, sent["name"], sent["sku"], sent["category"], int(price), int(stock), sent["status"])
    state.save_product(made)
    state.flash("The product is saved")
    return f"/products/{address}"


ROUTES = (
    Route("/products", products),
    Route("/products/new", product, methods=["GET", "POST"]),
    Route("/products/{slug}", product, methods=["GET", "POST"]),
)
"""Routes of products."""
