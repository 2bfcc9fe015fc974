"""A thread that runs a ``GenerationEngine`` for callers in other threads.

Owns the engine's schedule and the version of its weights. Invariants: only this thread touches the
engine; new weights are put in when no reply is running, and replies that wait meanwhile get them, so
every reply comes from one version; if the engine fails, every caller is told, now and later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from policy.client import Completion, EngineStopped, RequestRefused, Sampling
from policy.engine import GenerationEngine, GenerationRequest
from policy.published_weights import PublishedWeights
from policy.weights import Contents, check_weights, read_weights

_log = logging.getLogger(__name__)
_IDLE_WAIT_S = 30.0
"""Fixed: whoever has work for the loop wakes it."""
_CLOSE_TIMEOUT_S = 10.0
"""Fixed: past it the thread, a daemon, ends with its process."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Totals since the start; times in seconds, ``busy_s`` is time with at least one request."""

    version: int
    checksum: str
    completed: int
    refused: int
    prompt_tokens: int
    cached_tokens: int
    new_tokens: int
    running: int
    waiting: int
    loads: int
    busy_s: float
    uptime_s: float

    def to_dict(self) -> dict[str, int | float | str]:
        """Return the fields by name."""
        return asdict(self)


class EngineLoop:
    """Runs ``engine`` in a daemon thread until ``close``.

    Args:
        engine: the engine, which from now on belongs to the loop.
        version: version of the weights that the engine's model holds.
        checksum: checksum of these weights, empty where they were not published.
        on_failure: called in the thread once the engine has failed and every caller was told.
    """

    def __init__(
        self,
        engine: GenerationEngine,
        *,
        version: int = 0,
        checksum: str = "",
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._on_failure = on_failure
        self._version, self._checksum = version, checksum
        self._jobs: deque[tuple[Callable[[], None], Future[Any]]] = deque()
        self._swaps: deque[tuple[PublishedWeights, Contents, Future[PublishedWeights]]] = deque()
        self._replies: dict[int, Future[Completion]] = {}
        self._next_id = 0
        self._wake = threading.Condition()
        self._closing = False
        self._failure: BaseException | None = None
        self._completed = self._refused = self._loads = 0
        self._busy_s = 0.0
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="policy-engine", daemon=True)
        self._thread.start()

    def complete(self, prompt_ids: Sequence[int], sampling: Sampling) -> Future[Completion]:
        """Queue a completion; cancelling the future drops the request. The future may hold ``RequestRefused``."""
        future: Future[Completion] = Future()
        future.add_done_callback(self._on_cancel)
        self._enqueue(partial(self._submit, list(prompt_ids), sampling, future), future)
        return future

    def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> Future[list[float]]:
        """Queue a teacher-forced score; see ``GenerationEngine.score``."""
        future: Future[list[float]] = Future()
        self._enqueue(partial(self._score, list(prompt_ids), list(action_ids), future), future)
        return future

    def load_weights(self, weights: PublishedWeights) -> Future[PublishedWeights]:
        """Read and check weights in the caller's thread, then queue the swap, whose weights the future names.

        Raises:
            WeightsRejected: checksum, names or shapes are wrong; the old weights go on serving.
        """
        contents = read_weights(weights, self._engine.model.device)
        check_weights(self._engine.model, contents)
        future: Future[PublishedWeights] = Future()
        self._enqueue(partial(self._swaps.append, (weights, contents, future)), future)
        return future

    def stats(self) -> EngineStats:
        """Return the totals so far.

        Raises:
            EngineStopped: the engine does not run any more.
        """
        self._require_alive()
        return EngineStats(
            version=self._version,
            checksum=self._checksum,
            completed=self._completed,
            refused=self._refused,
            prompt_tokens=self._engine.prompt_tokens,
            cached_tokens=self._engine.cached_tokens,
            new_tokens=self._engine.new_tokens,
            running=self._engine.running,
            waiting=self._engine.waiting,
            loads=self._loads,
            busy_s=self._busy_s,
            uptime_s=time.monotonic() - self._started,
        )

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> None:
        """Stop the thread; requests that have not finished get ``EngineStopped``."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout_s)

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise EngineStopped(f"the engine failed: {self._failure!r}; start the server again") from self._failure
        if self._closing:
            raise EngineStopped("the engine is closed")

    def _enqueue(self, job: Callable[[], None], future: Future[Any]) -> None:
        with self._wake:
            self._require_alive()
            self._jobs.append((job, future))
            self._wake.notify()

    def _on_cancel(self, future: Future[Completion]) -> None:
        if future.cancelled():
            with self._wake:
                self._jobs.append((partial(self._drop, future), future))
                self._wake.notify()

    def _run(self) -> None:
        try:
            while self._take_jobs():
                began = time.monotonic()
                self._advance()
                self._busy_s += time.monotonic() - began
        except BaseException as error:
            # Whatever ends this thread: callers wait for futures that nobody else can settle, and are told why.
            _log.exception("the policy engine failed")
            with self._wake:
                self._failure = error
            raise
        finally:
            self._tell_everyone()
            if self._failure is not None and self._on_failure is not None:
                self._on_failure()

    def _take_jobs(self) -> bool:
        """Run queued jobs, waiting for one while there is nothing to generate; return False when closing."""
        with self._wake:
            idle = not (self._engine.running or self._engine.waiting or self._swaps)
            self._wake.wait_for(lambda: bool(self._jobs) or self._closing or not idle, timeout=_IDLE_WAIT_S)
            if self._closing:
                return False
            jobs, self._jobs = self._jobs, deque()
        for job, _ in jobs:
            job()
        return True

    def _advance(self) -> None:
        """Make one token for every running reply; swap weights where a swap waits and no reply runs."""
        while self._swaps and not self._engine.running:
            self._swap(*self._swaps.popleft())
        for result in self._engine.step(admit=not self._swaps):
            self._completed += 1
            future = self._replies.pop(result.request_id)
            _resolve(future, Completion(result.action_ids, result.logprobs, self._version, result.finish_reason))

    def _swap(self, weights: PublishedWeights, contents: Contents, future: Future[PublishedWeights]) -> None:
        self._engine.take_weights(contents)
        self._version, self._checksum = weights.version, weights.checksum
        self._loads += 1
        _resolve(future, weights)

    def _submit(self, prompt_ids: list[int], sampling: Sampling, future: Future[Completion]) -> None:
        if future.cancelled():
            return
        self._next_id += 1
        try:
            self._engine.submit(GenerationRequest(self._next_id, prompt_ids, sampling))
        except RequestRefused as error:
            self._refused += 1
            _reject(future, error)
            return
        self._replies[self._next_id] = future

    def _score(self, prompt_ids: list[int], action_ids: list[int], future: Future[list[float]]) -> None:
        try:
            logprobs = self._engine.score(prompt_ids, action_ids)
        except RequestRefused as error:
            _reject(future, error)
            return
        _resolve(future, logprobs)

    def _drop(self, future: Future[Completion]) -> None:
        for request_id, waiting in list(self._replies.items()):
            if waiting is future:
                self._engine.cancel(request_id)
                del self._replies[request_id]

    def _tell_everyone(self) -> None:
        """Reject what was asked and not answered."""
        with self._wake:
            self._closing = True
            queued, self._jobs = [future for _, future in self._jobs], deque()
        error = EngineStopped(f"the engine failed: {self._failure!r}" if self._failure else "the engine is closed")
        left: list[Future[Any]] = [*self._replies.values(), *(future for _, _, future in self._swaps), *queued]
        for future in left:
            if not future.done():
                _reject(future, error)
        self._replies.clear()
        self._swaps.clear()


def _resolve(future: Future[Any], value: object) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(value)


def _reject(future: Future[Any], error: Exception) -> None:
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
