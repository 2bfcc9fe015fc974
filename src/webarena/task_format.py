"""The three formats of WebArena's task files as types: WebArena, WebArena-Lite, and Lite's training tasks.

Owns the shape of one entry and what makes it malformed. Invariants: unknown keys are allowed and kept; a value
of another type than the files have is an error and is never converted. Reads no files.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Texts = list[str] | str
"""Task files hold a lone string in a few places where a list of strings is meant."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class References(_Entry):
    """Rules for an answer (``reference_answers``) or a page's content (``required_contents``)."""

    exact_match: str | None = None
    must_include: Texts | None = None
    must_exclude: Texts | None = None
    required_values: Texts | None = None
    one_of: Texts | None = None
    fuzzy_match: Texts | None = None


class Target(_Entry):
    """One target of ``program_html``: ``url`` is an address, ``last`` or ``func:…``."""

    url: str
    locator: str
    required_contents: References
    prep_actions: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _some_contents(self) -> Target:
        if not self.required_contents.model_fields_set:
            raise ValueError("required_contents with at least one rule")
        return self


class Evaluation(_Entry):
    """The ``eval`` object."""

    eval_types: list[Literal["string_match", "url_match", "program_html"]] = Field(min_length=1)
    reference_answers: References | None = None
    reference_url: str | None = None
    program_html: list[Target] = Field(default_factory=list)
    url_note: Literal["GOLD in PRED", "EXACT"] | None = None
    string_note: str | None = None
    reference_answer_raw_annotation: str | None = None

    @model_validator(mode="after")
    def _enough_to_judge(self) -> Evaluation:
        answers = self.reference_answers
        if "string_match" in self.eval_types and not (answers and answers.model_fields_set):
            raise ValueError("reference_answers with at least one rule, as eval_types has string_match")
        if "url_match" in self.eval_types and not self.reference_url:
            raise ValueError("an address in reference_url, as eval_types has url_match")
        if "program_html" in self.eval_types and not self.program_html:
            raise ValueError("at least one target in program_html, as eval_types has it")
        return self


class Geolocation(_Entry):
    """Where the browser says it is, in degrees; ``accuracy`` in metres."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    accuracy: float = Field(default=0.0, ge=0)


class Viewport(_Entry):
    """Size of the page area, in CSS pixels; None keeps the browser's own."""

    width: int | None = Field(default=None, gt=0)
    height: int | None = Field(default=None, gt=0)


class TaskEntry(_Entry):
    """One task; ``old_task_id`` is its id in WebArena, which only the WebArena-Lite files have."""

    task_id: int
    sites: list[Literal["shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage"]] = Field(
        min_length=1
    )
    require_login: bool
    storage_state: str | None
    start_url: str = Field(min_length=1)
    geolocation: Geolocation | None = None
    viewport_size: Viewport | None = None
    intent_template: str
    instantiation_dict: dict[str, Any]
    intent: str = Field(min_length=1)
    require_reset: bool
    evaluation: Evaluation = Field(alias="eval")
    intent_template_id: int
    old_task_id: int | None = None
