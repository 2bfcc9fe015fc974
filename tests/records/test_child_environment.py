"""What handles what pages send has the variables that it needs, and no token, whatever a recipe calls it."""

from __future__ import annotations

import pytest

from environments.browser.owned_processes import MARK
from judges.trained.kind import TrainedSettings
from policy.vllm.backend import VllmSettings
from records.child_environment import inherited

TOKENS = (VllmSettings().token_variable, TrainedSettings().token_variable, "WAYMARK_TOKEN_OF_OUR_OWN", "AWS_SECRET_KEY")
NEEDED = (
    MARK, "WAYMARK_TEST_SUITE", "WAYMARK_BENCHMARK_RUN", "PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "FONTCONFIG_PATH",
    "PLAYWRIGHT_BROWSERS_PATH", "LD_LIBRARY_PATH",
)  # fmt: skip


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_not_inherited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "s3cret")
    assert "s3cret" not in inherited().values()


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_is_inherited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "needed")
    assert inherited()[name] == "needed"
