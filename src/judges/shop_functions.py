"""The functions in WebArena's task files that ask the shop's own interface (Magento's REST API) for its state.

Owns ``shop_functions``. Invariants: nothing is written to the shop but the request for a token; the account is
asked for only when a task needs it; an answer of another shape is an infrastructure failure, never evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from judges.functions import PageFunction, only_argument
from judges.interface import HttpClient, PageView
from judges.rule_errors import RuleError
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_SHOP = "__SHOPPING__"
_LATEST = {
    "searchCriteria[sortOrders][0][field]": "created_at",
    "searchCriteria[sortOrders][0][direction]": "DESC",
    "searchCriteria[pageSize]": "1",
}


def shop_functions(http: HttpClient, credentials: Callable[[], Mapping[str, str]]) -> dict[str, PageFunction]:
    """Return the shop's functions by the names that task files call.

    Args:
        http: the client that reaches the shop.
        credentials: gives ``username`` and ``password`` of the shop's administrator.
    """
    shop = _Shop(http, credentials)
    return {
        "shopping_get_latest_order_url": shop.latest_order_url,
        "shopping_get_sku_latest_review_author": shop.latest_review_author,
        "shopping_get_sku_latest_review_rating": shop.latest_review_rating,
    }


class _Shop:
    def __init__(self, http: HttpClient, credentials: Callable[[], Mapping[str, str]]) -> None:
        self._http, self._credentials = http, credentials

    async def latest_order_url(self, page: PageView, arguments: tuple[str, ...]) -> str:
        """Return the address of the order that was placed last in the whole shop."""
        if arguments:
            raise RuleError(f"func: expected no argument, found {arguments!r}; correct the task file")
        answer = await self._get("/rest/V1/orders", _LATEST)
        number = _field(answer, "orders", "items", 0, "increment_id")
        try:
            return f"{_SHOP}/sales/order/view/order_id/{int(number)}/"
        except (TypeError, ValueError, OverflowError) as error:
            raise _unexpected("orders", "a whole increment_id", number) from error

    async def latest_review_author(self, page: PageView, arguments: tuple[str, ...]) -> str:
        """Return who wrote the last review of a product, "" where it has none."""
        review = await self._latest_review(only_argument(arguments))
        return "" if review is None else str(_field(review, "reviews", "nickname"))

    async def latest_review_rating(self, page: PageView, arguments: tuple[str, ...]) -> str:
        """Return the last review's rating in percent (``100`` is five stars), "" where there is none."""
        review = await self._latest_review(only_argument(arguments))
        return "" if review is None else str(_field(review, "reviews", "ratings", 0, "percent"))

    async def _latest_review(self, sku: str) -> Any:
        reviews = await self._get(f"/rest/V1/products/{quote(sku, safe='')}/reviews")
        if not isinstance(reviews, list):
            raise _unexpected("reviews", "a list", reviews)
        return reviews[-1] if reviews else None

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        token = await self._http.json(
            "POST", f"{_SHOP}/rest/default/V1/integration/admin/token", body=dict(self._credentials())
        )
        if not isinstance(token, str) or not token:
            raise _unexpected("admin/token", "a token", type(token).__name__)
        return await self._http.json("GET", f"{_SHOP}{path}", query=query, token=token)


def _field(answer: Any, what: str, *path: str | int) -> Any:
    """Follow ``path`` into a JSON answer."""
    value = answer
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError) as error:
            raise _unexpected(what, ".".join(map(str, path)), answer) from error
    return value


def _unexpected(what: str, expected: str, found: object) -> EpisodeFailed:
    detail = f"the shop's {what}: expected {expected}, found {str(found)[:200]!r}"
    return EpisodeFailed(Failure(codes.SITE_API_UNEXPECTED, detail))
