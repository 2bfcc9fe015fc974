"""The shop's pages: what customers can do, what they are told, and what the shop refuses."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from sites.shop.catalogue import mean_stars
from sites.shop.data import DELIVERED, PROCESSING, Account, ShopData, build

ADDRESS = {"label": "Beach", "street": "3 Elm Road", "city": "Bath", "postcode": "1234"}


@pytest.fixture(scope="module")
def data(app) -> ShopData:
    return app.state.sessions.data["shop"]


@pytest.fixture
def shop(app) -> TestClient:
    app.state.sessions.reset("one", login=["shop"])
    return TestClient(app, base_url="http://shop.one.localhost")


@pytest.fixture
def guest(app) -> TestClient:
    app.state.sessions.reset("guest")
    return TestClient(app, base_url="http://shop.guest.localhost")


def prices(page: str) -> list[int]:
    return [int(price) for price in re.findall(r"\$(\d+), \d\.\d stars", page)]


def names(page: str) -> list[str]:
    return re.findall(r'<div class="item"><a href="[^"]*">([^<]*)</a>', page)


def plain(data: ShopData, **wanted):
    """A product without sizes, in stock unless asked otherwise."""
    stocked = wanted.pop("stocked", True)
    return next(p for p in data.products.values() if not p.sizes and bool(p.stock) == stocked)


def put(shop: TestClient, product, **fields):
    form = {"colour": product.colours[0], "quantity": "1", **fields}
    return shop.post(f"/product/{product.slug}", data=form)


def test_the_data_are_of_realistic_size_and_depend_on_the_seed_only(data):
    assert len(data.products) == 432
    assert sum(len(product.reviews) for product in data.products.values()) > 2000
    assert len(data.usual.orders) == 24
    assert build(0) == data
    assert build(1) != data


@pytest.mark.parametrize(("sort", "order"), [("low", 1), ("high", -1)])
def test_sorting_by_price_holds_over_all_pages(shop, sort, order):
    found = [p for n in range(1, 7) for p in prices(shop.get(f"/category/lamps?sort={sort}&page={n}").text)]
    assert len(found) == 36
    assert found == sorted(found, key=lambda price: order * price)


def test_best_rated_comes_first_and_is_unique(shop, data):
    for category in data.categories.values():
        first = names(shop.get(f"/category/{category.slug}?sort=rated").text)[0]
        best = sorted((mean_stars(p.reviews) for p in category.products), reverse=True)
        product = data.products[first.lower().replace(" ", "-")]
        assert mean_stars(product.reviews) == best[0] == 5.0 > best[1]


def test_the_filter_keeps_its_kind_on_the_next_page(shop, data):
    kind = data.categories["rugs"].kinds[0]
    first = shop.get("/category/rugs", params={"kind": kind.lower(), "sort": "low"})
    following = re.search(r'<a href="([^"]*)">Next page', first.text)
    second = shop.get("/category/rugs" + following[1].replace("&amp;", "&")).text
    for page in (first.text, second):
        assert {data.products[name.lower().replace(" ", "-")].kind for name in names(page)} == {kind}
    assert prices(first.text)[-1] < prices(second)[0]


def test_a_search_shows_the_exact_match_among_its_siblings_on_the_first_page(shop, data):
    tops = 0
    for product in list(data.products.values())[::9]:
        found = names(shop.get("/search", params={"q": product.name}).text)
        assert product.name in found
        assert len(found) == 6
        tops += found[0] == product.name
    assert 0 < tops < 30
    assert "No product was found" in shop.get("/search?q=submarine").text
    assert "No product was found" in shop.get("/search?q=").text


@pytest.mark.parametrize("quantity", ["0", "10", "-1", "two", "", "1.5", "٣"])
def test_wrong_quantities_are_told_and_change_nothing(shop, data, quantity):
    answer = put(shop, plain(data), quantity=quantity)
    assert (answer.status_code, "Quantity must be 1 to 9" in answer.text) == (422, True)
    assert "Your cart is empty" in shop.get("/cart").text


def test_variants_must_exist_and_be_in_stock(shop, data):
    product = plain(data)
    missing = next(c for c in ("Blue", "Red", "Green", "Black", "White", "Gold") if c not in product.colours)
    assert "Choose a colour" in put(shop, product, colour=missing).text
    assert "Choose a size" in put(shop, product, size="Large").text
    assert "out of stock" in put(shop, plain(data, stocked=False)).text
    sized = next(p for p in data.products.values() if p.sizes and p.stock)
    assert "Choose a size" in put(shop, sized, size="Giant").text
    assert f"Large, ${sized.price + 4} each" in put(shop, sized, size="Large").text


def test_the_same_variant_is_one_line_and_lines_can_be_changed_and_removed(shop, data):
    product = plain(data)
    put(shop, product, quantity="2")
    page = put(shop, product, quantity="3").text
    assert page.count('class="item"') == 1
    assert "Items: 5" in page
    assert "Quantity must be 1 to 9" in put(shop, product, quantity="5").text
    assert "Items: 4" in shop.post("/cart/0", data={"quantity": "4"}).text
    assert "Quantity must be" in shop.post("/cart/0", data={"quantity": "99"}).text
    assert "no longer in the cart" in shop.post("/cart/7", data={"quantity": "1"}).text
    assert "Your cart is empty" in shop.post("/cart/0/remove").text


def test_a_checkout_places_the_order_once(shop, data):
    product = plain(data)
    put(shop, product, quantity="2")
    shop.post("/checkout", data={"address": "Work"})
    page = shop.post("/checkout/shipping", data={"shipping": "Express"}).text
    assert f"Total: ${2 * product.price + 9}" in page
    placed = shop.post("/checkout/payment", data={"payment": "Card"})
    assert "Order 3001 is placed" in placed.text
    last = shop.get("/orders/last").text
    assert "Deliver to Work" in last
    assert f"2 x {product.name}" in last
    assert "Your cart is empty" in shop.post("/checkout/payment", data={"payment": "Card"}).text
    assert "Order 3002" not in shop.get("/orders").text


def test_checkout_pages_send_back_who_skipped_a_step(shop, data):
    assert shop.get("/checkout").url.path == "/cart"
    put(shop, plain(data))
    assert shop.get("/checkout/payment").url.path == "/checkout"
    assert shop.get("/checkout/shipping").url.path == "/checkout"
    assert "Choose an address" in shop.post("/checkout", data={"address": "Moon"}).text
    shop.post("/checkout", data={"address": "Home"})
    assert "Choose a shipping method" in shop.post("/checkout/shipping", data={"shipping": "Rocket"}).text
    assert shop.get("/checkout/payment").url.path == "/checkout"
    shop.post("/checkout/shipping", data={"shipping": "Pickup"})
    assert "Choose how to pay" in shop.post("/checkout/payment", data={"payment": "Gold"}).text
    assert shop.get("/orders/last").url.path == "/orders/1024"


def test_a_new_address_in_the_checkout_is_chosen(shop, data):
    put(shop, plain(data))
    page = shop.post("/checkout/address/new", data=ADDRESS)
    assert page.url.path == "/checkout"
    assert re.search(r'value="Beach" checked', page.text)
    assert "Beach" in shop.get("/addresses").text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": ""}, "Write a label"),
        ({"street": "   "}, "Write a street"),
        ({"city": "x" * 61}, "Write a city"),
        ({"postcode": "12345"}, "Postcode must be 4 digits"),
        ({"postcode": "12a4"}, "Postcode must be 4 digits"),
        ({"label": "Work"}, "You have an address with this label"),
    ],
)
def test_wrong_addresses_are_told_and_the_form_keeps_what_was_written(shop, change, message):
    answer = shop.post("/addresses/new", data={**ADDRESS, **change})
    assert answer.status_code == 422
    assert message in answer.text
    assert 'value="3 Elm Road"' in answer.text or "street" in change
    assert shop.get("/addresses").text.count('class="item"') == 5


def test_addresses_can_be_edited_and_deleted(shop):
    edited = shop.post("/addresses/edit?label=Work", data={**ADDRESS, "label": "Work"}).text
    assert "Work: 3 Elm Road, Bath, 1234" in edited
    assert "You have an address" in shop.post("/addresses/edit?label=Work", data={**ADDRESS, "label": "Home"}).text
    assert "There is no such address" in shop.get("/addresses/edit?label=Moon").text
    assert "Work:" not in shop.post("/addresses/delete", data={"label": "Work"}).text


def of_status(data: ShopData, status: str) -> int:
    return next(order.number for order in data.usual.orders if order.status == status)


def test_only_orders_in_processing_can_be_cancelled(shop, data):
    mine, gone = of_status(data, PROCESSING), of_status(data, DELIVERED)
    assert "Choose a reason" in shop.post(f"/orders/{mine}/cancel", data={"reason": ""}).text
    assert "Reason: Too slow" in shop.post(f"/orders/{mine}/cancel", data={"reason": "Too slow"}).text
    for number in (mine, gone):
        answer = shop.post(f"/orders/{number}/cancel", data={"reason": "Too slow"})
        assert (answer.status_code, "cannot be cancelled" in answer.text) == (422, True)
    assert "Cancel order" not in shop.get(f"/orders/{gone}").text


def test_order_again_fills_the_cart(shop, data):
    order = next(o for o in data.usual.orders if len(o.lines) == 2)
    page = shop.post(f"/orders/{order.number}/again").text
    assert f"Items: {order.items}" in page
    assert all(line.describe() in page for line in order.lines)


def test_reviews_are_published_first_and_count(shop, data):
    product = plain(data)
    errors = shop.post(f"/product/{product.slug}/review", data={"stars": "9 stars", "title": "", "text": ""})
    assert errors.status_code == 422
    assert all(text in errors.text for text in ("Choose the stars", "Write a title", "Write a text"))
    page = shop.post(f"/product/{product.slug}/review", data={"stars": "1 star", "title": "Meh", "text": "No"}).text
    assert page.index("Meh") < page.index(product.reviews[0].title)
    assert f"{len(product.reviews) + 1} reviews" in page


def test_guests_log_in_first_and_come_back(guest, data):
    tom: Account = data.accounts["tom@post.example"]
    asked = guest.get("/addresses")
    assert asked.url.path == "/login"
    assert "Log in first" in asked.text
    wrong = guest.post("/login", data={"email": tom.email, "password": "x", "next": "/addresses"})
    assert (wrong.status_code, "Email or password is wrong" in wrong.text) == (422, True)
    right = guest.post("/login", data={"email": tom.email, "password": tom.password, "next": "/addresses"})
    assert right.url.path == "/addresses"
    assert tom.addresses[0].line() in right.text
    assert "Log in" in guest.post("/logout").text
    assert guest.get("/orders").url.path == "/login"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_log_in_never_leads_out_of_the_shop(guest, data, target):
    tom = data.accounts["tom@post.example"]
    form = {"email": tom.email, "password": tom.password, "next": target}
    answer = guest.post("/login", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_customers_do_not_see_the_orders_of_others(guest, data):
    tom = data.accounts["tom@post.example"]
    guest.post("/login", data={"email": tom.email, "password": tom.password})
    assert guest.get(f"/orders/{tom.orders[0].number}").status_code == 200
    assert guest.get(f"/orders/{data.usual.orders[0].number}").status_code == 404


def test_the_wish_list_moves_to_the_cart(shop, data):
    product = data.usual.wishes[0]
    assert product.name in shop.get("/wishlist").text
    assert product.name in shop.post(f"/wishlist/{product.slug}/move").text
    assert product.name not in shop.get("/wishlist").text
    other = data.usual.wishes[1]
    assert f"/product/{other.slug}" not in shop.post(f"/wishlist/{other.slug}/remove").text
    for _ in range(2):
        shop.post(f"/product/{product.slug}/wish")
    assert shop.get("/wishlist").text.count(f">Move {product.name}<") == 1


@pytest.mark.parametrize("email", ["", "mia", "mia@post", "a b@post.example", "x" * 60 + "@post.example"])
def test_the_newsletter_wants_an_email(shop, email):
    answer = shop.post("/newsletter", data={"email": email, "frequency": "Weekly"})
    assert (answer.status_code, "Write a valid email" in answer.text) == (422, True)
    assert "Subscribed" not in shop.get("/newsletter").text


def test_messages_are_kept(shop):
    assert "Write a text" in shop.post("/contact", data={"subject": "Returns", "text": " "}).text
    assert "Choose a subject" in shop.post("/contact", data={"subject": "Gossip", "text": "Hi"}).text
    assert "Delivery: Where is it" in shop.post("/contact", data={"subject": "Delivery", "text": "Where is it"}).text
