"""The forum as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.access import PASSWORD
from sites.forum import account_pages, listing_pages, thread_pages
from sites.forum.data import ME, build
from sites.forum.state import ForumState
from sites.forum.tasks import TEMPLATES
from sites.site import Site, routes_of

FORUM = Site(
    name="forum",
    routes=routes_of(listing_pages, thread_pages, account_pages),
    build=build,
    new_state=lambda data, login: ForumState(data, ME if login else None),
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The forum: threads, comments, votes, subscriptions, search, profiles and messages."""
