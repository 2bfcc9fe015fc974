"""Files of answers and accounts are closed once no thread uses them: SQLite would crash the process, or hang it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from judges.llm.accounts import Accounts, ModelAccount
from judges.llm.cache import FileCache
from judges.llm.settings import LlmSettings

WAIT_S = 30.0


class Held:
    """A connection whose next statement takes as long as it is told to."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.begun, self.may_end, self.closed = threading.Event(), threading.Event(), threading.Event()

    def __enter__(self) -> Any:
        return self._file.__enter__()

    def __exit__(self, *ended: Any) -> Any:
        return self._file.__exit__(*ended)

    def execute(self, *statement: Any) -> Any:
        if not self.begun.is_set():
            self.begun.set()
            assert self.may_end.wait(WAIT_S)
            assert not self.closed.is_set(), "it was closed under a statement"
        return self._file.execute(*statement)

    def close(self) -> None:
        self.closed.set()
        self._file.close()


def answers(folder: Path) -> tuple[FileCache, Callable[[], object]]:
    cache = FileCache(folder / "answers.sqlite")
    return cache, lambda: cache.put("key", "answer")


def known(folder: Path) -> tuple[FileCache, Callable[[], object]]:
    cache = FileCache(folder / "answers.sqlite")
    return cache, lambda: cache.get("key")


def accounts(folder: Path) -> tuple[Accounts, Callable[[], object]]:
    kept = Accounts(folder / "accounts.sqlite", LlmSettings())
    return kept, lambda: kept.add(ModelAccount("m", questions=1))


@pytest.mark.parametrize("make", [answers, known, accounts])
def test_a_file_in_use_is_closed_afterwards_and_then_says_so(make: Callable[[Path], Any], tmp_path: Path) -> None:
    kept, use = make(tmp_path)
    held = kept._file = Held(kept._file)
    with ThreadPoolExecutor(2) as threads:
        using = threads.submit(use)
        assert held.begun.wait(WAIT_S)
        closing = threads.submit(kept.close)
        assert not held.closed.wait(0.2)
        held.may_end.set()
        using.result(WAIT_S)
        closing.result(WAIT_S)
    assert held.closed.is_set()
    with pytest.raises(OSError, match="closed"):
        use()
