"""The forum as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.access import PASSWORD
from sites.forum import account_pages, listing_pages, thread_pages
from sites.forum.data import ME, ForumData, build
from sites.forum.state import ForumState
from sites.forum.tasks import TEMPLATES
from sites.site import Site


def new_state(data: ForumData, login: bool) -> ForumState:
    """Return a fresh overlay, logged in as the forum's one account when ``login``."""
    return ForumState(data, ME if login else None)


FORUM = Site(
    name="forum",
    routes=(*listing_pages.ROUTES, *thread_pages.ROUTES, *account_pages.ROUTES),
    build=build,
    new_state=new_state,
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The forum: threads, comments, votes, subscriptions, search, profiles and messages."""
