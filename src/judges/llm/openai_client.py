"""Any endpoint that speaks OpenAI's chat completions, by OpenAI's own SDK, its own retries off.

Owns ``OpenAiClient``. Invariants: an endpoint is held to the schema where it can be; what it refuses of a request (the
schema, a temperature, the name or the size of the limit) is left out of the next one, and what has been found to be
refused is not sent to this model again; what it replies is read strictly, its counts of tokens leniently.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from typing import Any

import openai
from pydantic import BaseModel, ValidationError

from judges.llm.answers import problems_in, schema_in_words
from judges.llm.bodies import json_object, pause_s, status_in, text_of_error, tokens_in
from judges.llm.bounded_http import BoundedHttp
from judges.llm.client import Reply, Trouble, may_think_more, most_output_tokens, refused
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import Key
from judges.llm.settings import ModelSettings
from records import failure_codes as codes

_OWN = "https://api.openai.com/v1"
_NO_KEY = "none"
"""What the SDK sends where an endpoint asks for no key."""
_LIMIT, _OLDER_LIMIT = "max_completion_tokens", "max_tokens"
_TOO_MUCH = re.compile(r"too large|at most|context (length|window)|maximum|range|exceed|less than")
"""What endpoints say of a limit that is larger than they have room for."""
_ECHO = re.compile(r"[\"']messages[\"']")
"""Stands in an error that says the whole request back, and names nothing of it."""
_TOO_LITTLE = "try again with higher max_tokens"
"""OpenAI's end of a reply whose room was used up by thinking: an error of status 400."""
_BLOCKED = "content_filter"


class _Message(BaseModel):
    content: str | list[Any] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """What is read of a chat completion, beside its counts."""

    choices: list[_Choice]


@dataclass(frozen=True, slots=True)
class _Form:
    """How a request is put: with what is known to be refused left out."""

    structured: bool = True
    temperature: bool = True
    limit: str = _LIMIT
    thinking_room: bool = True

    def learned(self, asked: _Form) -> _Form:
        """Return the form for the next question after ``asked`` was answered.

        How much room there is depends on the question as well, so that is tried anew.
        """
        limit = asked.limit if self.limit == _LIMIT else self.limit
        return _Form(self.structured and asked.structured, self.temperature and asked.temperature, limit)


class _RefusalError(Exception):
    """An error of the endpoint: its HTTP status, itself, its Retry-After header, and the tokens that it counts."""

    def __init__(self, status: int, error: object, retry_after: str | None, spent: tuple[int, int] = (0, 0)) -> None:
        super().__init__(status)
        self.status, self.error, self.retry_after, self.spent = status, error, retry_after, spent


