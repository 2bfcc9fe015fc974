"""A loop that was held up is noticed, by whoever asks first after it."""

from __future__ import annotations

import asyncio
import time

from rollout_workers.loop_lag import LoopLag


async def test_a_loop_that_stood_still_has_stalled_once() -> None:
    lag = LoopLag(limit_s=0.5)
    lag.start()
    await asyncio.sleep(0)
    time.sleep(1.5)
    assert lag.stalls == 1, "known at once, before the measuring task had its turn"
    await asyncio.sleep(0.6)
    assert lag.stalls >= 1, "and not forgotten afterwards"
    assert lag.take_worst_s() > 1.0
    lag.stop()


async def test_the_worst_lag_is_told_once() -> None:
    lag = LoopLag(limit_s=100.0)
    lag.start()
    await asyncio.sleep(0)
    time.sleep(1.5)
    await asyncio.sleep(0)
    first = lag.take_worst_s()
    lag.stop()
    assert first > 1.0
    assert lag.take_worst_s() < first
    assert lag.stalls == 0


async def test_nothing_is_late_where_nothing_is_measured() -> None:
    lag = LoopLag(limit_s=0.0)
    lag.stop()
    assert (lag.stalls, lag.take_worst_s()) == (0, 0.0)
