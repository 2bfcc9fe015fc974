"""Tasks about one coupon or one content page."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at, changed_page, new_coupon, recorded
from sites.admin.data import AdminData
from sites.admin.tasks.about import NewCoupon, Saved
from sites.admin.words import PAGE_TITLES
from sites.checks import Milestones, both, has, towards
from sites.experts import Expert
from sites.task_template import drawn, one_of


class RenamePage(Saved, name="admin.rename_page", horizon=6):
    intent = "Change the title of the page {page} to {title}."
    page: str = drawn(sampling.page)
    title: str = one_of(PAGE_TITLES)

    def record(self, data: AdminData) -> tuple[str, str]:
        return changed_page(data, self.page, title=self.title)

    def milestones(self, data: AdminData) -> Milestones:
        path, summary = self.record(data)
        form, done = at(path), recorded(path, summary)
        return (
            ("The pages are shown", skills.open_table.reached("Pages")),
            ("The page is open", form),
            ("The title is written", towards(done, form, has("Title", self.title))),
            ("The page is saved", done),
        )

    def expert(self) -> Expert:
        yield from skills.edit_page(self.page, "Title", self.title)


class AddCoupon(NewCoupon, Saved, name="admin.add_coupon", horizon=11):
    intent = (
        "Add the coupon {name} with the code {code}: {percent} percent for the group {group} from {start} to {end}."
    )

    def record(self, data: AdminData) -> tuple[str, str]:
        return new_coupon(*self.coupon)

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at("/coupons/new"), skills.add_coupon.reached(*self.coupon)
        named = both(has("Name", self.name_), has("Code", self.code))
        return (
            ("The form is open", form),
            ("Name and code are written", towards(done, form, named)),
            ("The group is chosen", towards(done, form, both(named, has("Group", self.group)))),
            ("The coupon is saved", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_table("Coupons")
        yield from skills.add_coupon(*self.coupon)
