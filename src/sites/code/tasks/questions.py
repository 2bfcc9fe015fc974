"""Tasks that ask for a fact; for some the site has no answer."""

from __future__ import annotations

from dataclasses import replace

from sites.checks import UNANSWERABLE, Evaluation, Milestones, answer_or_none, both, has
from sites.code import sampling, skills
from sites.code.checks import at
from sites.code.data import ROLES, CodeData
from sites.code.tasks.about import AboutIssue
from sites.code.words import COMPANIES, PLACES
from sites.experts import Expert
from sites.skills import any_of, finish
from sites.task_template import TaskTemplate, drawn, one_of


class UserFact(TaskTemplate, name="code.user_fact", horizon=3):
    intent = "What is the {field} of the user {user}?"
    field: str = one_of(("email", "location", "company"))
    user: str = drawn(sampling.user)

    def fact(self, data: CodeData) -> str:
        return str(getattr(data.users[self.user], self.field))

    def fits(self, data: CodeData) -> bool:
        alike = [replace(self, user=name) for name in data.users if self.user in name and name != self.user]
        return all(other.fact(data) != self.fact(data) for other in alike)

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer_or_none(self.fact(data), f"The profile of {self.user} shows no {self.field}.")

    def milestones(self, data: CodeData) -> Milestones:
        return (
            ("see a search box", has("Search", role="searchbox")),
            ("search for something", at("/search*")),
            ("find the user", both(at("/search*"), has(self.user, role="link"))),
            ("open the profile", skills.open_user.reached(self.user)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_user(self.user)
        yield from finish(skills.fact(self.field.capitalize(), seen), rf"\S+@\S+|{any_of((*PLACES, *COMPANIES))}")


class RoleOf(TaskTemplate, name="code.role_of", horizon=5):
    intent = "What is the role of {user} in the project {project}?"
    project: str = drawn(sampling.project)
    user: str = drawn(sampling.member_or_not, "project")

    def role(self, data: CodeData) -> str:
        return data.projects[self.project].members.get(self.user, "")

    def fits(self, data: CodeData) -> bool:
        """Whether projects of the same name give other answers."""
        others = [replace(self, project=path) for path in sampling.namesakes(data, self.project)]
        return all(other.role(data) != self.role(data) for other in others)

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer_or_none(self.role(data), f"{self.user} is no member of {self.project}.")

    def milestones(self, data: CodeData) -> Milestones:
        return (
            ("search for the project", at("/search*")),
            ("open the project", at(f"/{self.project}")),
            ("open a menu", both(at(f"/{self.project}"), has("Members"))),
            ("open its members", at(f"/{self.project}/members")),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        seen = yield from skills.open_page("Members")
        rows = dict(line.split(" | ") for line in seen.text.splitlines() if line.count(" | ") == 1 and "(" not in line)
        yield from finish(rows.get(self.user, UNANSWERABLE), "|".join(ROLES))


class MilestoneEnd(TaskTemplate, name="code.milestone_end", horizon=6):
    intent = "When does the milestone {milestone} of the project {project} end?"
    project: str = drawn(sampling.project)
    milestone: str = drawn(sampling.milestone, "project")

    def end(self, data: CodeData) -> str:
        return str(data.projects[self.project].milestone(self.milestone).end or "")

    def fits(self, data: CodeData) -> bool:
        """Whether no other milestone of this project or one of the same name ends on that day."""
        projects = (self.project, *sampling.namesakes(data, self.project))
        ends = [str(milestone.end or "") for path in projects for milestone in data.projects[path].milestones]
        return ends.count(self.end(data)) == 1

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer_or_none(self.end(data), f"The milestone {self.milestone} has no end date.")

    def milestones(self, data: CodeData) -> Milestones:
        path = f"/{self.project}/milestones/{data.projects[self.project].milestone(self.milestone).number}"
        return ("search for the project", at("/search*")), *skills.finding(
            self.project, "milestones", "milestone", path
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        seen = yield from skills.open_milestone(self.milestone)
        yield from finish(skills.fact("Ends", seen), skills.DAYS)


class IssueDue(AboutIssue, name="code.issue_due", horizon=7):
    intent = "When is the issue {title} of the project {project} due?"

    def fits(self, data: CodeData) -> bool:
        """Whether no issue about the same thing is due on that day."""
        alike = sampling.alike(data.projects[self.project].issues, self.title)
        return all(issue.due != self.issue(data).due for issue in alike)

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer_or_none(str(self.issue(data).due or ""), f"The issue {self.title} has no due date.")

    def milestones(self, data: CodeData) -> Milestones:
        return ("search for the project", at("/search*")), *skills.finding(
            self.project, "issues", "issue", self.path(data)
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        seen = yield from skills.open_issue(self.title)
        yield from finish(skills.fact("Due", seen), skills.DAYS)
