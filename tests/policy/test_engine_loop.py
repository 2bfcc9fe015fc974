"""The engine's thread: many callers, weights swapped between replies, failures told to everyone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import PreTrainedModel

from policy.client import EngineStopped, RequestRefused, Sampling
from policy.engine import GenerationEngine
from policy.engine_loop import EngineLoop
from policy.published_weights import WeightsRejected
from policy.weights import write_weights

WAIT_S = 20
PROMPT = [10, 20, 30]
GREEDY = Sampling(temperature=0, max_new_tokens=12)
NEVER = [0]


@pytest.fixture
def loop(tiny: PreTrainedModel) -> Iterator[EngineLoop]:
    """A running loop that is closed afterwards."""
    running = EngineLoop(GenerationEngine(tiny, NEVER, max_batch=4))
    yield running
    running.close()


def alone(model: PreTrainedModel, prompt: list[int]) -> tuple[int, ...]:
    loop = EngineLoop(GenerationEngine(model, NEVER))
    try:
        return loop.complete(prompt, GREEDY).result(WAIT_S).action_ids
    finally:
        loop.close()


def test_many_callers_each_get_their_own_reply(loop: EngineLoop, tiny: PreTrainedModel) -> None:
    prompts = [[10 + i] * (i + 1) for i in range(9)]
    futures = [loop.complete(prompt, GREEDY) for prompt in prompts]
    for prompt, future in zip(prompts, futures, strict=True):
        assert future.result(WAIT_S).action_ids == alone(tiny, prompt)
    stats = loop.stats()
    assert (stats.completed, stats.new_tokens, stats.prompt_tokens) == (9, 9 * 12, sum(range(1, 10)))
    assert (stats.running, stats.waiting) == (0, 0)


def test_every_reply_comes_from_one_version(tiny: PreTrainedModel, other_tiny: PreTrainedModel, tmp_path: Path) -> None:
    old, new = alone(tiny, PROMPT), alone(other_tiny, PROMPT)
    assert old != new
    weights = write_weights(other_tiny.state_dict(), tmp_path / "w", 5)
    loop = EngineLoop(GenerationEngine(tiny, NEVER, max_batch=2), version=4)
    before = [loop.complete(PROMPT, GREEDY) for _ in range(6)]
    loaded = loop.load_weights(weights)
    after = [loop.complete(PROMPT, GREEDY) for _ in range(3)]
    assert loaded.result(WAIT_S) == weights
    for future in [*before, *after]:
        reply = future.result(WAIT_S)
        assert reply.action_ids == {4: old, 5: new}[reply.version]
    assert all(future.result().version == 5 for future in after)
    assert (loop.stats().version, loop.stats().checksum) == (5, weights.checksum)
    loop.close()


def test_a_publication_forgets_the_prompts_that_were_kept(
    tiny: PreTrainedModel, other_tiny: PreTrainedModel, tmp_path: Path
) -> None:
    long = [10 + i % 50 for i in range(60)]
    expected = alone(other_tiny, long)
    loop = EngineLoop(GenerationEngine(tiny, NEVER))
    assert loop.complete(long, GREEDY).result(WAIT_S).action_ids != expected
    loop.complete(long, GREEDY).result(WAIT_S)
    assert loop.stats().cached_tokens == len(long) - 1
    loop.load_weights(write_weights(other_tiny.state_dict(), tmp_path / "w", 5)).result(WAIT_S)
    assert loop.complete(long, GREEDY).result(WAIT_S).action_ids == expected
    assert loop.stats().cached_tokens == len(long) - 1
    loop.close()


def test_a_wrong_checksum_is_refused_and_the_old_weights_go_on(
    loop: EngineLoop, tiny: PreTrainedModel, other_tiny: PreTrainedModel, tmp_path: Path
) -> None:
    expected = alone(tiny, PROMPT)
    weights = write_weights(other_tiny.state_dict(), tmp_path / "w", 5)
    with pytest.raises(WeightsRejected):
        loop.load_weights(replace(weights, checksum="0" * 64))
    reply = loop.complete(PROMPT, GREEDY).result(WAIT_S)
    assert (reply.version, reply.action_ids) == (0, expected)


def test_a_refused_request_hurts_nobody_else(loop: EngineLoop) -> None:
    good = loop.complete(PROMPT, GREEDY)
    with pytest.raises(RequestRefused, match="exceed the context"):
        loop.complete([10] * 300, GREEDY).result(WAIT_S)
    with pytest.raises(RequestRefused):
        loop.score([], [1]).result(WAIT_S)
    assert len(good.result(WAIT_S).action_ids) == 12
    assert loop.stats().refused == 1


def test_a_cancelled_request_frees_its_place(loop: EngineLoop) -> None:
    long = Sampling(temperature=0, max_new_tokens=200)
    futures = [loop.complete(PROMPT, long) for _ in range(8)]
    assert all(future.cancel() for future in futures[:7])
    assert len(futures[7].result(WAIT_S).action_ids) == 200
    stats = loop.stats()
    assert stats.completed == 1
    assert stats.running == stats.waiting == 0
    with pytest.raises(CancelledError):
        futures[0].result(0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failing_engine_tells_everyone_now_and_later(tiny: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    reported = threading.Event()
    loop = EngineLoop(GenerationEngine(tiny, NEVER), on_failure=reported.set)
    monkeypatch.setattr(tiny, "forward", broken)
    with pytest.raises(EngineStopped, match="out of memory"):
        loop.complete(PROMPT, GREEDY).result(WAIT_S)
    with pytest.raises(EngineStopped, match="out of memory"):
        loop.complete(PROMPT, GREEDY)
    with pytest.raises(EngineStopped):
        loop.stats()
    assert reported.wait(WAIT_S)
    loop.close()


def test_closing_tells_those_who_wait(tiny: PreTrainedModel) -> None:
    loop = EngineLoop(GenerationEngine(tiny, NEVER, max_batch=1))
    futures = [loop.complete(PROMPT, Sampling(temperature=0, max_new_tokens=250)) for _ in range(20)]
    time.sleep(0.05)
    loop.close()
    with pytest.raises(EngineStopped, match="closed"):
        futures[-1].result(WAIT_S)
    assert all(future.done() for future in futures)
