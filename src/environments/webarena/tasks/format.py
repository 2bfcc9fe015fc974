"""The three formats of WebArena's task files as types: WebArena, WebArena-Lite, and Lite's training tasks.

Owns the shape of one entry and what makes it malformed. Invariants: unknown keys are allowed and kept; a value
of another type than the files have is an error and is never converted. Reads no files.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from environments.webarena.sites.addresses import SITES
from environments.webarena.tasks.bounds import (
    MAX_NUMBER,
    MAX_PIXELS,
    check_address,
    check_call,
    check_state_file,
    check_tabs,
    check_target,
)

OR = " |OR| "
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Pixels = Annotated[int, Field(gt=0, le=MAX_PIXELS)]
Texts = list[str] | str
"""Task files hold a lone string in a few places where a list of strings is meant."""


def _names(info: ValidationInfo) -> tuple[str, ...]:
    """Return the sites that there are; who reads a file says so, else they are WebArena's own."""
    return info.context if info.context else SITES


def _site(name: str, info: ValidationInfo) -> str:
    if name not in _names(info):
        *others, last = map(repr, _names(info))
        raise ValueError(f"{', '.join(others)} or {last}")
    return name


def _target(text: str, info: ValidationInfo) -> str:
    return check_target(text, _names(info))


def _tabs(text: str, info: ValidationInfo) -> str:
    return check_tabs(text, _names(info))


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)


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

    url: Annotated[str, AfterValidator(_target)]
    locator: str
    required_contents: References
    prep_actions: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _known_function(self) -> Target:
        if self.locator.strip().startswith("func:"):
            check_call(self.locator.strip())
        return self

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
    def _enough_to_judge(self, info: ValidationInfo) -> Evaluation:
        answers = self.reference_answers
        if "string_match" in self.eval_types and not (answers and answers.model_fields_set):
            raise ValueError("reference_answers with at least one rule, as eval_types has string_match")
        if "url_match" in self.eval_types and not self.reference_url:
            raise ValueError("an address in reference_url, as eval_types has url_match")
        if "url_match" in self.eval_types:
            for address in (self.reference_url or "").split(OR):
                check_address(address, _names(info))
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

    width: Pixels | None = None
    height: Pixels | None = None


class TaskEntry(_Entry):
    """One task; ``old_task_id`` is its id in WebArena, which only the WebArena-Lite files have."""

    task_id: Number
    sites: list[Annotated[str, AfterValidator(_site)]] = Field(min_length=1)
    require_login: bool
    storage_state: Annotated[str, AfterValidator(check_state_file)] | None
    start_url: Annotated[str, AfterValidator(_tabs)]
    geolocation: Geolocation | None = None
    viewport_size: Viewport | None = None
    intent_template: str
    instantiation_dict: dict[str, Any]
    intent: str = Field(min_length=1)
    require_reset: bool
    evaluation: Evaluation = Field(alias="eval")
    intent_template_id: Number
    old_task_id: Number | None = None
