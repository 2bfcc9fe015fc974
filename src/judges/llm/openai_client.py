"""Any endpoint that speaks OpenAI's chat completions, by OpenAI's own SDK: one request, its own retries off.

Owns ``OpenAiClient``. Invariants: an endpoint is held to the schema where it can be; where it refuses that, the schema
is told in words; what it replies is read strictly.
"""

from __future__ import annotations

import base64
import time
from typing import Any

import openai
from pydantic import BaseModel, ValidationError

from judges.llm.answers import schema_in_words
from judges.llm.client import Reply, Trouble, refused, retry_after_s
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import Key
from judges.llm.settings import ModelSettings
from records import failure_codes as codes

_OWN = "https://api.openai.com/v1"
_NO_KEY = "none"
"""What the SDK sends where an endpoint asks for no key."""


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(BaseModel):
    """What is read of a chat completion."""

    choices: list[_Choice]
    usage: _Usage | None = None


class OpenAiClient:
    """A ``Client`` of the endpoint that ``settings`` name."""

    def __init__(self, settings: ModelSettings, key: Key) -> None:
        self._model = settings.model
        self._without_thinking = dict(settings.without_thinking)
        self._structured = True
        # What is asked goes to the endpoint that is named: where it redirects to was named by nobody.
        self._sdk = openai.AsyncOpenAI(
            api_key=key.reveal() or _NO_KEY, base_url=settings.base_url or _OWN, max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )  # fmt: skip

    async def complete(self, question: LlmQuestion[Any], timeout_s: float) -> Reply:
        """Send one chat completion; see ``Client``."""
        try:
            if not self._structured:
                return await self._send(question, timeout_s, structured=False)
            try:
                return await self._send(question, timeout_s, structured=True)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                reply = await self._send(question, timeout_s, structured=False)
            self._structured = False  # it was the schema that the endpoint refused
            return reply
        except openai.APITimeoutError as error:
            raise Trouble(codes.JUDGE_TIMEOUT, f"no reply within {timeout_s:.1f} s") from error
        except openai.APIStatusError as error:
            pause_s = retry_after_s(error.response.headers.get("retry-after"), time.time())
            raise refused(error.status_code, error.message, pause_s) from error
        except openai.APIConnectionError as error:
            raise Trouble(codes.JUDGE_UNREACHABLE, f"{type(error.__cause__ or error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def _send(self, question: LlmQuestion[Any], timeout_s: float, *, structured: bool) -> Reply:
        shape: dict[str, Any] = {}
        words: tuple[str, ...] = (schema_in_words(question.schema),)
        if structured:
            name, schema = question.schema.__name__, question.schema.model_json_schema()
            shape = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
            words = ()
        raw = await self._sdk.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[
                {"role": "system", "content": question.system},
                {"role": "user", "content": [_content(part) for part in (*question.parts, *words)]},
            ],
            temperature=question.temperature,
            max_completion_tokens=question.max_tokens + (question.thinking_tokens or 0),
            timeout=timeout_s,
            extra_body=self._without_thinking if question.thinking_tokens == 0 else None,
            **({"response_format": shape} if shape else {}),
        )
        try:
            said = _Completion.model_validate_json(raw.content)
        except ValidationError as error:
            raise Trouble(codes.JUDGE_NONSENSE, f"expected a chat completion, found {raw.text[:80]!r}") from error
        if not said.choices:
            raise Trouble(codes.JUDGE_NONSENSE, "expected a chat completion with a choice, found none")
        choice, usage = said.choices[0], said.usage or _Usage()
        cut = "" if choice.finish_reason in (None, "stop") else str(choice.finish_reason)
        return Reply(choice.message.content or "", usage.prompt_tokens, usage.completion_tokens, cut)


def _content(part: str | Image) -> dict[str, Any]:
    """Return a part as chat completions take it: a picture as a data URL."""
    if isinstance(part, Image):
        url = f"data:image/png;base64,{base64.b64encode(part.png).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": part}
