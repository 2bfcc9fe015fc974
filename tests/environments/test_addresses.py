"""The allow-list and the translation of addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.addresses import EpisodeAddresses, embedded_bypass
from records.failures import EpisodeFailed, FailureKind

HOSTS = EpisodeAddresses.embedded(("shop", "forum"), "e1", 8000)


def test_placeholders_become_addresses_and_back() -> None:
    assert HOSTS.real("__SHOP__/cart?a=1#b") == "http://shop.e1.localhost:8000/cart?a=1#b"
    assert HOSTS.canonical("http://forum.e1.localhost:8000/f/games") == "__FORUM__/f/games"
    assert HOSTS.canonical("http://forum.e1.localhost:8000") == "__FORUM__/"
    assert HOSTS.canonical("http://example.com/__x") == "http://example.com/__x"


@given(st.text("abc/?=&#%._-~", max_size=30))
def test_translation_loses_nothing(path: str) -> None:
    assert HOSTS.canonical(HOSTS.real(f"__SHOP__/{path}")) == f"__SHOP__/{path}"


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.e1.localhost:8000/",
        "http://shop.e1.localhost:8001/",
        "http://shop.e1.localhost/",
        "http://shop.e2.localhost:8000/",
        "http://map.e1.localhost:8000/",
        "http://e1.localhost:8000/",
        "http://shop.e1.localhost:8000@evil.example/",
        "http://shop.e1.localhost:8000.evil.example/",
        "http://evil.example/http://shop.e1.localhost:8000/",
        "file:///etc/passwd",
        "data:text/html,x",
        "javascript:alert(1)",
        "about:blank",
        "",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    assert not HOSTS.allows(url)


def test_own_addresses_are_allowed() -> None:
    assert HOSTS.allows("http://shop.e1.localhost:8000/any?x#y")


def test_an_unknown_placeholder_is_the_tasks_fault() -> None:
    with pytest.raises(EpisodeFailed) as caught:
        HOSTS.real("__GITLAB__/")
    assert caught.value.failure.kind is FailureKind.TASK
    assert "its sites are forum, shop" in caught.value.failure.detail


def test_only_own_origins_bypass_the_refusing_proxy() -> None:
    own = "*.e1.localhost:8000"
    assert embedded_bypass("e1", 8000) == f"<-loopback>,http://{own},ws://{own},wss://{own}"
