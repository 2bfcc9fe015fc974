"""Pages of the catalogue: home, categories, search, products and their reviews.

Owns listing, sorting and search order. A search shows products that share the most words with the
query; each result page is in order of popularity, so that the exact match is on the first page but
not always at its top.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing
from sites.forms import Filling, form, refuse_if, show
from sites.paging import Listing, listing
from sites.rendering import render
from sites.shop.access import customer, known_product, login_first, shop
from sites.shop.catalogue import LARGE_EXTRA, Category, Product, Review, mean_stars
from sites.shop.state import ShopState

PER_PAGE = 6
SORT_ORDERS = {"popular": "Popular", "low": "Lowest price", "high": "Highest price", "rated": "Best rated"}
"""Values of the ``sort`` query parameter and their labels."""
STARS = {"5 stars": 5, "4 stars": 4, "3 stars": 3, "2 stars": 2, "1 star": 1}
_MAX_RESULTS = 24


def sorted_products(state: ShopState, category: Category, kind: str, sort: str) -> list[Product]:
    """Return the category's products of ``kind`` ("" for all) in one of ``SORT_ORDERS``."""
    chosen = [product for product in category.products if kind in ("", product.kind)]
    keys = {
        "low": lambda p: (p.price,),
        "high": lambda p: (-p.price,),
        "rated": lambda p: (-mean_stars(state.reviews(p)), -len(state.reviews(p)), p.name),
    }
    return sorted(chosen, key=keys[sort]) if sort in keys else chosen


def search_products(products: dict[str, Product], query: str) -> list[Product]:
    """Return the products that share at least all words but one with ``query``, best first."""
    words = {word.removesuffix("s") if len(word) > 3 else word for word in query.lower().split()}
    needed = max(1, len(words) - 1)
    scored = [(sum(w in p.words or f"{w}s" in p.words for w in words), p) for p in products.values()]
    found = [(score, p) for score, p in scored if words and score >= needed]
    found.sort(key=lambda pair: (-pair[0], -pair[1].popularity, pair[1].name))
    best = [product for _, product in found[:_MAX_RESULTS]]
    pages = [best[i : i + PER_PAGE] for i in range(0, len(best), PER_PAGE)]
    return [p for page in pages for p in sorted(page, key=lambda p: (-p.popularity, p.name))]


async def home(request: Request) -> Response:
    """The front page: all categories."""
    return render(request, "shop/home.html", categories=shop(request).data.categories.values())


async def category(request: Request) -> Response:
    """A category's products, filtered by kind and sorted."""
    state = shop(request)
    found = existing(state.data.categories.get(request.path_params["slug"]))
    kind = next((k for k in found.kinds if k.lower() == request.query_params.get("kind", "").lower()), "")
    sort = request.query_params.get("sort", "popular")
    page_url = f"?{urlencode({'kind': kind.lower(), 'sort': sort, 'page': ''})}"
    page = listing(request, sorted_products(state, found, kind, sort), PER_PAGE, page_url)
    choices: dict[str, Any] = {"kind": kind, "sort": sort, "orders": SORT_ORDERS}
    return render(request, "shop/category.html", category=found, rows=_rows(state, page), page=page, **choices)


async def search(request: Request) -> Response:
    """Products found by words of their names."""
    state = shop(request)
    query = request.query_params.get("q", "")[:100].strip()
    found = search_products(state.data.products, query)
    page = listing(request, found, PER_PAGE, f"?{urlencode({'q': query, 'page': ''})}")
    return render(request, "shop/search.html", query=query, rows=_rows(state, page), page=page)


@form("shop/product.html")
def product(request: Request) -> Filling:
    """A product page, and its form that adds to the cart."""
    state, found = shop(request), known_product(request)
    fields = {"colour": found.colours[0], "size": found.sizes[0] if found.sizes else "", "quantity": "1"}
    sent = yield show(fields, product=found, stars=mean_stars(state.reviews(found)), extra=LARGE_EXTRA)
    state.add_to_cart(found, sent["colour"], sent["size"], quantity(sent["quantity"]))
    state.flash(f"Added {found.name}")
    return "/cart"


async def reviews(request: Request) -> Response:
    """A product's reviews, newest first."""
    state, found = shop(request), known_product(request)
    written = state.reviews(found)
    page = listing(request, written, PER_PAGE, "?page=")
    return render(request, "shop/reviews.html", product=found, stars=mean_stars(written), page=page)


@login_first
@form("shop/review_form.html")
def review_form(request: Request) -> Filling:
    """The form for a review of one's own."""
    state, found, author = shop(request), known_product(request), customer(request).account.name
    sent = yield show({"stars": "", "title": "", "text": ""}, product=found, stars_options=list(STARS))
    refuse_if(
        (sent["stars"] not in STARS, "Choose the stars"),
        (not sent["title"], "Write a title"),
        (not sent["text"], "Write a text"),
    )
    state.add_review(found, Review(author, STARS[sent["stars"]], sent["title"][:80], sent["text"]))
    state.flash("Thank you for your review")
    return f"/product/{found.slug}/reviews"


def quantity(text: str) -> int:
    """Return the number typed; 0, which no quantity may be, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0


def _rows(state: ShopState, page: Listing) -> list[tuple[Product, float]]:
    return [(product, mean_stars(state.reviews(product))) for product in page.items]


ROUTES = (
    Route("/", home),
    Route("/category/{slug}", category),
    Route("/search", search),
    Route("/product/{slug}", product, methods=["GET", "POST"]),
    Route("/product/{slug}/reviews", reviews),
    Route("/product/{slug}/review", review_form, methods=["GET", "POST"]),
)
"""Routes of the catalogue."""
