"""One named model asked with patience: the one place where a question to a language model is sent again.

Owns ``Endpoint``. Invariants: a question ends by its deadline with an answer that fits its schema, or as
``EpisodeFailed`` of kind judge, ``OutOfTime`` where more time might have brought one; an endpoint that asks for time
gets it; what passes is waited out as long as there is time, nonsense a bounded number of times, what lasts not at all;
every reply is paid for before it is used; a thinking budget that the model does not take is not told it again, and the
account then has room for a model that decides itself.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from judges.llm.accounts import Accounts, ModelAccount
from judges.llm.answers import NotAnAnswer, read_answer
from judges.llm.client import Client, Reply, Trouble, may_think_more, most_output_tokens
from judges.llm.interface import A, Image, LlmAnswer, LlmQuestion
from judges.llm.keys import Key, KeyMissing, find_key
from judges.llm.limits import Limits
from judges.llm.settings import ModelSettings
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure
from records.supervision import supervised
from telemetry import meter, table

_FIRST_PAUSE_S = 0.5
"""Fixed: a pace within the asker's deadline; it doubles, and varies by half so that askers do not come all at once."""
_LONGEST_PAUSE_S = 20.0
"""Fixed: the longest of these pauses; one that the endpoint asks for may be longer."""
_ATTEMPT_S = 60.0
"""Fixed: a reply that takes longer is lost; an asker with less time than two of these has it halved."""
_TOKENS_OF_IMAGE = 2000
"""More than providers count for a screenshot."""
_NO_ROOM = ("length", "MAX_TOKENS")
"""What OpenAI's protocol and Google's call the end of a reply's room."""

MakeClient = Callable[[ModelSettings, Key], Client]


def make_client(settings: ModelSettings, key: Key) -> Client:
    """Return the client that ``settings`` name; its SDK is imported now and not before."""
    if settings.client == "gemini":
        from judges.llm.gemini_client import GeminiClient

        return GeminiClient(settings, key)
    from judges.llm.openai_client import OpenAiClient

    return OpenAiClient(settings, key)


class OutOfTime(EpisodeFailed):
    """The asker's time was over before there was an answer: one with more time may ask again."""


