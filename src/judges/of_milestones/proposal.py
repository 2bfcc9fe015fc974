"""What a language model answers when it is asked for milestones, and what becomes of it.

Owns the schema and its reading. Invariants: what is not in the schema is refused; a check is built from the answer's
fields in our own little language (``judges.milestones``) and validated, never evaluated; a milestone that already holds
on the first page, or would hold everywhere, is refused, because reaching it says nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from judges.milestones import check, validate
from records.environment import Observation
from records.episodes import Milestone, Task
from records.placeholders import placeholder

MOST = 8
"""Fixed: milestones that a task may have; more would be steps."""

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_Optional = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class ProposedCondition(BaseModel):
    """One condition of a check. Which fields count depends on ``kind``; the others stay empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["url", "text", "element", "acted"] = Field(
        description="url: the page's address matches the pattern in value, where * stands for anything. text: the page "
        "shows the text in value. element: the page has an element named value. acted: an action was done on an "
        "element named value."
    )
    value: Line
    role: _Optional = Field("", description="Of an element: its role, such as link or textbox; empty for any.")
    holds: _Optional = Field("", description="Of an element: what it contains. Of an action: the text it typed.")
    action: _Optional = Field("", description="Of acted: the kind of action, such as click, type, search or select.")

    def to_check(self) -> dict[str, Any]:
        """Return the condition in the language of ``judges.milestones``; raise ``ValueError`` for a field missing."""
        if self.kind == "url":
            return {"url": self.value}
        if self.kind == "text":
            return {"text": [self.value]}
        if self.kind == "element":
            given = {"name": self.value, "role": self.role, "value": self.holds}
        else:
            if not self.action:
                raise ValueError("a condition of the kind acted needs its action")
            given = {"kind": self.action, "name": self.value, "argument": self.holds}
        return {self.kind: {key: text for key, text in given.items() if text}}


class ProposedMilestone(BaseModel):
    """One milestone: what is true once it is reached, and the conditions that all hold then."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: Line
    conditions: list[ProposedCondition] = Field(default_factory=list, max_length=6)


class ProposedMilestones(BaseModel):
    """The milestones of a task, in the order in which they are reached."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    milestones: list[ProposedMilestone] = Field(min_length=1, max_length=MOST)


def read_proposal(
    proposal: ProposedMilestones, task: Task, first_page: Observation, *, count: int, checks: bool
) -> tuple[Milestone, ...]:
    """Return the task's milestones: ``count`` of them (0: 2 to 8), each with a check where ``checks`` asks for one.

    Raises:
        ValueError: saying what is wrong, in a sentence that the model can be told.
    """
    found = proposal.milestones
    if count and len(found) != count:
        raise ValueError(f"expected exactly {count} milestones, found {len(found)}")
    if len(found) < 2:
        raise ValueError(f"expected at least 2 milestones, found {len(found)}")
    said = [one.description.casefold() for one in found]
    if len(set(said)) < len(said):
        raise ValueError("expected milestones that differ, found one twice")
    return tuple(_milestone(one, number, task, first_page, checks) for number, one in enumerate(found, start=1))


def _milestone(one: ProposedMilestone, number: int, task: Task, first_page: Observation, checks: bool) -> Milestone:
    where = f"milestone {number}"
    if not one.description.isprintable():
        raise ValueError(f"{where}: expected a description in one line of plain text")
    if not checks:
        return Milestone(one.description, {})
    conditions = [_condition(condition, where, task) for condition in one.conditions]
    if not conditions:
        raise ValueError(f"{where}: expected at least one condition, found none")
    made = conditions[0] if len(conditions) == 1 else {"all": conditions}
    validate(made, where)
    if check(made, first_page, ()):
        raise ValueError(f"{where}: its conditions already hold on the first page, so reaching it says nothing")
    return Milestone(one.description, made)


def _condition(condition: ProposedCondition, where: str, task: Task) -> dict[str, Any]:
    """Return one condition; an address is one of the task's sites, and says something beyond it."""
    try:
        made = condition.to_check()
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if condition.kind == "url":
        bases = [placeholder(site) for site in task.sites]
        if not any(condition.value.startswith(base) for base in bases):
            raise ValueError(f"{where}: expected an address that begins with {' or '.join(bases)}")
        if not any(condition.value.removeprefix(base).strip("/*") for base in bases):
            raise ValueError(f"{where}: expected an address that says more than the site")
    return made
