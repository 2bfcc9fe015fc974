"""Which language models judges may ask, where they are, what they cost, and how much a run may spend on them.

Owns ``ModelSettings`` and ``LlmSettings``. Invariants: a key itself is no setting, only where it is to be found; an
address with a name or password in it is refused, because settings are written into run folders. Imports neither
torch nor pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from records.bounds import above, at_least, one_of, require, share

CLIENTS = ("openai", "gemini")


@dataclass(frozen=True)
class ModelSettings:
    """One named language model."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "base_url", "key_variable", "key_file", "usd_per_million_input", "usd_per_million_output",
        "requests_per_minute", "tokens_per_minute", "concurrent_requests",
    )  # fmt: skip
    unset: ClassVar[Mapping[str, object]] = {"without_thinking": {}}

    model: str
    """The model as its provider calls it, such as ``gemini-2.5-flash``."""
    client: str = "openai"
    """Protocol of the endpoint: ``openai`` (any endpoint compatible with OpenAI's chat completions, vLLM's among them)
    or ``gemini`` (Google's)."""
    base_url: str = ""
    """Address of the endpoint, such as ``http://127.0.0.1:8000/v1``; empty for the provider's own."""
    key_variable: str = ""
    """Environment variable that holds the key, in the environment of whoever asks the model."""
    key_file: str = ""
    """File that holds the key and nothing else, instead of a variable. Without either no key is sent."""
    usd_per_million_input: float = 0.0
    """Price of a million tokens of questions, in USD."""
    usd_per_million_output: float = 0.0
    """Price of a million tokens of answers, those of thinking included, in USD."""
    requests_per_minute: int = 600
    """Requests within any minute at most."""
    tokens_per_minute: int = 2_000_000
    """Tokens of questions and answers within any minute at most."""
    concurrent_requests: int = 8
    """Requests under way at most."""
    nonsense_attempts: int = 3
    """Times that a question is sent whose replies do not fit what was asked for."""

    without_thinking: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that keep this model from thinking, for questions that are to be answered without, such as
    ``{reasoning_effort: none}`` or vLLM's ``{chat_template_kwargs: {enable_thinking: false}}``. For ``openai`` alone:
    Google's models are told a budget of 0."""

    def __post_init__(self) -> None:
        """Refuse what no endpoint can be asked with."""
        require(bool(self.model), "model", "the name of a model", self.model)
        one_of(self, "client", CLIENTS)
        require(not self.base_url or _is_plain(self.base_url), "base_url", _PLAIN, _without_user(self.base_url))
        require(not (self.key_variable and self.key_file), "key_file", "empty beside key_variable", self.key_file)
        require(
            not self.without_thinking or self.client == "openai", "without_thinking", "nothing with client gemini",
            self.without_thinking,
        )  # fmt: skip
        at_least(self, 0, "usd_per_million_input", "usd_per_million_output")
        at_least(self, 1, "requests_per_minute", "tokens_per_minute", "concurrent_requests", "nonsense_attempts")


@dataclass(frozen=True)
class LlmSettings:
    """The language models that judges may ask, and the judge of answers ``llm``."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("budget_usd", "budget_tokens", "cache", "cache_password_variable")

    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """Models by a name of your own, under which judges ask them: ``models: {flash: {model: …, client: …}}``."""
    model: str = ""
    """Name of the model that compares answers, where ``judges.evaluators.answer_judge`` is ``llm``."""
    budget_usd: float = 20.0
    """Most that the whole run may spend, in USD, by the prices of the models; past it the run stops, and goes on
    under a larger one."""
    budget_tokens: int = 200_000_000
    """Most tokens that the whole run may use, of all models together, likewise."""
    cache: str = "file"
    """Where answers are kept so that no question is paid for twice: ``file`` in the run folder, the path of another
    SQLite file, or ``redis://HOST:PORT/DB`` for several runs together."""
    cache_password_variable: str = ""
    """Environment variable that holds the password of Redis."""

    def __post_init__(self) -> None:
        """Refuse budgets of nothing, names that stand for no model, and passwords."""
        require(
            not self.model or self.model in self.models,
            "model",
            f"one of judges.llm.models ({', '.join(sorted(self.models)) or 'there are none'})",
            self.model,
        )
        above(self, 0, "budget_usd")
        at_least(self, 1, "budget_tokens")
        require(bool(self.cache), "cache", "file, a path, or redis://…", self.cache)
        if self.cache.startswith("redis"):
            require(_is_plain(self.cache), "cache", _PLAIN, _without_user(self.cache))


@dataclass(frozen=True)
class OrmSettings:
    """The judge of recorded episodes ``orm``: a language model says whether an episode did its task."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    model: str = ""
    """Name of the model that is asked, out of ``judges.llm.models``."""
    threshold: float = 0.5
    """Probability of success from which on an episode counts as one."""
    screenshot: bool = True
    """Whether the model sees the last picture of an episode, where one was taken."""

    def __post_init__(self) -> None:
        """Refuse thresholds that decide nothing."""
        above(self, 0, "threshold")
        share(self, "threshold")


@dataclass(frozen=True)
class ProcessSettings:
    """The judge of recorded episodes ``process``: a language model says of each step whether it was right."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    model: str = ""
    """Name of the model that is asked, out of ``judges.llm.models``."""
    per: str = "episode"
    """One question for each ``episode``, which is cheaper, or for each ``step``, with the pages before and after it."""

    def __post_init__(self) -> None:
        """Refuse other units."""
        one_of(self, "per", ("episode", "step"))


def named_model(settings: LlmSettings, name: str) -> str:
    """Return how its provider calls the model ``name``; raise ``ValueError`` where there is none of that name."""
    if name not in settings.models:
        there = ", ".join(sorted(settings.models)) or "there are none"
        raise ValueError(f"expected the name of a model in judges.llm.models ({there}), found {name!r}")
    return settings.models[name].model


_PLAIN = "an address without a name or password in it, such as http://127.0.0.1:8000/v1 or redis://127.0.0.1:6379/1"


def _is_plain(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https", "redis", "rediss") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _without_user(address: str) -> str:
    return address.rpartition("@")[2]