class Endpoint:
    """A ``LanguageModel``: the model called ``alias`` in the recipe, asked from one event loop."""

    def __init__(self, alias: str, settings: ModelSettings, accounts: Accounts, make: MakeClient = make_client) -> None:
        self.name = settings.model
        self._alias, self._settings, self._accounts, self._make = alias, settings, accounts, make
        self._limits = Limits(settings)
        self._key = Key("")
        self._refused_budgets: set[int] = set()
        self._client: Client | None = None
        self._starting = asyncio.Lock()

    async def ask(self, question: LlmQuestion[A], deadline: Deadline) -> LlmAnswer[A]:
        """Return an answer; see ``LanguageModel``.

        Where the time is over, the failure is what the endpoint said last: that it says no more is less.
        """
        said: list[Trouble] = []
        try:
            with deadline.waiting_for(codes.JUDGE_TIMEOUT, f"model {self._alias} ({self.name})"):
                return await deadline.run(self._ask(question, deadline, said))
        except EpisodeFailed as error:
            if error.failure.code != codes.JUDGE_TIMEOUT:
                raise
            failure = Failure(said[-1].code, self._told(said[-1].detail)) if said else error.failure
            raise OutOfTime(failure) from error

    async def close(self) -> None:
        """Close the client's connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, question: LlmQuestion[A], deadline: Deadline, said: list[Trouble]) -> LlmAnswer[A]:
        """Ask until there is an answer, trouble lasts, or no time is left; ``said`` takes the troubles with a reply."""
        asked, paid, pause_s, nonsense, again = question, ModelAccount(self._alias), _FIRST_PAUSE_S, 0, False
        while True:
            if asked.thinking_tokens in self._refused_budgets:
                asked = replace(asked, thinking_tokens=None)
            try:
                reply, cost = await self._attempt(asked, deadline, again=again)
                paid, again = paid + cost, True
                value = _read(reply, asked)
                unbudgeted = asked.thinking_tokens != question.thinking_tokens
                spent = (paid.input_tokens, paid.output_tokens, paid.cost_usd)
                return LlmAnswer(value, self.name, *spent, budget_refused=unbudgeted)
            except Trouble as trouble:
                if trouble.budget_refused and asked.thinking_tokens is not None:
                    self._refused_budgets.add(asked.thinking_tokens)
                    continue
                if trouble.code == codes.JUDGE_NONSENSE:
                    nonsense += 1
                    await self._note(ModelAccount(self._alias, nonsense=1))
                    asked = replace(asked, parts=(*question.parts, _again(trouble.detail)))
                if trouble.code != codes.JUDGE_TIMEOUT:
                    said.append(trouble)
                failure = Failure(trouble.code, self._told(trouble.detail))
                wait_s = max(trouble.pause_s, pause_s * random.uniform(0.5, 1.5))
                if trouble.lasting or nonsense >= self._settings.nonsense_attempts:
                    raise EpisodeFailed(failure) from None
                if wait_s >= deadline.left():
                    raise OutOfTime(failure) from None
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            await asyncio.sleep(wait_s)

    async def _started(self) -> Client:
        """Return the client, made once and on another thread: its SDK's import takes seconds, and others ask here."""
        async with self._starting:
            if self._client is None:
                self._key = find_key(self._settings)
                self._client = await asyncio.to_thread(self._make, self._settings, self._key)
            return self._client

    async def _attempt(
        self, question: LlmQuestion[Any], deadline: Deadline, *, again: bool
    ) -> tuple[Reply | Trouble, ModelAccount]:
        """Send one request when it is its turn and the budget has room for it; return what came, and what it cost."""
        most_in, most_out = _most_tokens(question)
        sent = ModelAccount(self._alias, requests=1, retries=int(again))
        most_usd, most_tokens = self._usd(most_in, most_out), most_in + most_out
        async with self._limits.turn(most_tokens) as use, self._accounts.reserved(most_usd, most_tokens):
            said: Reply | Trouble
            try:
                began = time.perf_counter()
                said = await self._complete(question, deadline)
                meter.record(table.JUDGE_REQUEST_SECONDS, time.perf_counter() - began, model=self._alias)
                use.tokens = said.input_tokens + said.output_tokens
            except Trouble as trouble:
                said = trouble
            usd = self._usd(said.input_tokens, said.output_tokens)
            cost = replace(sent, input_tokens=said.input_tokens, output_tokens=said.output_tokens, cost_usd=usd)
            await self._note(cost)
        return said, cost

    async def _complete(self, question: LlmQuestion[Any], deadline: Deadline) -> Reply:
        """Let the client ask once; whatever it raises is trouble."""
        try:
            client = await self._started()
            timeout_s = min(_ATTEMPT_S, deadline.left() / 2)
            async with asyncio.timeout(timeout_s):
                said = await supervised(client.complete(question, timeout_s))
        except KeyMissing as error:
            raise Trouble(codes.JUDGE_REFUSED, str(error), lasting=True) from None
        except ImportError as error:
            said_so = f"cannot import {error.name!r}; install waymark[judges]"
            raise Trouble(codes.JUDGE_REFUSED, said_so, lasting=True) from None
        except TimeoutError:
            raise Trouble(codes.JUDGE_TIMEOUT, f"no reply within {timeout_s:.1f} s") from None
        if isinstance(said, Reply):
            return replace(said, text=self._key.hidden_in_answer(said.text))
        if isinstance(said, Trouble):
            raise said
        # What an SDK makes of a reply that nobody expected; its own words may quote the request.
        raise Trouble(codes.JUDGE_NONSENSE, f"the client could not read the reply ({type(said).__name__})")

    async def _note(self, change: ModelAccount) -> None:
        await asyncio.to_thread(self._accounts.add, change)

    def _usd(self, tokens_in: int, tokens_out: int) -> float:
        prices = self._settings
        return (tokens_in * prices.usd_per_million_input + tokens_out * prices.usd_per_million_output) / 1e6

    def _told(self, detail: str) -> str:
        return self._key.hidden_in(f"model {self._alias} ({self.name}): {detail}")


def _read(said: Reply | Trouble, question: LlmQuestion[A]) -> A:
    """Return the answer in what came; raise ``Trouble``."""
    if isinstance(said, Trouble):
        raise said
    try:
        return read_answer(said.text, question.schema)
    except NotAnAnswer as error:
        if said.blocked:
            detail = f"the provider's filter keeps {said.blocked} back: {said.cut}"
            raise Trouble(codes.JUDGE_BLOCKED, detail, lasting=True) from None
        stopped = f" (the model stopped at: {said.cut})" if said.cut else ""
        thought = not said.text and said.cut in _NO_ROOM and may_think_more(question)
        raise Trouble(codes.JUDGE_NONSENSE, f"{error}{stopped}", budget_refused=thought) from None


def _again(wrong: str) -> str:
    return f"An earlier reply could not be used: {wrong[:300]}. Reply with nothing but the JSON object asked for."


def _most_tokens(question: LlmQuestion[Any]) -> tuple[int, int]:
    """Return the most tokens that a question and its answer are expected to have."""
    texts = [question.system, *(part for part in question.parts if isinstance(part, str))]
    images = sum(isinstance(part, Image) for part in question.parts)
    tokens_in = sum(len(text.encode("utf-8", "replace")) for text in texts) // 2 + images * _TOKENS_OF_IMAGE
    return tokens_in, most_output_tokens(question)
