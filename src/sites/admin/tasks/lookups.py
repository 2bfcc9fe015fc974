"""Questions about customers and about what visitors searched for; some have no answer."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at
from sites.admin.data import AdminData, Term
from sites.admin.report_pages import ROWS
from sites.checks import (
    UNANSWERABLE,
    Evaluation,
    Milestones,
    acted,
    answer,
    answer_or_none,
    both,
    either,
    has,
    no_answer,
    shows,
)
from sites.experts import Expert, read
from sites.shop.data import MONTHS
from sites.skills import click, finish
from sites.task_template import TaskTemplate, drawn, one_of

_RIVALS = r"\b\d{2,3}\b"


class CustomerFact(TaskTemplate, name="admin.customer_fact", horizon=5):
    intent = "What is the {fact} of the customer {name}?"
    fact: str = one_of(("phone number", "city", "group"))
    name_: str = drawn(sampling.customer)

    def evaluation(self, data: AdminData) -> Evaluation:
        customer = data.customer(self.name_)
        found = {"phone number": customer.phone, "city": customer.city, "group": customer.group}[self.fact]
        return answer_or_none(found, "No phone number of this customer is known.")

    def milestones(self, data: AdminData) -> Milestones:
        opened = at(f"/customers/{data.customer(self.name_).email}*")
        listed = at(f"/customers?name={self.name_.replace(' ', '+')}*")
        return (
            ("The customers are shown", either(at("/customers*"), opened)),
            ("The name is written", either(has("Name", self.name_), listed, opened)),
            ("The customer is listed", either(both(listed, shows(self.name_)), opened)),
            ("The customer is open", both(opened, shows("Phone"))),
        )

    def expert(self) -> Expert:
        yield from click("Customers", "link")
        seen = yield from skills.filter_rows("Name", self.name_)
        seen = yield from skills.row_action(seen, rf"^{self.name_} \|", "View")
        facts = {
            "phone number": read(seen, r"Phone: (\d{3}-\d{4})", lacking=UNANSWERABLE),
            "city": read(seen, rf"{self.name_}, \S+, \w+, (\w+) "),
            "group": read(seen, rf"{self.name_}, \S+, (\w+), \w+ "),
        }
        yield from finish(facts[self.fact])


class TermUses(TaskTemplate, name="admin.term_uses"):
    intent = "How often was {term} searched for?"
    term: str = drawn(sampling.term)

    def found(self, data: AdminData) -> Term:
        return next(term for term in data.terms if term.words == self.term)

    def page(self, data: AdminData) -> int:
        """Return the page (from 0) of the list on which the term stands."""
        return data.terms.index(self.found(data)) // ROWS

    def evaluation(self, data: AdminData) -> Evaluation:
        return answer(str(self.found(data).uses))

    def milestones(self, data: AdminData) -> Milestones:
        there = skills.find_term.reached(self.term)
        return (
            ("The menu is used", either(acted("click", "Reports"), at("/reports/*"))),
            ("The search terms are shown", skills.open_table.reached("Search terms")),
            ("The list is turned over", either(at(f"/reports/terms?page={self.page(data) + 1}"), there)),
            ("The term is shown", there),
        )

    def expert(self) -> Expert:
        seen = yield from skills.find_term(self.term)
        yield from finish(read(seen, rf"{self.term} \d+ (\d+)"), _RIVALS)

    def steps(self, data: AdminData) -> int:
        return 3 + self.page(data)


class TermInMonth(TermUses, name="admin.term_in_month"):
    intent = "How often was {term} searched for in {month}?"
    month: str = one_of(MONTHS)

    def evaluation(self, data: AdminData) -> Evaluation:
        return no_answer("The report of search terms does not say when they were used.")

    def expert(self) -> Expert:
        yield from skills.find_term(self.term)
        yield from finish(UNANSWERABLE, _RIVALS)
