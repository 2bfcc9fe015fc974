"""A policy server in a process of its own that knows the answers, and can be told to be slow or out of date."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from policy.client import Completion, Sampling
from tests.rollout_workers.fake_world import FakePolicy


class ScriptedServer:
    """Answers as ``FakePolicy`` does, after ``SLOW`` seconds, as the version that ``VERSION`` says (files)."""

    def __init__(self, tokenizer: str, folder: str) -> None:
        self._policy = FakePolicy(tokenizer)
        self._folder = Path(folder)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling) -> Completion:
        await asyncio.sleep(float((self._folder / "SLOW").read_text()))
        reply = await self._policy.complete(prompt_ids, sampling, episode="")
        return replace(reply, version=int((self._folder / "VERSION").read_text()))

    async def ping(self) -> str:
        return "pong"

    async def pid(self) -> int:
        return os.getpid()

    async def apply(self, function: Callable[..., Any]) -> Any:
        return function(self)


def start(name: str, tokenizer: str, folder: Path) -> Any:
    """Start a server as a restartable actor called ``name``, and wait for it."""
    (folder / "SLOW").write_text("0")
    (folder / "VERSION").write_text("3")
    actor = ray.remote(ScriptedServer).options(name=name, num_cpus=0.1, max_restarts=-1, max_task_retries=0)
    handle = actor.remote(tokenizer, str(folder))
    ray.get(handle.ping.remote(), timeout=120)
    return handle


def process_id(server: object) -> int:
    """The process that a server runs in; a function that Ray's workers can import."""
    return os.getpid()
