"""From a model's text to an answer of the schema that was asked for, or to what is wrong with it.

Owns ``read_answer``, how a schema is told in words, and how what does not fit one is. Invariants: what does not fit the
schema is no answer; nothing is guessed, mended or evaluated; JSON with prose or a code fence around it counts only
where it is the one object there.
"""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

A = TypeVar("A", bound=BaseModel)

_LONGEST = 50_000
"""Characters; a text beyond them is none that was asked for."""


class NotAnAnswer(ValueError):
    """A text that does not fit its schema; says what was expected, for the reader and for the model."""


_MOST_BRACES = 50
"""Fixed: braces in prose that open no object; each is read from anew."""


def read_answer(text: str, schema: type[A]) -> A:
    """Return the answer in ``text``; raise ``NotAnAnswer``."""
    if len(text) > _LONGEST:
        raise NotAnAnswer(f"expected one JSON object, found {len(text)} characters")
    found = text.strip()
    if not found.startswith("{") or not found.endswith("}"):
        found = _only_object(text)
    try:
        return schema.model_validate_json(found, strict=True)
    except ValidationError as error:
        raise NotAnAnswer(problems_in(error, "the answer")) from None


def problems_in(error: ValidationError, whole: str) -> str:
    """Return what does not fit, without a word of what was found: pydantic's own text quotes and cuts it."""
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or whole}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False)[:5]
    )


def schema_in_words(schema: type[BaseModel]) -> str:
    """Return the request for an answer of this schema, for endpoints that cannot be held to one."""
    shape = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It has to fit this JSON schema: {shape}"


def _only_object(text: str) -> str:
    """Return the one JSON object in prose; a few braces that open no object are part of the prose."""
    decoder, found, at, prose = json.JSONDecoder(), [], text.find("{"), 0
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            prose += 1
            if prose > _MOST_BRACES:
                raise NotAnAnswer(f"expected one JSON object, found {prose} braces that open none") from None
            at = text.find("{", at + 1)
            continue
        if isinstance(value, dict):
            found.append(text[at:end])
        at = text.find("{", end)
    if len(found) != 1:
        raise NotAnAnswer(f"expected one JSON object, found {len(found)} in {text[:80]!r}")
    return found[0]
