"""The back office's pages: what users can do, what they are told, and that sessions are private and may run out."""

from __future__ import annotations

import re
import time
from functools import lru_cache

import pytest
from starlette.testclient import TestClient

from sites.admin.data import build
from sites.admin.dates import iso, month_bounds, of_shop_date
from sites.admin.state import AdminState
from sites.shop.data import build as build_shop

USER = "nina"


@pytest.fixture
def visitor(app):
    """A client whose session is fresh and logged in."""
    return client(app, "one")


def client(app, token: str, login: bool = True) -> TestClient:
    app.state.sessions.reset(token, login=["admin"] if login else [])
    return TestClient(app, base_url=f"http://admin.{token}.localhost")


@lru_cache(maxsize=1)
def data():
    return build(0)


def some(**wanted):
    """An order whose attributes are as wanted; True and False ask whether there is something at all."""
    return next(
        order
        for order in data().orders.values()
        if all(
            bool(getattr(order, key)) == value if isinstance(value, bool) else getattr(order, key) == value
            for key, value in wanted.items()
        )
    )


def part(page: str, name: str) -> str:
    """The text of the element with this id."""
    found = re.search(rf'id="{name}">([^<]*)<', page)
    return found[1].replace("&#39;", "'") if found else ""


def numbers(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'aria-label="Select (\d+)"', page)]


def test_the_back_office_is_about_the_shops_own_orders_customers_and_products():
    shop, office = build_shop(0), data()
    for account in shop.accounts.values():
        assert office.customers[account.email].name == account.name
        for order in account.orders:
            assert office.orders[order.number].total == order.total
            assert office.orders[order.number].date == of_shop_date(order.date)
    assert {p.slug: (p.price, p.stock) for p in office.products.values()} == {
        p.slug: (p.price, p.stock) for p in shop.products.values()
    }
    assert len({p.sku for p in office.products.values()}) == len(shop.products)


def test_documents_follow_from_the_orders_status():
    for order in data().orders.values():
        assert bool(order.shipment) == (order.status in ("Shipped", "Delivered", "Refunded"))
        assert order.invoice or not order.shipment
        assert bool(order.memo) == (order.status == "Refunded")


def test_months_are_the_shops():
    assert (iso(0), iso(150)) == ("2025-08-01", "2026-01-01")
    assert month_bounds("December") == ("2025-12-01", "2025-12-30")


def test_other_seeds_give_another_back_office():
    assert build(1).orders != data().orders
    assert build(0) == data()


def test_everything_needs_a_log_in_and_leads_back_afterwards(app):
    stranger = client(app, "two", login=False)
    page = stranger.get("/orders?status=Shipped")
    assert page.url.path == "/login"
    assert "Log in first" in page.text
    form = {"user": USER, "password": "guess", "next": "/orders?status=Shipped"}
    assert "User name or password is wrong" in stranger.post("/login", data=form).text
    form["password"] = data().passwords[USER]
    page = stranger.post("/login", data=form)
    assert str(page.url).endswith("/orders?status=Shipped")
    assert stranger.post("/logout").url.path == "/login"
    assert stranger.get("/").url.path == "/login"


