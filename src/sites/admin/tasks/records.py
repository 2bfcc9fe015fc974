"""Tasks about one product or one customer."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at, changed_product, equals, moved_customer, new_product, product_path, record, recorded
from sites.admin.data import AdminData
from sites.admin.records import Customer
from sites.admin.tasks.about import NewProduct, Saved
from sites.admin.words import PRODUCT_STATUSES
from sites.checks import Evaluation, Milestones, both, either, has, pages, shows, towards
from sites.experts import Expert
from sites.skills import choose, click, put, search
from sites.task_template import TaskTemplate, drawn, together

_DISABLED = PRODUCT_STATUSES[1]


class DisableProduct(Saved, name="admin.disable_product", horizon=5):
    intent = "Disable the product {product}."
    product: str = drawn(sampling.product)

    def record(self, data: AdminData) -> tuple[str, str]:
        return changed_product(data, self.product, status=_DISABLED)

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at(product_path(self.product)), recorded(*self.record(data))
        return (
            ("The product is listed", both(either(at("/search*"), at("/products*")), shows(self.product))),
            ("The product is open", form),
            ("The status is chosen", towards(done, form, has("Status", _DISABLED))),
            ("The product is saved", done),
        )

    def expert(self) -> Expert:
        yield from search(self.product)
        yield from click(self.product, "link")
        yield from choose("Status", _DISABLED)
        yield from click("Save", "button")


class SetPrice(Saved, name="admin.set_price", horizon=8):
    intent = "Change the price of the {product} to ${price}."
    product: str = drawn(sampling.product)
    price: int = drawn(sampling.price, "product")

    def record(self, data: AdminData) -> tuple[str, str]:
        return changed_product(data, self.product, price=self.price)

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at(product_path(self.product)), recorded(*self.record(data))
        return (
            ("The products are shown", either(at("/products*"), at("/search*"))),
            ("The product is open", form),
            ("The price is written", towards(done, form, has("Price", str(self.price)))),
            ("The product is saved", done),
        )

    def expert(self) -> Expert:
        yield from skills.edit_product(self.product, {"Price": str(self.price)})


class MoveCustomer(Saved, name="admin.move_customer", horizon=8, split="test"):
    intent = "Move the customer {name} to the group {group}."
    name_: str = drawn(sampling.customer)
    group: str = drawn(sampling.other_group, "name")

    def record(self, data: AdminData) -> tuple[str, str]:
        return moved_customer(data, self.name_, self.group)

    def milestones(self, data: AdminData) -> Milestones:
        path, summary = self.record(data)
        form, done = at(f"{path}/edit"), recorded(path, summary)
        return (
            ("The customer is open", at(f"{path}*")),
            ("The form is open", either(form, done)),
            ("The group is chosen", towards(done, form, has("Group", self.group))),
            ("The customer is saved", done),
        )

    def expert(self) -> Expert:
        yield from skills.move_customer(self.name_, self.group)


class AddCustomer(TaskTemplate, name="admin.add_customer", horizon=9):
    intent = "Add the customer {name}, {email}, group {group}, phone {phone}, city {city}."
    name_: str = together(sampling.new_customer)
    email: str
    group: str
    phone: str
    city: str

    @property
    def saved(self) -> tuple[str, str]:
        return f"/customers/{self.email}", Customer(**self.parameters).summary

    def evaluation(self, data: AdminData) -> Evaluation:
        path, summary = self.saved
        return pages(record(path, summary), equals(path, "#phone", f"Phone: {self.phone}"))

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at("/customers/new"), recorded(*self.saved)
        named = both(has("Name", self.name_), has("Email", self.email))
        return (
            ("The form is open", form),
            ("Name and email are written", towards(done, form, named)),
            ("The group is chosen", towards(done, form, both(named, has("Group", self.group)))),
            ("The customer is saved", done),
        )

    def expert(self) -> Expert:
        yield from click("Customers", "link")
        yield from click("Add customer", "link")
        yield from put("Name", self.name_)
        yield from put("Email", self.email)
        yield from choose("Group", self.group)
        yield from put("Phone", self.phone)
        yield from put("City", self.city)
        yield from click("Save", "button")


class AddProduct(NewProduct, Saved, name="admin.add_product", horizon=10):
    intent = "Add the product {product} with the SKU {sku} to the {category}: ${price}, {stock} in stock."

    def record(self, data: AdminData) -> tuple[str, str]:
        return new_product(*self.item)

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at("/products/new"), skills.add_product.reached(*self.item)
        named = both(has("Name", self.product), has("SKU", self.sku))
        return (
            ("The form is open", form),
            ("Name and SKU are written", towards(done, form, named)),
            ("The category is chosen", towards(done, form, both(named, has("Category", self.category)))),
            ("The product is saved", done),
        )

    def expert(self) -> Expert:
        yield from skills.add_product(*self.item)
