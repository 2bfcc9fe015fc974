"""Pages out, forms in: the Jinja2 environment and the few things every handler needs.

Owns template look-up, escaping and form reading. Invariants: autoescaping is always on and no
template source ever comes from a visitor; form values are text of bounded length.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from sites.layouts import laid_out

_FOLDER = Path(__file__).parent
MAX_FIELD_CHARS = 2000
"""Longest form value that is kept, characters; the rest is cut as a text field with maxlength would."""


@cache
def page_templates() -> Environment:
    """Return the environment in which ``layout.html`` and ``<site>/<page>.html`` are found."""
    sites = {folder.parent.name: FileSystemLoader(folder) for folder in sorted(_FOLDER.glob("*/templates"))}
    loader = ChoiceLoader([PrefixLoader(sites), FileSystemLoader(_FOLDER)])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, cache_size=400
    )


def render(request: Request, template: str, *, status_code: int = 200, **context: Any) -> HTMLResponse:
    """Render ``<site>/<page>.html`` with the session's waiting flash messages, in the session's layout.

    Templates see ``state`` (the site's state), ``flashes``, ``query`` (the search words) and ``neighbours``
    (name and address of the session's other sites) besides ``context``.
    """
    state = request.state.session
    values = {"state": state, "query": "", "neighbours": request.state.neighbours, **context}
    page = page_templates().get_template(template).render(flashes=state.take_flashes(), **values)
    if request.state.layout is not None:
        page = laid_out(page, request.state.layout)
    return HTMLResponse(page, status_code=status_code, headers={"Cache-Control": "no-store"})


def see_other(url: str) -> RedirectResponse:
    """Answer a form with a redirect, so that reloading does not send it twice."""
    return RedirectResponse(url, status_code=303)


async def read_form(request: Request) -> dict[str, str]:
    """Return the posted fields as stripped text without control characters; the last value of a name wins."""
    form = await request.form(max_files=0)
    return {name: clean_text(value) for name, value in form.multi_items() if not isinstance(value, UploadFile)}


def clean_text(value: str) -> str:
    """Strip a visitor's text, drop control characters other than new lines, and bound its length."""
    kept = "".join(c for c in value.replace("\r\n", "\n") if c == "\n" or unicodedata.category(c) != "Cc")
    return kept.strip()[:MAX_FIELD_CHARS]
