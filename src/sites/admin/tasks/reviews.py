"""Tasks that decide on reviews: those of one author, and of two authors differently."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at, equals, includes
from sites.admin.data import AdminData
from sites.admin.review_pages import DECISIONS, DELETE
from sites.admin.words import REVIEW_STATUSES
from sites.checks import Check, Evaluation, Milestones, Target, both, either, pages, shows
from sites.experts import Expert
from sites.task_template import TaskTemplate, drawn, one_of, together

_PENDING = REVIEW_STATUSES[0]


def _decided(data: AdminData, decisions: dict[str, str]) -> Evaluation:
    """Expect that all waiting reviews of these authors were decided on in these ways, and nobody else's."""
    targets: list[Target] = []
    for author, action in decisions.items():
        if action == DELETE:
            targets.append(equals(f"/reviews?author={author}&status=All", "#count", f"0 reviews: {author}"))
        else:
            said = f"{DECISIONS[action]}, {author}"
            targets += [includes(f"/reviews/{r.number}", "#record", said) for r in sampling.waiting(data, author)]
    left = sum(review.status == _PENDING and review.author not in decisions for review in data.reviews.values())
    return pages(*targets, equals("/reviews", "#count", f"{left} reviews: {_PENDING}"))


def _done(data: AdminData, author: str, action: str) -> Check:
    verb = DECISIONS.get(action, "Deleted")
    return both(at("/reviews"), shows(f"{verb} {len(sampling.waiting(data, author))} reviews"))


def _listed(author: str) -> Check:
    return at(f"/reviews?author={author.replace(' ', '+')}*")


def _ticked(data: AdminData, author: str) -> Check:
    return skills.tick_all.reached([f"Select {review.number}" for review in sampling.waiting(data, author)])


def _steps(data: AdminData, author: str, action: str) -> int:
    return 5 + len(sampling.waiting(data, author)) + (action == DELETE)


class ModerateReviews(TaskTemplate, name="admin.moderate_reviews"):
    intent = "{action} all pending reviews by {author}."
    action: str = one_of(sampling.REVIEW_ACTIONS)
    author: str = drawn(sampling.author)

    def evaluation(self, data: AdminData) -> Evaluation:
        return _decided(data, {self.author: self.action})

    def milestones(self, data: AdminData) -> Milestones:
        done = _done(data, self.author, self.action)
        return (
            ("The reviews are shown", skills.open_table.reached("Reviews")),
            ("The author's reviews are listed", either(_listed(self.author), done)),
            ("All of them are ticked", either(_ticked(data, self.author), done)),
            ("They are decided on", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_table("Reviews")
        yield from skills.decide(self.author, self.action)

    def steps(self, data: AdminData) -> int:
        return 3 + _steps(data, self.author, self.action)


class ModerateTwo(TaskTemplate, name="admin.moderate_two", split="test"):
    intent = "{action} all pending reviews by {first}, then {other} all pending reviews by {second}."
    action: str = together(sampling.two_decisions)
    first: str
    other: str
    second: str

    def evaluation(self, data: AdminData) -> Evaluation:
        return _decided(data, {self.first: self.action, self.second: self.other})

    def milestones(self, data: AdminData) -> Milestones:
        first, second = _done(data, self.first, self.action), _done(data, self.second, self.other)
        return (
            ("The first author's reviews are listed", either(_listed(self.first), first)),
            ("They are decided on", first),
            ("The second author's reviews are ticked", either(_ticked(data, self.second), second)),
            ("They are decided on too", second),
        )

    def expert(self) -> Expert:
        yield from skills.open_table("Reviews")
        yield from skills.decide(self.first, self.action)
        yield from skills.decide(self.second, self.other)

    def steps(self, data: AdminData) -> int:
        return 3 + _steps(data, self.first, self.action) + _steps(data, self.second, self.other)
