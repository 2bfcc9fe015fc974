"""A site server that dies or hangs comes back on its port, and remembers nothing of what was under way."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from environments.embedded.sessions import SiteEndpoint
from records.deadline import Deadline
from records.failures import EpisodeFailed
from sites.server import SiteServer
from sites.settings import SitesSettings
from sites.watch import SiteWatch

SETTINGS = SitesSettings(hang_timeout_s=8.0, start_timeout_s=120.0)

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer(SETTINGS) as server:
        yield server


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "hanging"])
def test_the_server_comes_back_and_its_sessions_are_gone(server: SiteServer, sent: signal.Signals) -> None:
    sites = SiteEndpoint(server.port, server.secret)
    before = server.pid
    with SiteWatch(server, SETTINGS) as watch:
        asyncio.run(sites.open_session("one", ["shop"], [], Deadline(20)))
        asyncio.run(sites.require_session("one", Deadline(20)))
        os.kill(before, sent)
        _wait(lambda: watch.restarts == 1)
        with pytest.raises(EpisodeFailed, match="infra/site_session_lost"):
            asyncio.run(sites.require_session("one", Deadline(20)))
        asyncio.run(sites.open_session("one", ["shop"], [], Deadline(20)))
    assert server.pid != before
    assert server.port == sites.port


def test_a_session_is_waited_for_while_the_server_is_away(server: SiteServer) -> None:
    sites, before = SiteEndpoint(server.port, server.secret), server.pid
    with SiteWatch(server, SETTINGS) as watch:
        os.kill(before, signal.SIGKILL)
        asyncio.run(sites.open_session("two", ["shop"], [], Deadline(120)))
        asyncio.run(sites.require_session("two", Deadline(20)))
        with pytest.raises(EpisodeFailed, match="infra/site_session_lost"):
            asyncio.run(sites.require_session("never-opened", Deadline(20)))
    assert watch.restarts == 1
    assert server.alive
    assert server.pid != before


def test_nothing_is_restarted_after_the_watch_is_closed() -> None:
    with SiteServer(SETTINGS) as server:
        watch = SiteWatch(server, SETTINGS)
        watch.close()
        os.kill(server.pid, signal.SIGKILL)
        _wait(lambda: not server.alive)
        time.sleep(3 * 0.5)
        assert watch.restarts == 0
        assert not server.alive


def _wait(condition: Callable[[], bool], limit_s: float = 120.0) -> None:
    ends = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends, f"nothing happened within {limit_s:g} s"
        time.sleep(0.05)
