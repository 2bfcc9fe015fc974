"""Gemini by Google's own SDK: one request, its own retries off.

Owns ``GeminiClient``. Invariants: Google's environment variables decide nothing; the SDK asks over httpx2, whose errors
are known here, whatever else is installed; what it replies is read strictly.
"""

from __future__ import annotations

import time
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from judges.llm.client import Reply, Trouble, refused, retry_after_s
from judges.llm.interface import Image, LlmQuestion
from judges.llm.keys import Key
from judges.llm.settings import ModelSettings
from records import failure_codes as codes

_OWN = "https://generativelanguage.googleapis.com/"
_NO_KEY = "none"
"""The SDK asks for a key in any case; an endpoint of one's own may need none."""
_THINKING_TOKENS = 8192
"""Room for the thinking of a model that decides itself how long it thinks."""


class GeminiClient:
    """A ``Client`` of Gemini, or of an endpoint that speaks its protocol."""

    def __init__(self, settings: ModelSettings, key: Key) -> None:
        self._model = settings.model
        self._http = httpx2.AsyncClient()
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
        except httpx2.HTTPError as error:
            raise Trouble(codes.JUDGE_UNREACHABLE, f"{type(error).__name__}: {error}") from error
        except errors.APIError as error:
            header = error.response.headers.get("retry-after") if error.response is not None else None
            pause_s = max(retry_after_s(header, time.time()), _retry_delay_s(error.details))
            raise refused(error.code, error.message or error.status or "no reason given", pause_s) from error
        except (errors.UnknownApiResponseError, ValidationError) as error:
            raise Trouble(codes.JUDGE_NONSENSE, f"expected a reply of Gemini: {str(error)[:200]}") from error
        return _reply(raw)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _config(question: LlmQuestion[Any], timeout_s: float) -> types.GenerateContentConfig:
    thinking = question.thinking_tokens
    return types.GenerateContentConfig(
        system_instruction=question.system,
        temperature=question.temperature,
        max_output_tokens=question.max_tokens + (_THINKING_TOKENS if thinking is None else thinking),
        response_mime_type="application/json",
        response_json_schema=question.schema.model_json_schema(),
        thinking_config=None if thinking is None else types.ThinkingConfig(thinking_budget=thinking),
        http_options=types.HttpOptions(timeout=max(1, round(timeout_s * 1000))),
    )


def _part(part: str | Image) -> types.Part:
    if isinstance(part, Image):
        return types.Part.from_bytes(data=part.png, mime_type="image/png")
    return types.Part.from_text(text=part)


def _reply(raw: types.GenerateContentResponse) -> Reply:
    usage = raw.usage_metadata or types.GenerateContentResponseUsageMetadata()
    spoken = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    first = raw.candidates[0] if raw.candidates else types.Candidate()
    parts = first.content.parts or [] if first.content else []
    text = "".join(part.text or "" for part in parts if not part.thought)
    ended = first.finish_reason.value if first.finish_reason else ""
    return Reply(text, usage.prompt_token_count or 0, spoken, "" if ended == "STOP" else ended)


def _retry_delay_s(details: object) -> float:
    """Return the seconds of Google's own ``RetryInfo`` in an error's body (``"13s"``), 0 where there is none."""
    found = details.get("error", details) if isinstance(details, dict) else {}
    listed = found.get("details") if isinstance(found, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return retry_after_s(delay.removesuffix("s"), time.time())
    return 0.0
