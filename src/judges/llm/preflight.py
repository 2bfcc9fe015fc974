"""What can be said of language models before a run: are their keys, their SDKs and their endpoints there?

Owns ``look``, which opens no connection, and ``answers``, which asks each endpoint one cheap question, and Redis, where
it keeps the answers, whether it is there and free.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence

from pydantic import BaseModel

from judges.llm.cache import RedisCache, make_cache
from judges.llm.interface import LlmQuestion
from judges.llm.keys import KeyMissing, find_key
from judges.llm.service import JudgeService
from judges.llm.settings import LlmSettings, ModelSettings
from records.checks import Check, Status
from records.deadline import Deadline
from records.failures import EpisodeFailed

_INSTALL = "from the checkout: pip install -e '.[judges]'"
_SDKS = {"openai": "openai", "gemini": "google.genai"}
_ASKED_S = 30.0
"""Fixed: who runs `waymark doctor` waits for it."""


def look(settings: LlmSettings) -> list[Check]:
    """Return a check for each model, and one for Redis where it keeps the answers."""
    checks = [_model(name, model) for name, model in sorted(settings.models.items())]
    if settings.cache.startswith("redis") and not _installed("redis"):
        checks.append(Check("judges.llm.cache", Status.FAIL, "redis is not installed", _INSTALL))
    return checks


def answers(settings: LlmSettings) -> list[Check]:
    """Ask each model that passes ``look`` one cheap question; return a check for each, and one for Redis if any."""
    ready = {check.name for check in look(settings) if check.status is not Status.FAIL}
    asked = asyncio.run(_answers(settings, [name for name in sorted(settings.models) if _named(name) in ready]))
    return [*asked, *_redis(settings)]


def _redis(settings: LlmSettings) -> list[Check]:
    """Return a check of the Redis that keeps the answers, where one does and its client is installed."""
    if not settings.cache.startswith("redis") or not _installed("redis"):
        return []
    name, url = "judges.llm.cache", settings.cache
    cache = make_cache(settings, None)
    assert isinstance(cache, RedisCache)
    try:
        taken = cache.holds_rays_head()
    except OSError as error:
        return [Check(name, Status.WARN, f"{url}: {error}", "without it, what was asked before is paid for again")]
    finally:
        cache.close()
    if taken:
        found = f"{url} is where a Ray head keeps what it knows"
        return [Check(name, Status.FAIL, found, "name another one, such as /1: clearing one would clear both")]
    return [Check(name, Status.OK, f"{url} answers, and holds nothing of Ray's")]


class Five(BaseModel):
    """The answer to a cheap question."""

    sum: int


async def _answers(settings: LlmSettings, models: Sequence[str]) -> list[Check]:
    service, checks = JudgeService(settings), []
    try:
        for name in models:
            try:
                answer = await service.ask(name, _cheap_question(settings.models[name]), Deadline(_ASKED_S))
                found = f"2 + 3 is {answer.value.sum}, in {answer.input_tokens + answer.output_tokens} tokens"
                found += "; it cannot be kept from thinking" if answer.budget_refused else ""
                checks.append(Check(f"{_named(name)} answers", Status.OK, found))
            except EpisodeFailed as error:
                advice = error.failure.code.remedy
                checks.append(Check(f"{_named(name)} answers", Status.FAIL, error.failure.detail, advice))
    finally:
        await service.close()
    return checks


def _cheap_question(model: ModelSettings) -> LlmQuestion[Five]:
    """Return the question: without thinking where the model can be told so, to see whether it takes that."""
    told = model.client == "gemini" or model.without_thinking
    said = ("How much is 2 + 3?",)
    return LlmQuestion("doctor/1", "You add numbers.", said, Five, max_tokens=64, thinking_tokens=0 if told else None)


def _model(name: str, model: ModelSettings) -> Check:
    if not _installed(_SDKS[model.client]):
        return Check(_named(name), Status.FAIL, f"{_SDKS[model.client]} is not installed", _INSTALL)
    try:
        find_key(model)
    except KeyMissing as error:
        return Check(_named(name), Status.FAIL, str(error), "a key is never written into a recipe")
    source = model.key_variable or model.key_file
    found = f"{model.model} by {model.client}, " + (f"its key from {source}" if source else "without a key")
    if not (model.usd_per_million_input or model.usd_per_million_output) and not model.base_url:
        return Check(_named(name), Status.WARN, f"{found}, without prices", "name its prices, or no cost is counted")
    return Check(_named(name), Status.OK, found)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _named(name: str) -> str:
    return f"language model {name}"
