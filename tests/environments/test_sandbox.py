"""Chromium has its own sandbox wherever it can; where it cannot, it says so itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from environments.browser import chromium, sandbox
from environments.browser.process import BrowserProcess
from environments.browser.sandbox import AS_ROOT, NO_NAMESPACES, sandboxed, why_none
from environments.browser.settings import BrowserSettings
from records.failures import EpisodeFailed

Saying = Callable[..., Path]
UNUSABLE = "FATAL:zygote_host_impl_linux.cc(132)] No usable sandbox! If you are running on Ubuntu 23.10+ or another"


@pytest.fixture(autouse=True)
def asked_afresh() -> Iterator[None]:
    why_none.cache_clear()
    yield
    why_none.cache_clear()


@pytest.fixture
def a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sandbox.sys, "platform", "linux")


@pytest.fixture
def saying(tmp_path: Path) -> Saying:
    """Make a program that notes its starts and its arguments in ``asked``, and ends with words and a status."""

    def make(words: str, status: int) -> Path:
        program = tmp_path / "chromium"
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\necho "{words}" >&2\nexit {status}\n')
        program.chmod(0o755)
        return program

    return make


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [("", 0, ""), (UNUSABLE, 133, NO_NAMESPACES), ("error while loading shared libraries: libnss3.so", 127, "")],
)
async def test_chromium_is_asked_once_and_what_it_says_of_its_sandbox_counts(
    words: str, status: int, why: str, saying: Saying, a_user: None, tmp_path: Path
) -> None:
    program = saying(words, status)
    assert why_none(program) == why_none(program) == why
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert "--no-sandbox" not in asked
    assert await sandboxed(BrowserSettings(), program) is (why == "")


async def test_a_program_that_does_not_start_says_nothing_of_sandboxes(tmp_path: Path, a_user: None) -> None:
    assert why_none(tmp_path / "none") == ""


async def test_what_a_recipe_says_is_done_without_asking(saying: Saying, a_user: None, tmp_path: Path) -> None:
    program = saying(UNUSABLE, 133)
    assert await sandboxed(BrowserSettings(sandbox="always"), program)
    assert not await sandboxed(BrowserSettings(sandbox="never"), program)
    assert not (tmp_path / "asked").exists()
    with pytest.raises(ValueError, match="sandbox"):
        BrowserSettings(sandbox="on")


async def test_root_is_not_asked_for(saying: Saying, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
    monkeypatch.setattr(sandbox.sys, "platform", "linux")
    assert why_none(saying("", 0)) == AS_ROOT
    assert not (tmp_path / "asked").exists()


@pytest.mark.browser
async def test_a_real_chromium_starts_as_it_is_told() -> None:
    browser = BrowserProcess(BrowserSettings(launch_timeout_s=120))
    try:
        await browser.open_context("<-loopback>")
        assert browser.pids
        for pid in browser.pids:  # an installed one may be a script and what that starts
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            assert (b"--no-sandbox" in arguments) is bool(why_none(chromium.find()))
    finally:
        await browser.close()


@pytest.mark.browser
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user for whom Chromium has no sandbox")
async def test_who_insists_on_a_sandbox_gets_no_browser_without_one() -> None:
    browser = BrowserProcess(BrowserSettings(sandbox="always", launch_timeout_s=120))
    try:
        with pytest.raises(EpisodeFailed, match="sandbox"):
            await browser.open_context("<-loopback>")
    finally:
        await browser.close()
