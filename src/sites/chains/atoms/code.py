"""The code host's atoms: stars, the own profile and projects' settings."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator

from sites.chains.atom import Atom
from sites.checks import Check, Target, both, shows
from sites.code import sampling, skills, words
from sites.code.checks import at, equals
from sites.code.data import ME, VISIBILITIES, CodeData
from sites.experts import Actions
from sites.skills import click, write
from sites.task_template import drawn, one_of

_PROFILE = f"/users/{ME}"


def _other_location(data: CodeData, rng: random.Random) -> str:
    """Draw a place that is not the user's location."""
    return rng.choice([place for place in words.PLACES if place != data.users[ME].location])


def _other_company(data: CodeData, rng: random.Random) -> str:
    """Draw a company that is not the user's."""
    return rng.choice([company for company in words.COMPANIES if company != data.users[ME].company])


class _OfProject(Atom):
    """About one project."""

    project: str

    def things(self, data: CodeData) -> Iterator[str]:
        yield self.project


class Star(_OfProject, name="code.star", length=3):
    wordings = (
        "Star the project {project}",
        "Give the project {project} a star",
        "Find the project {project} and star it",
        "You like the project {project}: star it",
        "Let the project {project} have your star",
        "To the project {project}, give a star",
    )
    project: str = drawn(sampling.project)

    def expert(self) -> Actions:
        yield from skills.open_project(self.project)
        return (yield from click("Star", "button"))

    def path(self, data: CodeData) -> str:
        return f"/{self.project}/star"

    def done(self, data: CodeData) -> Check:
        return both(at(f"/{self.project}"), shows(f"You starred {self.project}."))

    def wanted(self, data: CodeData) -> tuple[Target, ...]:
        return (equals(f"/{self.project}", "#star", "Unstar"),)


class _OwnProfile(Atom):
    """Changes what the own profile says, by a form of the user's menu."""

    told: str = ""

    def done(self, data: CodeData) -> Check:
        return both(at(_PROFILE), shows(self.told, *self.parameters.values()))


class SetStatus(_OwnProfile, name="code.set_status", length=4):
    wordings = (
        'Set your status to "{status}"',
        'Let your status be "{status}"',
        'Your status should say "{status}": set it',
        'As your status, write "{status}"',
        'Show "{status}" as your status',
        'Tell others "{status}" by your status',
    )
    told: str = "Your status was set."
    status: str = one_of(words.STATUSES)

    def expert(self) -> Actions:
        yield from click(ME, "button")
        yield from click("Set status", "link")
        yield from write({"Status": self.status})
        return (yield from click("Set status", "button"))

    def path(self, data: CodeData) -> str:
        return "/status"

    def wanted(self, data: CodeData) -> tuple[Target, ...]:
        return (equals(_PROFILE, "#status", self.status),)


class _Profile(_OwnProfile):
    """One field of the profile's form."""

    told: str = "Your profile was saved."
    field: str = ""

    def expert(self) -> Actions:
        yield from click(ME, "button")
        yield from click("Edit profile", "link")
        yield from write({self.field: str(self.parameters[self.field.lower()])})
        return (yield from click("Save changes", "button"))

    def path(self, data: CodeData) -> str:
        return "/profile"

    def wanted(self, data: CodeData) -> tuple[Target, ...]:
        name = self.field.lower()
        return (equals(_PROFILE, f"#{name}", str(self.parameters[name])),)


class SetLocation(_Profile, name="code.set_location", length=4):
    wordings = (
        "Change the location in your profile to {location}",
        "Set {location} as the location of your profile",
        "In your profile, write the location {location}",
        "You moved to {location}: change the location in your profile",
        "Let your profile say the location {location}",
        "Edit the profile so that its location is {location}",
    )
    field: str = "Location"
    location: str = drawn(_other_location)


class SetCompany(_Profile, name="code.set_company", length=4):
    wordings = (
        "Change the company in your profile to {company}",
        "Set {company} as the company of your profile",
        "In your profile, write the company {company}",
        "You work for {company} now: change the company in your profile",
        "Let your profile say the company {company}",
        "Edit the profile so that its company is {company}",
    )
    field: str = "Company"
    company: str = drawn(_other_company)


class _Setting(_OfProject):
    """A choice among a project's settings."""

    page: str = ""
    field: str = ""

    @property
    @abstractmethod
    def choice(self) -> str:
        """The option that is chosen."""

    def expert(self) -> Actions:
        yield from skills.open_project(self.project)
        return (yield from skills.change_setting(self.page, self.field, self.choice))

    def done(self, data: CodeData) -> Check:
        saved = skills.change_setting.reached(self.page, self.field, self.choice)
        return both(at(f"/{self.project}/settings*"), saved)


class SetVisibility(_Setting, name="code.set_visibility", length=6):
    wordings = (
        "Change the visibility of the project {project} to {visibility}",
        "Make the project {project} {visibility} by its visibility",
        "Set the visibility {visibility} for the project {project}",
        "The project {project} should have the visibility {visibility}: change it",
        "Let {visibility} be the visibility of the project {project}",
        "In the settings of {project}, choose the visibility {visibility}",
    )
    page: str = "General"
    field: str = "Visibility"
    project: str = drawn(sampling.managed)
    visibility: str = one_of(VISIBILITIES)

    @property
    def choice(self) -> str:
        return self.visibility

    def fits(self, data: CodeData) -> bool:
        return data.projects[self.project].visibility != self.visibility

    def path(self, data: CodeData) -> str:
        return f"/{self.project}/settings/visibility"

    def wanted(self, data: CodeData) -> tuple[Target, ...]:
        return (equals(f"/{self.project}", "#visibility", self.visibility),)


class SetDefaultBranch(_Setting, name="code.set_default_branch", length=6):
    wordings = (
        "Change the default branch of the project {project} to {branch}",
        "Make {branch} the default branch of the project {project}",
        "Set the default branch {branch} for the project {project}",
        "The project {project} should have the default branch {branch}: change it",
        "Let {branch} be the default branch of the project {project}",
        "In the settings of {project}, choose the default branch {branch}",
    )
    page: str = "Repository"
    field: str = "Default branch"
    project: str = drawn(sampling.managed)
    branch: str = one_of(words.BRANCHES)

    @property
    def choice(self) -> str:
        return self.branch

    def fits(self, data: CodeData) -> bool:
        return self.branch in data.projects[self.project].branches

    def path(self, data: CodeData) -> str:
        return f"/{self.project}/settings/default_branch"

    def wanted(self, data: CodeData) -> tuple[Target, ...]:
        return (equals(f"/{self.project}/branches", "#default", self.branch),)