@pytest.mark.parametrize("target", ["//evil.example", "http://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_log_in_never_leads_out_of_the_site(app, target):
    stranger = client(app, "three", login=False)
    form = {"user": USER, "password": data().passwords[USER], "next": target}
    assert stranger.post("/login", data=form).url.path == "/"


def test_a_limited_log_in_runs_out_and_loses_the_form_that_was_sent(visitor):
    order = some(status="Pending")
    visitor.get("/?session_pages=1")
    assert visitor.get(f"/orders/{order.number}").url.path == f"/orders/{order.number}"
    assert visitor.get(f"/orders/{order.number}").url.path == f"/orders/{order.number}", "a page seen before is free"
    page = visitor.post(f"/orders/{order.number}/do/hold")
    assert "Your session has expired" in page.text
    assert "Dashboard" not in page.text
    assert visitor.get("/customers").url.path == "/login"
    form = {"user": USER, "password": data().passwords[USER], "next": "/"}
    assert visitor.post("/login", data=form).url.path == "/"
    assert part(visitor.get(f"/orders/{order.number}").text, "record") == order.summary
    visitor.get("/?session_pages=0")
    assert visitor.get("/products").url.path == "/products", "a log-in runs out once only"


def test_pages_from_before_a_log_in_ran_out_still_look_as_they_did(visitor):
    visitor.get("/?session_pages=1")
    before = visitor.get("/products").text
    assert visitor.get("/orders").url.path == "/login"
    assert visitor.get("/products").text == before


def test_a_page_that_is_asked_for_when_the_log_in_runs_out_comes_after_the_log_in(visitor):
    visitor.get("/?session_pages=0")
    page = visitor.get("/customers?name=mia")
    assert page.url.path == "/login"
    assert 'name="next" value="/customers?name=mia"' in page.text


def test_orders_are_newest_first_and_filters_hold_over_pages(visitor):
    page = visitor.get("/orders").text
    assert "Page 1 of 24" in page
    assert len(numbers(page)) == 5
    filtered = visitor.get("/orders?customer=hill&status=Delivered&start=2025-08-01&end=2025-10-30").text
    wanted = [o for o in data().orders.values() if o.customer == "Mia Hill" and o.status == "Delivered"]
    wanted = [o.number for o in wanted if o.date <= "2025-10-30"]
    assert part(filtered, "count") == f"{len(wanted)} orders: hill, Delivered, 2025-08-01, 2025-10-30"
    second = re.search(r'href="([^"]*)">Next page', filtered)
    assert second
    both = numbers(filtered) + numbers(visitor.get(f"/orders{second[1].replace('&amp;', '&')}").text)
    assert both == wanted[::-1][:10]


def test_an_order_is_held_released_and_cancelled_but_never_after_it_was_shipped(visitor):
    order = some(status="Pending")
    path = f"/orders/{order.number}"
    assert part(visitor.post(f"{path}/do/hold").text, "record").startswith("On hold, ")
    assert "cannot be put on hold" in visitor.post(f"{path}/do/hold").text
    assert part(visitor.post(f"{path}/do/release").text, "record").startswith("Pending, ")
    page = visitor.post(f"{path}/cancel", data={"comment": "<b>late</b>"}).text
    assert part(page, "record").startswith("Cancelled, ")
    assert "2026-02-01: &lt;b&gt;late" in page
    gone = some(status="Delivered").number
    page = visitor.post(f"/orders/{gone}/cancel")
    assert page.status_code == 422
    assert f"Order {gone} cannot be cancelled" in page.text


def test_an_order_goes_from_invoice_to_parcel_to_credit_memo(visitor):
    order = some(status="Pending")
    path = f"/orders/{order.number}"
    page = visitor.post(f"{path}/invoice").text
    assert part(page, "record").startswith("Processing, ")
    assert re.fullmatch(r"Invoice 7\d{3}, 2026-02-01", part(page, "invoice"))
    assert "1 invoices" in visitor.get(f"/sales/invoices?order={order.number}").text
    assert "cannot be invoiced" in visitor.post(f"{path}/invoice").text
    wrong = visitor.post(f"{path}/ship", data={"carrier": "Train", "tracking": "12"})
    assert wrong.status_code == 422
    assert "two letters and five digits" in wrong.text
    page = visitor.post(f"{path}/ship", data={"carrier": "Train", "tracking": "SX12345"}).text
    assert part(page, "shipment").endswith(": Train, tracking SX12345")
    too_much = visitor.post(f"{path}/refund", data={"reason": "Damaged", "amount": str(order.total + 1)}).text
    assert f"Refund must be 1 to {order.total}" in too_much
    page = visitor.post(f"{path}/refund", data={"reason": "Damaged", "amount": "3"}).text
    assert part(page, "memo").endswith(": Damaged, $3")
    assert "$3" in visitor.get(f"/sales/memos?order={order.number}").text
    assert "SX12345" in visitor.get(f"/sales/shipments?order={order.number}").text


def test_invoice_numbers_are_given_once(visitor):
    seen = [order.invoice.number for order in data().orders.values() if order.invoice]
    for order in [o for o in data().orders.values() if o.status == "Pending"][:2]:
        page = visitor.post(f"/orders/{order.number}/invoice").text
        seen.append(int(part(page, "invoice").split()[1].rstrip(",")))
    assert len(set(seen)) == len(seen)


def test_several_orders_change_at_once_and_those_that_cannot_are_named(visitor):
    pending, sent = some(status="Pending").number, some(status="Shipped").number
    page = visitor.post("/orders/bulk", data={"order": [str(pending), str(sent)], "action": "Hold"}).text
    assert "Changed 1 order" in page
    assert f"Order {sent} cannot be put on hold" in page
    for form in ({"order": [str(pending)], "action": "Choose"}, {"action": "Hold"}, {"order": ["x"], "action": "Hold"}):
        assert "Select orders and an action" in visitor.post("/orders/bulk", data=form).text


def test_comments_stand_newest_first(visitor):
    path = f"/orders/{some(status='Pending').number}"
    visitor.post(f"{path}/do/comment", data={"comment": "one"})
    page = visitor.post(f"{path}/do/comment", data={"comment": "two", "notify": "on"}).text
    assert re.findall(r'class="comment">([^<]*)<', page) == ["2026-02-01: two (customer notified)", "2026-02-01: one"]
    assert "Write a comment" in visitor.post(f"{path}/do/comment", data={"comment": " "}).text


GOOD_PRODUCT = {
    "name": "Fancy Oak Lamp", "sku": "LA-99", "category": "Lamps", "price": "20", "stock": "3", "status": "Enabled",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sku": "lamp"}, "An SKU is like AB-12"),
        ({"sku": "LA-01"}, "This SKU is taken"),
        ({"price": "-5"}, "Price must be a number above 0"),
        ({"price": "0"}, "Price must be a number above 0"),
        ({"stock": "many"}, "Stock must be a number"),
        ({"name": "4"}, "Write a name of letters"),
        ({"name": "New"}, "This name"),
        ({"category": "Cars"}, "Choose a category"),
        ({"status": "Sold"}, "Choose a status"),
    ],
)
def test_a_wrong_product_is_refused_with_a_reason_and_keeps_what_was_written(visitor, change, complaint):
    if change.get("name") == "New":
        visitor.post("/products/new", data={**GOOD_PRODUCT, "name": "New", "sku": "LA-98"})
    page = visitor.post("/products/new", data={**GOOD_PRODUCT, **change})
    assert page.status_code == 422
    assert complaint in page.text
    assert f'value="{change.get("name", "Fancy Oak Lamp")}"' in page.text
    assert "0 products" in visitor.get("/products?name=fancy").text


def test_a_product_is_added_changed_and_found(visitor):
    page = visitor.post("/products/new", data=GOOD_PRODUCT)
    assert page.url.path == "/products/fancy-oak-lamp"
    page = visitor.post("/products/fancy-oak-lamp", data={**GOOD_PRODUCT, "price": "25", "status": "Disabled"}).text
    assert part(page, "record") == "Fancy Oak Lamp, LA-99, Lamps, $25, 3 in stock, Disabled"
    assert part(visitor.get("/products?status=Disabled").text, "count") == "1 products: Disabled"
    assert "Fancy Oak Lamp" in visitor.get("/search?q=fancy+lamp").text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"email": "none"}, "Write a valid email"),
        ({"email": "mia@post.example"}, "This email is taken"),
        ({"phone": "12"}, "A phone number is like 555-1234"),
        ({"group": "Kings"}, "Choose a group"),
        ({"city": ""}, "Write a city"),
    ],
)
def test_a_wrong_customer_is_refused_with_a_reason(visitor, change, complaint):
    form = {"name": "Nora Green", "email": "nora@post.example", "group": "Retail", "phone": "", "city": "Bath"}
    page = visitor.post("/customers/new", data={**form, **change})
    assert page.status_code == 422
    assert complaint in page.text
    assert visitor.get("/customers/nora@post.example").status_code == 404


