"""The embedded sites, in this process and in one of their own, and readable failures from what tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from sites.app import create_app
from sites.server import SiteServer
from sites.settings import SitesSettings

pytest.register_assert_rewrite("tests.sites.player", "tests.sites.task_checks")

PATIENT = BrowserSettings(launch_timeout_s=120.0, navigation_timeout_s=50.0)
"""Sixteen pages may share this machine's cores, so a single one may take long."""


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(0)


@pytest.fixture(scope="session")
def sites() -> Iterator[SiteEndpoint]:
    with SiteServer(SitesSettings(start_timeout_s=120.0)) as server:
        yield SiteEndpoint(server.port, server.secret)


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return PATIENT
