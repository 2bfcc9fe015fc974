"""The encyclopedia as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.site import Site
from sites.wiki.article_pages import ROUTES
from sites.wiki.articles import build
from sites.wiki.state import WikiState
from sites.wiki.tasks import TEMPLATES

WIKI = Site(name="wiki", routes=ROUTES, build=build, new_state=lambda data, login: WikiState(data), templates=TEMPLATES)
"""The encyclopedia: articles, categories, search, histories and a reading list."""