def test_a_customer_is_added_and_moved_but_keeps_the_email(visitor):
    form = {"name": "Nora Green", "email": "nora@post.example", "group": "Retail", "phone": "", "city": "Bath"}
    page = visitor.post("/customers/new", data=form).text
    assert part(page, "phone") == "Phone: none"
    page = visitor.post("/customers/nora@post.example/edit", data={**form, "group": "Staff", "email": "x@y.example"})
    assert part(page.text, "record") == "Nora Green, nora@post.example, Staff, Bath"


def test_reviews_are_approved_and_rejected_together_and_deleting_asks_once_more(visitor):
    page = visitor.get("/reviews").text
    before = int(part(page, "count").split()[0])
    one, two, three, *_ = (str(number) for number in numbers(page))
    assert "Approved 2 reviews" in visitor.post("/reviews/bulk", data={"review": [one, two], "action": "Approve"}).text
    asked = visitor.post("/reviews/bulk", data={"review": [three], "action": "Delete"})
    assert "This cannot be undone" in asked.text
    assert visitor.get(f"/reviews/{three}").status_code == 200
    assert "Deleted 1 review" in visitor.post(str(asked.url)).text
    assert visitor.get(f"/reviews/{three}").status_code == 404
    assert part(visitor.get("/reviews").text, "count") == f"{before - 3} reviews: Pending"
    assert part(visitor.get(f"/reviews/{one}").text, "record").startswith("Approved, ")
    assert "Select reviews and an action" in visitor.post("/reviews/bulk", data={"action": "Approve"}).text


