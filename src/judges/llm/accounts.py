"""What a run has asked of language models and paid for it, kept on disk, and the budget that it may not exceed.

Owns ``ModelAccount``, ``Accounts`` and the file ``accounts.sqlite``. Invariants: what a reply cost is on disk before
the reply is used, so that a run that is killed and goes on counts on; a request is sent only where the most that it can
cost still fits into the budget beside those under way, for which it waits.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from judges.llm.settings import LlmSettings
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from telemetry import meter, table

FILE_NAME = "accounts.sqlite"
_ROOM_S = 0.2
"""Fixed: a pace within the asker's deadline; requests under way end in seconds."""
LOCKED_S = 10.0
"""Fixed: one process writes these files, and each of its writes takes milliseconds."""


@dataclass(frozen=True, slots=True)
class ModelAccount:
    """What was asked of one model.

    Of ``questions``, ``cached`` were answered from the cache or by another's question under way, and ``failures`` not
    at all. ``requests`` were sent for the rest, ``retries`` of them because an earlier one came to nothing;
    ``nonsense`` counts replies that do not fit. Tokens and USD are those of all replies.
    """

    name: str
    questions: int = 0
    cached: int = 0
    failures: int = 0
    requests: int = 0
    retries: int = 0
    nonsense: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def line(self) -> str:
        """Return the account as a person reads it."""
        return (
            f"{self.questions} questions, {self.cached} of them known and {self.failures} without an answer; "
            f"{self.requests} requests, {self.retries} of them repeated; {self.input_tokens + self.output_tokens} "
            f"tokens, {self.cost_usd:.4f} USD"
        )

    def __add__(self, other: ModelAccount) -> ModelAccount:
        """Return both together, under this one's name."""
        return ModelAccount(self.name, *(getattr(self, part) + getattr(other, part) for part in _PARTS))


_PARTS = tuple(field.name for field in fields(ModelAccount) if field.name != "name")
_CREATE = f"CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, {', '.join(_PARTS)})"
_WRITE = f"INSERT OR REPLACE INTO accounts VALUES (:name, {', '.join(f':{part}' for part in _PARTS)})"
_READ = f"SELECT name, {', '.join(_PARTS)} FROM accounts ORDER BY name"


class Accounts:
    """The accounts in ``path`` (None: in memory alone), held against the budget of ``settings``. Safe in threads."""

    def __init__(self, path: Path | None, settings: LlmSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._reserved_usd, self._reserved_tokens = 0.0, 0
        self._file = sqlite3.connect(path or ":memory:", timeout=LOCKED_S, check_same_thread=False)
        self._file.execute(_CREATE)
        self._file.commit()
        self._held = {account.name: account for account in _read(self._file)}

    def add(self, change: ModelAccount) -> None:
        """Add to a model's account, durably; raise ``OSError`` where that cannot be."""
        with self._lock:
            held = self._held.get(change.name, ModelAccount(change.name)) + change
            try:
                with self._file:
                    self._file.execute(_WRITE, asdict(held))
            except (sqlite3.Error, OverflowError) as error:
                raise OSError(f"{FILE_NAME}: {error}") from error
            self._held[change.name] = held
        _measure(change)

    def all(self) -> tuple[ModelAccount, ...]:
        """Return every account, by name."""
        with self._lock:
            return tuple(self._held[name] for name in sorted(self._held))

    @asynccontextmanager
    async def reserved(self, usd: float, tokens: int) -> AsyncIterator[None]:
        """Keep room for a request that costs at most this, as soon as there is some beside those under way.

        Raises:
            EpisodeFailed: ``judge/judge_budget`` where what is spent leaves no room for it.
        """
        while not self._reserve(usd, tokens):
            await asyncio.sleep(_ROOM_S)
        try:
            yield
        finally:
            with self._lock:
                self._reserved_usd -= usd
                self._reserved_tokens -= tokens

    def close(self) -> None:
        """Close the file, once nobody uses it: a thread may, though whoever sent it waits no more."""
        with self._lock:
            self._file.close()

    def _reserve(self, usd: float, tokens: int) -> bool:
        with self._lock:
            held, settings = self._held.values(), self._settings
            left_usd = settings.budget_usd - sum(a.cost_usd for a in held)
            left_tokens = settings.budget_tokens - sum(a.input_tokens + a.output_tokens for a in held)
            if usd > left_usd or tokens > left_tokens:
                raise EpisodeFailed(
                    Failure(
                        codes.JUDGE_BUDGET,
                        f"of judges.llm.budget_usd {settings.budget_usd:g} judges have {left_usd:.4f} left, of "
                        f"budget_tokens {settings.budget_tokens} {left_tokens}; the next question may cost {usd:.4f} "
                        f"USD and {tokens} tokens",
                    )
                )
            if usd + self._reserved_usd > left_usd or tokens + self._reserved_tokens > left_tokens:
                return False
            self._reserved_usd += usd
            self._reserved_tokens += tokens
            return True


def read_accounts(path: Path) -> tuple[ModelAccount, ...]:
    """Return the accounts in a file, by name; none where it is not there."""
    if not path.is_file():
        return ()
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=LOCKED_S)) as file:
        return tuple(_read(file))


def _measure(change: ModelAccount) -> None:
    name = change.name
    asked = change.questions - change.cached - change.failures
    for answer, count in (("model", asked), ("cache", change.cached), ("none", change.failures)):
        meter.record(table.JUDGE_QUESTIONS, count, model=name, answer=answer)
    meter.record(table.JUDGE_REQUESTS, change.requests, model=name)
    meter.record(table.JUDGE_RETRIES, change.retries, model=name)
    meter.record(table.JUDGE_NONSENSE, change.nonsense, model=name)
    meter.record(table.JUDGE_TOKENS, change.input_tokens, model=name, part="input")
    meter.record(table.JUDGE_TOKENS, change.output_tokens, model=name, part="output")
    meter.record(table.JUDGE_COST, change.cost_usd, model=name)


def _read(file: sqlite3.Connection) -> list[ModelAccount]:
    return [ModelAccount(*row) for row in file.execute(_READ)]
