"""A server of hostile pages for the tests of this folder, and what they grant a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from sites.app import create_app
from tests.environments.lab_site import SECRET, serving
from tests.hostile.hostile_site import TRAP

SETTINGS = BrowserSettings(wait_action_s=0.01, settle_timeout_s=0.5, close_timeout_s=5.0)
"""Short waits: most of these pages use up whatever they are given; what must succeed has the usual deadlines."""


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return SETTINGS


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(create_app(secret=SECRET, sites={"lab": TRAP})) as port:
        yield SiteEndpoint(port, SECRET)
