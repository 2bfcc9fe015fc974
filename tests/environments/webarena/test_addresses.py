"""Addresses of WebArena's sites and their placeholders."""

import pytest

from environments.addresses import EpisodeAddresses
from environments.webarena.sites.addresses import SITES, AddressError, SiteAddresses, placeholders
from records.failures import EpisodeFailed
from records.placeholders import site_under

BASES = {
    "shopping": "http://shop.test:7770/",
    "shopping_admin": "http://shop.test:7770/admin",
    "wikipedia": "http://wiki.test:8888/wikipedia_en/A",
}
ADDRESSES = EpisodeAddresses(SiteAddresses(BASES).bases)


def test_addresses_come_from_the_usual_variables():
    environ = {site.upper(): f"http://{site}.test:1/" for site in SITES}
    addresses = SiteAddresses.from_environment(environ=environ)
    assert addresses.bases["shopping_admin"] == "http://shopping_admin.test:1"
    assert list(addresses.bases) == list(SITES)


def test_the_configuration_wins_over_variables_and_plain_names_over_browsergyms():
    environ = {"MAP": "http://m:1", "REDDIT": "http://r:1", "WA_REDDIT": "http://r:2", "WA_GITLAB": "http://g:2"}
    addresses = SiteAddresses.from_environment(configured={"map": "http://m:9"}, environ=environ)
    assert addresses.bases == {"map": "http://m:9", "reddit": "http://r:1", "gitlab": "http://g:2"}


def test_a_placeholder_of_a_site_without_an_address_is_refused():
    with pytest.raises(EpisodeFailed, match="__REDDIT__ names no site of this task"):
        ADDRESSES.real("__REDDIT__/f/books")


@pytest.mark.parametrize("base", ["shop.test:7770", "ftp://shop.test", "http://", "", "http://shop.test/?a=1"])
def test_what_is_no_address_is_refused_with_its_variable(base):
    with pytest.raises(AddressError, match=f"SHOPPING: expected an address .* found '{base.replace('?', '.')}'"):
        SiteAddresses({"shopping": base})


def test_an_unknown_site_is_refused():
    with pytest.raises(AddressError, match="found 'shoping'"):
        SiteAddresses({"shoping": "http://s:1"})


@pytest.mark.parametrize(
    ("canonical", "real"),
    [
        ("__SHOPPING__/cart?a=1#top", "http://shop.test:7770/cart?a=1#top"),
        ("__SHOPPING_ADMIN__/sales/order", "http://shop.test:7770/admin/sales/order"),
        ("__SHOPPING__/administration", "http://shop.test:7770/administration"),
        ("__SHOPPING__/", "http://shop.test:7770/"),
        ("__WIKIPEDIA__/Boston", "http://wiki.test:8888/wikipedia_en/A/Boston"),
        ("http://elsewhere.test/cart", "http://elsewhere.test/cart"),
        ("about:blank", "about:blank"),
    ],
)
def test_placeholders_and_real_addresses_translate_into_each_other(canonical, real):
    assert ADDRESSES.real(canonical) == real
    assert ADDRESSES.canonical(real) == canonical


def test_a_longer_port_is_another_host():
    assert ADDRESSES.canonical("http://shop.test:77700/cart") == "http://shop.test:77700/cart"
    assert site_under(ADDRESSES.bases, "http://wiki.test:8888/other") is None


def test_several_placeholders_in_one_text():
    text = "__SHOPPING__/a |AND| __SHOPPING_ADMIN__ |AND| __SHOPPING__/b"
    assert placeholders(text) == ("shopping", "shopping_admin")
    assert ADDRESSES.real(text) == (
        "http://shop.test:7770/a |AND| http://shop.test:7770/admin |AND| http://shop.test:7770/b"
    )
    assert placeholders("__init__ __SHOP__") == ()


def test_origins_for_an_allow_list():
    assert ADDRESSES.origins == ("http://shop.test:7770", "http://wiki.test:8888")