GOOD_COUPON = {
    "name": "Holiday sale", "code": "HOLIDAY9", "percent": "9", "group": "Staff", "start": "2026-03-01",
    "end": "2026-03-20",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"code": "holiday"}, "A code is capital letters"),
        ({"percent": "95"}, "Percent must be 1 to 90"),
        ({"percent": "-5"}, "Percent must be 1 to 90"),
        ({"end": "2026-02-20"}, "The end is before the start"),
        ({"end": ""}, "Choose both dates"),
        ({"start": "2026-13-01"}, "Choose both dates"),
        ({"group": ""}, "Choose a group"),
        ({"name": ""}, "Write a name"),
    ],
)
def test_a_wrong_coupon_is_refused_with_a_reason(visitor, change, complaint):
    page = visitor.post("/coupons/new", data={**GOOD_COUPON, **change})
    assert page.status_code == 422
    assert complaint in page.text
    assert part(visitor.get("/coupons").text, "count") == "6 coupons"


def test_a_coupon_is_added_once_changed_and_deleted_after_asking(visitor):
    visitor.post("/coupons/new", data=GOOD_COUPON)
    assert "This code is taken" in visitor.post("/coupons/new", data=GOOD_COUPON).text
    page = visitor.post("/coupons/HOLIDAY9", data={**GOOD_COUPON, "percent": "10"}).text
    assert part(page, "record") == "Holiday sale: HOLIDAY9, 10 percent, Staff, 2026-03-01 to 2026-03-20"
    assert "This cannot be undone" in visitor.get("/coupons/HOLIDAY9/delete").text
    assert "Deleted HOLIDAY9" in visitor.post("/coupons/HOLIDAY9/delete").text
    assert visitor.get("/coupons/HOLIDAY9").status_code == 404


def test_a_content_page_keeps_its_address_when_it_is_renamed(visitor):
    form = {"title": "Our story", "text": "All is well.", "status": "Disabled"}
    page = visitor.post("/pages/about-us", data=form).text
    assert part(page, "record") == "Our story, Disabled: All is well."
    assert "Write a title" in visitor.post("/pages/about-us", data={**form, "title": ""}).text
    assert visitor.get("/pages").text.count(">Edit</a>") == 8


