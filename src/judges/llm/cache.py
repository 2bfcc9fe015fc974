"""Answers that are known already, so that no question is paid for twice.

Owns ``question_key``, the protocol ``AnswerCache`` and its two kinds, a SQLite file and Redis. Invariants: a key covers
all that decides an answer, pictures included; what is kept is JSON, which is held against the schema again when it is
read; a cache that is in trouble costs money, never an answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any, Protocol

from judges.llm.accounts import LOCKED_S
from judges.llm.interface import Image, LlmQuestion
from judges.llm.settings import LlmSettings, ModelSettings

FILE_NAME = "answers.sqlite"
_FORMAT = 1
_REDIS_S = 5.0
"""Fixed: a cache that takes longer is slower than asking."""


def question_key(model: ModelSettings, question: LlmQuestion[Any]) -> str:
    """Return the SHA-256 in hex of a question to a model: its prompt's name, wording, pictures, schema and limits."""
    parts = [
        ["image", hashlib.sha256(part.png).hexdigest()] if isinstance(part, Image) else ["text", part]
        for part in question.parts
    ]
    asked = [
        _FORMAT, model.client, model.model, model.base_url, question.prompt, question.system, parts,
        question.schema.model_json_schema(), question.max_tokens, question.temperature, question.thinking_tokens,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class AnswerCache(Protocol):
    """Keeps texts by key; called in threads. Raises ``OSError`` in trouble."""

    def get(self, key: str) -> str | None:
        """Return what is kept, None where nothing is."""
        ...

    def put(self, key: str, answer: str) -> None:
        """Keep an answer."""
        ...

    def close(self) -> None:
        """Let go of the file or connection."""
        ...


class FileCache:
    """Answers in a SQLite file (None: in memory alone)."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path or ":memory:", timeout=LOCKED_S, check_same_thread=False)
            with self._file:
                self._file.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")
        except sqlite3.Error as error:
            raise OSError(f"judges.llm.cache {path}: {error}") from error

    def get(self, key: str) -> str | None:
        """Return what is kept; see ``AnswerCache``."""
        try:
            with self._lock:
                found = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise OSError(f"the file of answers: {error}") from error
        return None if found is None else str(found[0])

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; see ``AnswerCache``."""
        try:
            with self._lock, self._file:
                self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))
        except sqlite3.Error as error:
            raise OSError(f"the file of answers: {error}") from error

    def close(self) -> None:
        """Close the file, once nobody uses it: a thread may, though whoever sent it waits no more."""
        with self._lock:
            self._file.close()


class RedisCache:
    """Answers in Redis at ``url``, under keys that begin with ``waymark:answer:``."""

    def __init__(self, url: str, password: str) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._errors = redis.RedisError
        self._redis = redis.Redis.from_url(
            url,
            password=password or None,
            socket_timeout=_REDIS_S,
            socket_connect_timeout=_REDIS_S,
            retry=Retry(NoBackoff(), 0),
        )

    def get(self, key: str) -> str | None:
        """Return what is kept; see ``AnswerCache``."""
        try:
            found = self._redis.get(f"waymark:answer:{key}")
        except self._errors as error:
            raise OSError(f"Redis: {error}") from error
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else None

    def put(self, key: str, answer: str) -> None:
        """Keep an answer; see ``AnswerCache``."""
        try:
            self._redis.set(f"waymark:answer:{key}", answer)
        except self._errors as error:
            raise OSError(f"Redis: {error}") from error

    def holds_rays_head(self) -> bool:
        """Whether a Ray head keeps its state in this database; raise ``OSError`` where it cannot be asked.

        Ray uses database 0, and its keys begin with RAY and the cluster's namespace. What clears one clears the other.
        """
        try:
            return next(iter(self._redis.scan_iter(match="RAY*@*", count=1000)), None) is not None
        except self._errors as error:
            raise OSError(f"Redis: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def make_cache(settings: LlmSettings, folder: Path | None) -> AnswerCache:
    """Return the cache that settings name; ``folder`` is the run's own, None keeps answers in memory."""
    if settings.cache == "file":
        return FileCache(None if folder is None else folder / FILE_NAME)
    if settings.cache.startswith("redis"):
        return RedisCache(settings.cache, os.environ.get(settings.cache_password_variable, ""))
    return FileCache(Path(settings.cache).expanduser())
