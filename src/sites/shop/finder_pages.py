"""Pages of the shop that work with scripts: the product finder and the address book.

Owns suggestions, the stock of each warehouse, and the list whose buttons ask a question first. Nothing else in the shop
leads here: tasks that want these pages start on them. Without scripts the pages still work (``page_scripts.js``).
"""

from __future__ import annotations

import random

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sites.rendering import render
from sites.shop.access import customer, known_product, login_first, shop
from sites.shop.catalogue import Product

WAREHOUSES = ("Leeds", "Bath", "York")
"""Cities with a warehouse; the other cities that addresses lie in have none."""
MAX_SUGGESTIONS = 6
STOCK_DELAY_MS = 700
"""How long a page waits before it asks for the stock: longer than a page takes to become quiet."""


def stock_by_warehouse(product: Product) -> dict[str, int]:
    """Return the pieces in each warehouse; they add up to the product's stock."""
    first, second = sorted(random.Random(f"warehouses/{product.slug}").sample(range(1, max(product.stock, 3)), 2))
    return dict(zip(WAREHOUSES, (first, second - first, product.stock - second), strict=True))


def suggestions(products: dict[str, Product], text: str) -> list[str]:
    """Return names of products that begin with the text, popular ones first."""
    wanted = text.strip().lower()
    found = [p for p in products.values() if wanted and p.name.lower().startswith(wanted)]
    return [p.name for p in sorted(found, key=lambda p: (-p.popularity, p.name))[:MAX_SUGGESTIONS]]


async def finder(request: Request) -> Response:
    """The finder: a field with suggestions, and a menu of all departments."""
    state, name = shop(request), request.query_params.get("name", "")[:100]
    found = next((p for p in state.data.products.values() if p.name.lower() == name.strip().lower()), None)
    if found is not None:
        stock = _stock_text(found) if found.stock else "This product is sold out"
        return render(request, "shop/finder_product.html", product=found, stock=stock, delay_ms=STOCK_DELAY_MS)
    error = "Choose a product from the list" if name else ""
    categories = state.data.categories.values()
    status = 422 if error else 200
    return render(request, "shop/finder.html", status_code=status, name=name, error=error, categories=categories)


async def suggest(request: Request) -> Response:
    """Suggestions for what was typed, as a JSON list of names."""
    return JSONResponse(suggestions(shop(request).data.products, request.query_params.get("q", "")[:100]))


async def stock(request: Request) -> Response:
    """The stock of each warehouse, as text."""
    product = known_product(request)
    if not product.stock:
        raise HTTPException(404)
    return PlainTextResponse(_stock_text(product))


@login_first
async def address_book(request: Request) -> Response:
    """All addresses, each with a button that deletes it."""
    return render(request, "shop/address_book.html", addresses=customer(request).addresses)


def _stock_text(product: Product) -> str:
    return ", ".join(f"{city}: {pieces} pieces" for city, pieces in stock_by_warehouse(product).items())


ROUTES = (
    Route("/finder", finder),
    Route("/finder/suggest", suggest),
    Route("/finder/stock/{slug}", stock),
    Route("/address-book", address_book),
)
"""Routes of the finder and the address book."""
