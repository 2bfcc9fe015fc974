"""What a run has asked of language models and paid for it, kept on disk, and the budget that it may not exceed.

Owns ``ModelAccount``, ``Accounts`` and the file ``accounts.sqlite``. Invariants: what a reply cost is on disk before
the reply is used, so that a run that is killed and goes on counts on; a request is sent only where the most that it can
cost still fits into the budget beside those under way.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from judges.llm.settings import LlmSettings
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

FILE_NAME = "accounts.sqlite"
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
            held = self._held[change.name] = self._held.get(change.name, ModelAccount(change.name)) + change
            try:
                with self._file:
                    self._file.execute(_WRITE, asdict(held))
            except sqlite3.Error as error:
                raise OSError(f"{FILE_NAME}: {error}") from error

    def all(self) -> tuple[ModelAccount, ...]:
        """Return every account, by name."""
        with self._lock:
            return tuple(self._held[name] for name in sorted(self._held))

    @contextmanager
    def reserved(self, usd: float, tokens: int) -> Iterator[None]:
        """Keep room for a request that costs at most this; raise ``EpisodeFailed`` (judge) where there is none."""
        with self._lock:
            self._require(usd, tokens)
            self._reserved_usd += usd
            self._reserved_tokens += tokens
        try:
            yield
        finally:
            with self._lock:
                self._reserved_usd -= usd
                self._reserved_tokens -= tokens

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _require(self, usd: float, tokens: int) -> None:
        settings, held = self._settings, self._held.values()
        spent_usd, spent_tokens = sum(a.cost_usd for a in held), sum(a.input_tokens + a.output_tokens for a in held)
        most_usd, most_tokens = self._reserved_usd + usd, self._reserved_tokens + tokens
        if spent_usd + most_usd > settings.budget_usd:
            of_it = f"{spent_usd:.4f} USD of judges.llm.budget_usd {settings.budget_usd:g}"
            most = f"{most_usd:.4f} USD"
        elif spent_tokens + most_tokens > settings.budget_tokens:
            of_it = f"{spent_tokens:.0f} tokens of judges.llm.budget_tokens {settings.budget_tokens}"
            most = f"{most_tokens:.0f} tokens"
        else:
            return
        raise EpisodeFailed(
            Failure(codes.JUDGE_BUDGET, f"judges have spent {of_it}, and what is asked next may cost {most} more")
        )


def read_accounts(path: Path) -> tuple[ModelAccount, ...]:
    """Return the accounts in a file, by name; none where it is not there."""
    if not path.is_file():
        return ()
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=LOCKED_S)) as file:
        return tuple(_read(file))


def _read(file: sqlite3.Connection) -> list[ModelAccount]:
    return [ModelAccount(*row) for row in file.execute(_READ)]
