"""What templates have in common: the order that they are about, the record that they end with."""

from __future__ import annotations

from abc import abstractmethod

from sites.admin import sampling
from sites.admin.checks import record
from sites.admin.data import AdminData
from sites.checks import Evaluation, pages
from sites.task_template import TaskTemplate, drawn, together


class Saved(TaskTemplate):
    """Ends with one record that says what it should."""

    @abstractmethod
    def record(self, data: AdminData) -> tuple[str, str]:
        """Return the path of the record, and what its page says in the end."""

    def evaluation(self, data: AdminData) -> Evaluation:
        return pages(record(*self.record(data)))


class AboutOrder(TaskTemplate):
    number: int = drawn(sampling.order)

    @property
    def path(self) -> str:
        return f"/orders/{self.number}"


class LoggingIn(TaskTemplate):
    user: str = together(sampling.user)
    password: str


class NewProduct(TaskTemplate):
    product: str = together(sampling.new_product)
    sku: str
    category: str
    price: int
    stock: int

    @property
    def item(self) -> tuple[str, str, str, int, int]:
        return self.product, self.sku, self.category, self.price, self.stock


class NewCoupon(TaskTemplate):
    old: str = ""
    name_: str = together(sampling.new_coupon)
    code: str
    percent: int
    group: str
    start_: str
    end: str

    @property
    def coupon(self) -> tuple[str, str, int, str, str, str]:
        return self.name_, self.code, self.percent, self.group, self.start_, self.end
