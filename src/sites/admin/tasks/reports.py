"""Tasks about the reports of a period."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from sites.admin import reports, sampling, skills
from sites.admin.checks import ends_at
from sites.admin.data import AdminData
from sites.admin.records import Order
from sites.checks import Evaluation, Milestones, answer, either, has
from sites.experts import Expert, read
from sites.skills import finish
from sites.task_template import TaskTemplate, one_of, together


class _OfPeriod(TaskTemplate):
    report: ClassVar[str]
    start_: str = together(sampling.period)
    end: str
    step: str = ""

    def milestones(self, data: AdminData) -> Milestones:
        shown = skills.show_period.reached(self.report, self.start_, self.end, self.step)
        return (
            ("The report is open", skills.open_table.reached(self.report)),
            ("The first day is written", either(has("From", self.start_), shown)),
            ("The last day is written", either(has("To", self.end), shown)),
            ("The report of the period is shown", shown),
        )


class _First(_OfPeriod):
    """Who or what stands first."""

    kind: ClassVar[str]

    @abstractmethod
    def ranked(self, orders: list[Order]) -> list[tuple[int, str]]:
        """Return what the orders come to for each name, the most first."""

    def rows(self, data: AdminData) -> list[tuple[int, str]]:
        return self.ranked(reports.counted(data.orders.values(), self.start_, self.end))

    def fits(self, data: AdminData) -> bool:
        """Whether one name leads."""
        first, second, *_ = self.rows(data)
        return first[0] > second[0]

    def evaluation(self, data: AdminData) -> Evaluation:
        return answer(self.rows(data)[0][1])

    def expert(self) -> Expert:
        seen = yield from skills.show_period(self.report, self.start_, self.end)
        yield from finish(read(seen, rf"Total ({self.kind})"), self.kind)


class BestCustomer(_First, name="admin.best_customer", horizon=6):
    intent = "Which customer spent most from {start} to {end}?"
    report, kind = "Customer report", skills.PERSON

    def ranked(self, orders: list[Order]) -> list[tuple[int, str]]:
        return [(total, name) for name, _, total in reports.customers(orders)]


class Bestseller(_First, name="admin.bestseller", horizon=6, split="test"):
    intent = "Which product sold best from {start} to {end}?"
    report, kind = "Bestseller report", skills.PRODUCT

    def ranked(self, orders: list[Order]) -> list[tuple[int, str]]:
        return [(pieces, name) for name, pieces, _ in reports.bestsellers(orders)]


class ShowSales(_OfPeriod, name="admin.show_sales", horizon=7):
    intent = "Show the sales report from {start} to {end} by {step}."
    report = "Sales report"
    step: str = one_of([step for step in reports.STEPS if step != "Month"])

    def evaluation(self, data: AdminData) -> Evaluation:
        return ends_at(f"/reports/sales?start={self.start_}&end={self.end}&step={self.step}")

    def expert(self) -> Expert:
        yield from skills.show_period(self.report, self.start_, self.end, self.step)
