"""The encyclopedia as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.site import Site
from sites.wiki.article_pages import ROUTES
from sites.wiki.articles import build
from sites.wiki.data import WikiData
from sites.wiki.state import WikiState
from sites.wiki.tasks import TEMPLATES


def new_state(data: WikiData, login: bool) -> WikiState:
    """Return a fresh overlay; nobody logs in here."""
    return WikiState(data)


WIKI = Site(name="wiki", routes=ROUTES, build=build, new_state=new_state, templates=TEMPLATES)
"""The encyclopedia: articles, categories, search, histories and a reading list."""
