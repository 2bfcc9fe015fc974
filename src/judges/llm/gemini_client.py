"""Gemini by Google's own SDK: one request, its own retries and continuations off.

Owns ``GeminiClient``. Invariants: Google's environment variables decide nothing; the SDK asks over httpx2, whose errors
are known here, whatever else is installed; what it replies is read here and strictly, its counts of tokens leniently.
"""

from __future__ import annotations

from typing import Any

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import BaseModel, Field, ValidationError

from judges.llm.answers import problems_in
from judges.llm.bodies import json_object, pause_s, status_in, text_of_error, tokens_in
from judges.llm.bounded_http import BoundedHttp
from judges.llm.client import Reply, Trouble, most_output_tokens, refused
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import Key
from judges.llm.settings import ModelSettings
from records import failure_codes as codes

_OWN = "https://generativelanguage.googleapis.com/"
_NO_KEY = "none"
"""The SDK asks for a key in any case; an endpoint of one's own may need none."""
_BLOCKED = ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII")
"""Reasons of Google's filters that the same question meets again."""
_OF_THINKING = ("budget", "thinking")
"""Words of the refusals of a thinking budget; a bad request of another cause has neither."""


class _Part(BaseModel):
    text: str | None = None
    thought: bool | None = None


class _Content(BaseModel):
    parts: list[_Part] | None = None


class _Candidate(BaseModel):
    content: _Content | None = None
    finish_reason: str | None = Field(default=None, alias="finishReason")


class _Feedback(BaseModel):
    block_reason: str | None = Field(default=None, alias="blockReason")


class _Generated(BaseModel):
    """What is read of a reply, beside its counts."""

    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = Field(default=None, alias="promptFeedback")


class GeminiClient:
    """A ``Client`` of Gemini, or of an endpoint that speaks its protocol."""

    def __init__(self, settings: ModelSettings, key: Key) -> None:
        self._model, self._key = settings.model, key
        self._http = BoundedHttp()
        self._sdk = genai.Client(
            api_key=key.reveal() or _NO_KEY,
            vertexai=False,
            http_options=types.HttpOptions(base_url=settings.base_url or _OWN, httpx_async_client=self._http),
        )

    async def complete(self, question: LlmQuestion[Any], timeout_s: float) -> Reply:
        """Send one request; see ``Client``."""
        try:
            parts = [_part(part) for part in question.parts]
            config = _config(question, timeout_s)
            raw = await self._sdk.aio.models.generate_content(model=self._model, contents=parts, config=config)
        except httpx2.TimeoutException as error:
            raise Trouble(codes.JUDGE_TIMEOUT, f"no reply within {timeout_s:.1f} s") from error
        except httpx2.LocalProtocolError as error:  # it quotes the header that it refuses
            raise Trouble(codes.JUDGE_UNREACHABLE, type(error).__name__) from None
        except httpx2.HTTPError as error:
            raise Trouble(codes.JUDGE_UNREACHABLE, f"{type(error).__name__}: {error}") from error
        except errors.APIError as error:
            details = error.details if isinstance(error.details, dict) else {}
            header = error.response.headers.get("retry-after") if error.response is not None else None
            said = details.get("error", details) or error.status
            raise self._refused(error.code, said, header, question) from error
        http = raw.sdk_http_response
        return self._read(http.body or "", (http.headers or {}).get("retry-after"), question)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _refused(
        self,
        status: int,
        error: object,
        header: str | None,
        question: LlmQuestion[Any],
        spent: tuple[int, int] = (0, 0),
    ) -> Trouble:
        said = self._key.hidden_in(text_of_error(error))
        trouble = refused(status, said, pause_s(header, error), spent)
        about_thinking = any(word in said.lower() for word in _OF_THINKING)
        trouble.budget_refused = status == 400 and question.thinking_tokens is not None and about_thinking
        return trouble

    def _read(self, body: str, retry_after: str | None, question: LlmQuestion[Any]) -> Reply:
        """Return the reply in a body of status 200; raise ``Trouble``."""
        found = json_object(body)
        if found is None:
            raise Trouble(codes.JUDGE_NONSENSE, f"expected a reply of Gemini, found {self._key.hidden_in(body)[:80]!r}")
        usage, error = found.get("usageMetadata"), found.get("error")
        spoken = tokens_in(usage, "candidatesTokenCount") + tokens_in(usage, "thoughtsTokenCount")
        spent = (tokens_in(usage, "promptTokenCount"), spoken)
        if error and not found.get("candidates"):
            status = status_in(error)
            if status is not None:
                raise self._refused(status, error, retry_after, question, spent)
            said = self._key.hidden_in(text_of_error(error))
            raise Trouble(
                codes.JUDGE_NONSENSE, f"expected a reply of Gemini, found an error: {said[:200]}", spent=spent
            )
        try:
            reply = _Generated.model_validate(found)
        except ValidationError as wrong:
            said = f"expected a reply of Gemini: {problems_in(wrong, 'the reply')}"
            raise Trouble(codes.JUDGE_NONSENSE, said, spent=spent) from None
        return _reply(reply, *spent)


def _config(question: LlmQuestion[Any], timeout_s: float) -> types.GenerateContentConfig:
    thinking = question.thinking_tokens
    return types.GenerateContentConfig(
        system_instruction=question.system,
        temperature=question.temperature,
        max_output_tokens=most_output_tokens(question),
        response_mime_type="application/json",
        response_json_schema=question.schema.model_json_schema(),
        thinking_config=None if thinking is None else types.ThinkingConfig(thinking_budget=thinking),
        http_options=types.HttpOptions(timeout=max(1, round(timeout_s * 1000))),
        should_return_http_response=True,  # what the SDK makes of a body loses errors, and answers with odd counts
    )


def _part(part: str | Image) -> types.Part:
    if isinstance(part, Image):
        return types.Part.from_bytes(data=part.png, mime_type="image/png")
    return types.Part.from_text(text=part)


def _reply(said: _Generated, input_tokens: int, output_tokens: int) -> Reply:
    first = said.candidates[0] if said.candidates else _Candidate()
    parts = first.content.parts or [] if first.content else []
    text = "".join(part.text or "" for part in parts if not part.thought)
    ended, feedback = (first.finish_reason or "").upper(), said.prompt_feedback
    if feedback is not None and feedback.block_reason and not said.candidates:
        blocked = "the prompt" if feedback.block_reason in _BLOCKED else ""
        ended = feedback.block_reason if blocked else f"the prompt was blocked, {feedback.block_reason}"
    else:
        blocked = "the reply" if ended in _BLOCKED else ""
    return Reply(text, input_tokens, output_tokens, "" if ended == "STOP" else ended, blocked)
