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
from policy.server_start import ServerStart
from tests.rollout_workers.fake_world import FakePolicy

CUT = "cut"
"""The file with a character for each request that was given up by who asked."""


class ScriptedServer:
    """Answers as ``FakePolicy`` does, after ``SLOW`` seconds, as the version that ``VERSION`` says (files).

    It notes each answer in a file ``answered-VERSION``, and each request that was cut short, with one character each.
    The next starts fail, as many as ``FAILING`` says; each leaves a line in ``STARTS``.
    """

    def __init__(self, tokenizer: str, folder: str) -> None:
        self._folder = Path(folder)
        self._start = ServerStart("policy server expert", lambda: self._build(tokenizer))

    def _build(self, tokenizer: str) -> FakePolicy:
        with (self._folder / "STARTS").open("a") as starts:
            starts.write("start\n")
        if failing := int((self._folder / "FAILING").read_text()):
            (self._folder / "FAILING").write_text(str(failing - 1))
            raise OSError("the port is taken")
        return FakePolicy(tokenizer)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling) -> Completion:
        policy = self._start.built()
        try:
            await asyncio.sleep(float((self._folder / "SLOW").read_text()))
        except asyncio.CancelledError:
            self._note(CUT)
            raise
        reply = await policy.complete(prompt_ids, sampling, episode="")
        version = int((self._folder / "VERSION").read_text())
        self._note(f"answered-{version}")
        return replace(reply, version=version)

    def _note(self, what: str) -> None:
        with (self._folder / what).open("a") as file:
            file.write("x")

    async def ping(self) -> str:
        self._start.built()
        return "pong"

    async def pid(self) -> int:
        return os.getpid()

    async def apply(self, function: Callable[..., Any]) -> Any:
        return function(self)


def start(name: str, tokenizer: str, folder: Path) -> Any:
    """Start a server as a restartable actor called ``name``, and wait for it."""
    (folder / "SLOW").write_text("0")
    (folder / "FAILING").write_text("0")
    (folder / "VERSION").write_text("3")
    actor = ray.remote(ScriptedServer).options(name=name, num_cpus=0.1, max_restarts=-1, max_task_retries=0)
    handle = actor.remote(tokenizer, str(folder))
    ray.get(handle.ping.remote(), timeout=120)
    return handle


def process_id(server: object) -> int:
    """The process that a server runs in; a function that Ray's workers can import."""
    return os.getpid()