class OpenAiClient:
    """A ``Client`` of the endpoint that ``settings`` name."""

    def __init__(self, settings: ModelSettings, key: Key) -> None:
        self._model, self._key = settings.model, key
        self._without_thinking = dict(settings.without_thinking)
        self._form = _Form()
        # What is asked goes to the endpoint that is named: where it redirects to was named by nobody.
        http = BoundedHttp(follow_redirects=False, limits=openai.DEFAULT_CONNECTION_LIMITS)
        self._sdk = openai.AsyncOpenAI(
            api_key=key.reveal() or _NO_KEY, base_url=settings.base_url or _OWN, max_retries=0, http_client=http
        )

    async def complete(self, question: LlmQuestion[Any], timeout_s: float) -> Reply:
        """Send one chat completion, and again without what is refused of it; see ``Client``."""
        form = self._form
        while True:
            try:
                reply = await self._send(question, form, timeout_s)
            except openai.APITimeoutError as error:
                raise Trouble(codes.JUDGE_TIMEOUT, f"no reply within {timeout_s:.1f} s") from error
            except openai.APIConnectionError as error:
                raise Trouble(codes.JUDGE_UNREACHABLE, f"{type(error.__cause__ or error).__name__}: {error}") from error
            except _RefusalError as refusal:
                other = _otherwise(form, refusal, question) if refusal.status in (400, 422) else None
                if other is None:
                    raise self._refused(refusal, question) from refusal
                form = other
            else:
                self._form = self._form.learned(form)
                return reply

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def _send(self, question: LlmQuestion[Any], form: _Form, timeout_s: float) -> Reply:
        fields: dict[str, Any] = {
            form.limit: most_output_tokens(question) if form.thinking_room else question.max_tokens
        }
        words: tuple[str, ...] = (schema_in_words(question.schema),)
        if form.structured:
            name, schema = question.schema.__name__, question.schema.model_json_schema()
            shape = {"name": name, "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": shape}
            words = ()
        if form.temperature:
            fields["temperature"] = question.temperature
        try:
            raw = await self._sdk.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": question.system},
                    {"role": "user", "content": [_content(part) for part in (*question.parts, *words)]},
                ],
                timeout=timeout_s,
                extra_body=self._without_thinking if question.thinking_tokens == 0 else None,
                **fields,
            )
        except openai.APIStatusError as error:
            header = error.response.headers.get("retry-after")
            raise _RefusalError(error.status_code, error.body, header) from error
        return self._read(raw.content, raw.headers.get("retry-after"))

    def _read(self, body: bytes, retry_after: str | None) -> Reply:
        """Return the reply in a body of status 200; raise ``Trouble``, or a refusal that stands in it."""
        found = json_object(body)
        if found is None:
            text = self._key.hidden_in(body.decode("utf-8", "replace"))
            raise Trouble(codes.JUDGE_NONSENSE, f"expected a chat completion, found {text[:80]!r}")
        usage, error = found.get("usage"), found.get("error")
        spent = (tokens_in(usage, "prompt_tokens"), tokens_in(usage, "completion_tokens"))
        if error and not found.get("choices"):
            status = status_in(error)
            if status is not None:
                raise _RefusalError(status, error, retry_after, spent)
            said = self._key.hidden_in(text_of_error(error))[:200]
            raise Trouble(codes.JUDGE_NONSENSE, f"expected a chat completion, found an error: {said}", spent=spent)
        try:
            choices = _Completion.model_validate(found).choices
        except ValidationError as wrong:
            said = f"expected a chat completion: {problems_in(wrong, 'the reply')}"
            raise Trouble(codes.JUDGE_NONSENSE, said, spent=spent) from None
        if not choices:
            raise Trouble(codes.JUDGE_NONSENSE, "expected a chat completion with a choice, found none", spent=spent)
        ended = choices[0].finish_reason or "stop"
        blocked = "the reply" if ended == _BLOCKED else ""
        return Reply(_text(choices[0].message.content), *spent, "" if ended == "stop" else ended, blocked)

    def _refused(self, refusal: _RefusalError, question: LlmQuestion[Any]) -> Trouble:
        said, wait_s = self._key.hidden_in(text_of_error(refusal.error)), pause_s(refusal.retry_after, refusal.error)
        trouble = refused(refusal.status, said, wait_s, refusal.spent)
        trouble.budget_refused = _TOO_LITTLE in _named_in(refusal.error) and may_think_more(question)
        return trouble


def _otherwise(form: _Form, refusal: _RefusalError, question: LlmQuestion[Any]) -> _Form | None:
    """Return how to ask after a refusal: without what it names, else without the schema.

    None where nothing is left to leave out, or where the model wants more room instead.
    """
    said = _named_in(refusal.error)
    if _TOO_LITTLE in said:
        return None
    of_the_limit = _OLDER_LIMIT in said or _LIMIT in said
    has_room = form.thinking_room and most_output_tokens(question) > question.max_tokens
    if form.temperature and "temperature" in said:
        return replace(form, temperature=False)
    if has_room and "token" in said and _TOO_MUCH.search(said):
        return replace(form, thinking_room=False)
    if form.limit == _LIMIT and of_the_limit:
        return replace(form, limit=_OLDER_LIMIT)
    if has_room and of_the_limit:
        return replace(form, thinking_room=False)
    return replace(form, structured=False) if form.structured else None


def _named_in(error: object) -> str:
    """Return the text in which an error names a field: its parameter, or what it says unless that is the request."""
    said = text_of_error(error).lower()
    named = error.get("param") if isinstance(error, dict) else None
    if isinstance(named, str) and named:
        return f"{named.lower()} {said}"
    return "" if _ECHO.search(said) else said


def _text(content: str | list[Any] | None) -> str:
    """Return the text of a message, which may come in parts; those of thoughts and pictures are none of it."""
    if not isinstance(content, list):
        return content or ""
    said = (part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in content)
    return "".join(text for text in said if isinstance(text, str))


def _content(part: str | Image) -> dict[str, Any]:
    """Return a part as chat completions take it: a picture as a data URL."""
    if isinstance(part, Image):
        url = f"data:image/png;base64,{base64.b64encode(part.png).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": part}