def test_the_sales_report_adds_up_what_was_not_cancelled(visitor):
    page = visitor.get("/reports/sales?start=2025-09-01&end=2025-09-30&step=Month").text
    counted = [o for o in data().orders.values() if o.date[:7] == "2025-09" and o.status != "Cancelled"]
    assert f"<td>2025-09</td><td>{len(counted)}</td><td>${sum(o.total for o in counted)}</td>" in page
    days = visitor.get("/reports/sales?start=2025-09-01&end=2025-09-30&step=Day").text
    assert "Page 1 of" in days
    assert 'step=Day&amp;page=2">Next page' in days


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("start=&end=2025-09-30", "Choose both dates"),
        ("start=2025-10-01&end=2025-09-30", "The end is before the start"),
        ("start=2025-08-01&end=2025-09-30&step=Hour", "Choose a step"),
    ],
)
def test_a_report_without_a_proper_period_is_refused_with_a_reason(visitor, query, complaint):
    page = visitor.get(f"/reports/sales?{query}")
    assert page.status_code == 422
    assert complaint in page.text
    assert "<table>" not in page.text


def test_reports_rank_customers_by_money_and_products_by_pieces(visitor):
    orders = [o for o in data().orders.values() if o.status != "Cancelled"]
    rows = {
        kind: re.findall(
            r"<tr><td>([^<]*)</td><td>(\d+)</td><td>\$(\d+)</td></tr>",
            visitor.get(f"/reports/{kind}?start=2025-08-01&end=2026-01-30").text,
        )
        for kind in ("customers", "bestsellers")
    }
    name, count, total = rows["customers"][0]
    own = [o for o in orders if o.customer == name]
    assert (len(own), sum(o.total for o in own)) == (int(count), int(total))
    assert [int(row[2]) for row in rows["customers"]] == sorted((int(r[2]) for r in rows["customers"]), reverse=True)
    name, pieces, _ = rows["bestsellers"][0]
    assert sum(line.quantity for o in orders for line in o.lines if line.product.name == name) == int(pieces)
    assert [int(row[1]) for row in rows["bestsellers"]] == sorted(
        (int(r[1]) for r in rows["bestsellers"]), reverse=True
    )


def test_a_search_finds_orders_by_number_and_people_and_goods_by_name(visitor):
    order = some(status="Pending")
    assert f'href="/orders/{order.number}">View' in visitor.get(f"/search?q={order.number}").text
    assert "Mia Hill" in visitor.get("/search?q=mia").text
    assert "Nothing found for &lt;i&gt;" in visitor.get("/search?q=<i>").text


@pytest.mark.parametrize(
    "path", ["/orders/9", "/orders/1001/burn", "/products/none", "/customers/none", "/reviews/99999", "/coupons/NONE",
             "/pages/none", "/reports/none", "/sales/none"],
)  # fmt: skip
def test_what_is_not_there_is_not_found(visitor, path):
    assert visitor.get(path).status_code == 404


def test_sessions_see_nothing_of_each_other(app, visitor):
    order = some(status="Pending")
    visitor.post(f"/orders/{order.number}/do/hold")
    other = client(app, "other")
    assert part(other.get(f"/orders/{order.number}").text, "record") == order.summary


def test_a_session_adds_so_many_records_and_no_more(visitor):
    path = f"/orders/{some(status='Pending').number}"
    for n in range(51):
        page = visitor.post(f"{path}/do/comment", data={"comment": str(n)}).text
    assert "There is no room for more" in page


def test_a_fresh_session_costs_microseconds():
    base = data()
    started = time.process_time()
    for _ in range(1000):
        AdminState(base, USER)
    assert (time.process_time() - started) / 1000 < 200e-6


def test_pages_hold_no_scripts_but_the_skip_link_and_every_field_has_a_label(visitor):
    for path in ("/", "/orders", "/orders/1001", "/products/new", "/customers/new", "/coupons/new", "/reports/sales"):
        page = visitor.get(path).text
        assert page.count("<script") == page.count("<script data-skip-link>")
        fields = set(re.findall(r'<(?:input|select|textarea)[^>]* id="([^"]+)"', page))
        assert fields <= set(re.findall(r'<label for="([^"]+)"', page)), path
