"""What a browser is granted in the tests of this folder."""

from __future__ import annotations

import pytest

from environments.browser.settings import BrowserSettings

QUICK = BrowserSettings(wait_action_s=0.01)


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return QUICK
