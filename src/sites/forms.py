"""Pages with a form: shown, taken, or shown again with what is wrong.

Owns ``form``, which makes a handler of a generator: it yields the page (``show``), is sent what the visitor filled in,
and returns the address to go on to. Invariants: a form that is taken is answered with a redirect, so that reloading
does not send it twice; one that is refused, with 422 and all that was filled in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sites.rendering import read_form, render, see_other
from sites.site import Refused

Fields = dict[str, str]
Filling = Generator[dict[str, Any], Fields, str]
Handler = Callable[[Request], Awaitable[Response]]


def form(template: str, *, whole: bool = False) -> Callable[[Callable[[Request], Filling]], Handler]:
    """Make the handler of the page ``template``, which sees ``fields`` and ``errors`` beside what is shown.

    The template's name may hold parameters of the path, such as ``{kind}``.
    A field that was not sent keeps what it held at first; in a ``whole`` form it is empty. A generator that returns
    before it yields leads elsewhere at once.
    """

    def decorate(fill: Callable[[Request], Filling]) -> Handler:
        @wraps(fill)
        async def handler(request: Request) -> Response:
            filling, page = fill(request), template.format(**request.path_params)
            try:
                shown = next(filling)
                if request.method != "POST":
                    return render(request, page, errors=(), **shown)
                sent = await read_form(request)
                kept = dict.fromkeys(shown["fields"], "") if whole else shown["fields"]
                shown["fields"] = {name: sent.get(name, held) for name, held in kept.items()}
                filling.send(dict(shown["fields"]))
            except StopIteration as end:
                return see_other(end.value)
            except Refused as refusal:
                return render(request, page, status_code=422, errors=refusal.complaints, **shown)
            raise RuntimeError(f"{page}: expected the address to go on to, found another page")

        return handler

    return decorate


def show(fields: Fields | None = None, **context: Any) -> dict[str, Any]:
    """Return a page with a form: what its fields hold at first, and what else its template sees."""
    return {"fields": fields or {}, **context}


def refuse_if(*rules: tuple[bool, str]) -> None:
    """Refuse a form with the texts whose condition, that something is wrong, holds."""
    if complaints := [text for wrong, text in rules if wrong]:
        raise Refused(*complaints)
