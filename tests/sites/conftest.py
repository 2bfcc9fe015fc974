"""The embedded sites in this process, and readable failures from what tests of several sites share."""

from __future__ import annotations

from typing import Any

import pytest

from sites.app import create_app

pytest.register_assert_rewrite("tests.sites.player", "tests.sites.task_checks")


@pytest.fixture(scope="module")
def app() -> Any:
    return create_app(0)
