"""How fast is a policy served: the torch engine beside vLLM, in one run, over their own clients?

Both serve the same policy folder on this machine, and are asked in turn, cell by cell, round by round: prompts of 600
random tokens that share nothing, or all but 60; 1 to 32 requests at once. Told are new tokens a second by the clock,
and by a second of the servers' CPU, and a request's time at p50 and p95. A control asks the torch servers twice in a
round: the ratio to itself shows what a ratio is worth here. Last, what vLLM says of its replies' log-probabilities is
held against the torch engine's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import psutil

from benchmarks.recording import Recording, met, option_parser
from plugs.registry import load
from policy.backend import Serving, backend_of
from policy.client import Completion, PolicyClient, Sampling
from policy.settings import PolicySettings

NAME = "serving"
PROMPT_TOKENS, SHARED_TOKENS, NEW_TOKENS = 600, 540, 64
SHARING = {"nothing shared": 0, f"{SHARED_TOKENS} shared": SHARED_TOKENS}
DEFAULT_CONCURRENCY = 6
"""Most requests at once for which the torch engine is the default: the episodes of the laptop's one worker."""
AGREEMENT = 1e-3
ARMS = ("torch", "vllm", "torch again")
_REQUESTS = 32
"""Fewest requests of a cell: replies are short, and fewer vary by a factor of two."""
_PAUSE_S = 1.5
"""Before a cell: threads of the server asked before spin on for a while."""
_WAIT_S = 900.0


@dataclass(frozen=True)
class Cell:
    """One arm's answers to one batch of requests."""

    wall_s: float
    cpu_s: float
    new_tokens: int
    seconds: tuple[float, ...]

    @property
    def by_wall(self) -> float:
        """New tokens a second by the clock."""
        return self.new_tokens / self.wall_s

    @property
    def by_cpu(self) -> float:
        """New tokens a second of the servers' CPU."""
        return self.new_tokens / max(self.cpu_s, 1e-9)


@dataclass(frozen=True)
class Arm:
    """One backend while it serves: its client, and the process ids of its servers."""

    client: PolicyClient
    processes: tuple[int, ...]

    def cpu_s(self) -> float:
        """CPU seconds that the servers' processes have used, their children's too."""
        total = 0.0
        for process in self.processes:
            root = psutil.Process(process)
            for each in (root, *root.children(recursive=True)):
                times = each.cpu_times()
                total += times.user + times.system
        return total


def main() -> None:
    """Serve, ask, and write the ratios with their verdicts."""
    options = _options()
    recording = Recording(NAME, options.results)
    with ExitStack() as stack:
        stack.enter_context(_ray())
        arms = {name: stack.enter_context(_served(name, options)) for name in ARMS[:2]}
        arms["torch again"] = arms["torch"]
        numbers, agreement = asyncio.run(_asked(arms, options))
    _tell(recording, numbers)
    recording.write({"rounds": options.rounds, "cells": numbers, "agreement": agreement,
                     "verdicts": _verdicts(numbers, agreement)})  # fmt: skip


async def _asked(arms: dict[str, Arm], options: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Measure and compare within one event loop, to which connections belong."""
    return await _measure(arms, options), await _agreement(arms["vllm"], options)


async def _measure(arms: dict[str, Arm], options: argparse.Namespace) -> list[dict[str, Any]]:
    generator = np.random.default_rng(options.seed)
    for arm in arms.values():  # compile, and fill what is filled once
        await _ask(arm, _prompts(generator, 8, 0), 4)
    numbers = []
    for sharing, shared in SHARING.items():
        for concurrency in options.concurrency:
            cells: dict[str, list[Cell]] = {name: [] for name in ARMS}
            for turn in range(options.rounds):
                prompts = _prompts(generator, max(_REQUESTS, 2 * concurrency), shared)
                order = ARMS[turn % len(ARMS) :] + ARMS[: turn % len(ARMS)]
                for name in order:
                    await asyncio.sleep(_PAUSE_S)
                    cells[name].append(await _ask(arms[name], prompts, concurrency))
            numbers.append({"prompts": sharing, "concurrency": concurrency, **_summary(cells)})
    return numbers


async def _ask(arm: Arm, prompts: Sequence[tuple[int, ...]], concurrency: int) -> Cell:
    room = asyncio.Semaphore(concurrency)
    seconds: list[float] = []

    async def one(number: int, prompt: tuple[int, ...]) -> Completion:
        async with room:
            began = time.monotonic()
            # Greedy, and each to its end: both arms then have the same work, up to ties.
            sampling = Sampling(temperature=0, max_new_tokens=NEW_TOKENS)
            reply = await arm.client.complete(prompt, sampling, episode=str(number))
            seconds.append(time.monotonic() - began)
            return reply

    cpu, began = arm.cpu_s(), time.monotonic()
    replies = await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))
    wall = time.monotonic() - began
    return Cell(wall, arm.cpu_s() - cpu, sum(len(reply.action_ids) for reply in replies), tuple(seconds))


async def _agreement(vllm: Arm, options: argparse.Namespace) -> dict[str, float]:
    """Hold the log-probabilities of vLLM's sampled replies against the torch engine's own, of the same tokens."""
    from policy.engine import GenerationEngine
    from policy.models import load_causal_lm
    from policy.tokenizer import TextTokenizer

    generator = np.random.default_rng(options.seed + 1)
    engine = GenerationEngine(load_causal_lm(options.policy), TextTokenizer.load(options.policy).stop_ids)
    gaps: list[float] = []
    for number, prompt in enumerate(_prompts(generator, 24, 0)):
        reply = await vllm.client.complete(prompt, Sampling(max_new_tokens=NEW_TOKENS), episode=str(number))
        expected = engine.score(prompt, reply.action_ids)
        gaps += [abs(a - b) for a, b in zip(expected, reply.logprobs, strict=True)]
    return {"tokens": len(gaps), "largest": max(gaps), "mean": float(np.mean(gaps))}


def _summary(cells: dict[str, list[Cell]]) -> dict[str, Any]:
    torch = cells["torch"]
    found: dict[str, Any] = {}
    for name in ARMS:
        rounds = cells[name]
        seconds = [s for cell in rounds for s in cell.seconds]
        found[name] = {
            "tokens_per_s": median(cell.by_wall for cell in rounds),
            "tokens_per_cpu_s": median(cell.by_cpu for cell in rounds),
            "p50_s": float(np.percentile(seconds, 50)),
            "p95_s": float(np.percentile(seconds, 95)),
        }
    for name in ARMS[1:]:
        ratios = sorted(a.by_wall / b.by_wall for a, b in zip(torch, cells[name], strict=True))
        found[f"torch / {name}"] = {"median": median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
    return found


def _verdicts(numbers: list[dict[str, Any]], agreement: dict[str, float]) -> list[str]:
    verdicts = []
    for cell in numbers:
        if cell["concurrency"] > DEFAULT_CONCURRENCY:
            continue
        ratio, control = cell["torch / vllm"], cell["torch / torch again"]
        verdicts.append(
            f"At {cell['concurrency']} requests, {cell['prompts']}: the torch engine gives {ratio['median']:.2f} times "
            f"vLLM's tokens a second [{ratio['lowest']:.2f}, {ratio['highest']:.2f}] over the rounds (itself: "
            f"{control['median']:.2f} [{control['lowest']:.2f}, {control['highest']:.2f}]); target 1 "
            f"{met(ratio['median'] >= 1)}"
        )
    verdicts.append(
        f"Log-probabilities of {agreement['tokens']:.0f} sampled tokens differ by {agreement['largest']:.1e} nats at "
        f"most ({agreement['mean']:.1e} on average); target {AGREEMENT:g} {met(agreement['largest'] <= AGREEMENT)}"
    )
    return verdicts


def _tell(recording: Recording, numbers: list[dict[str, Any]]) -> None:
    columns = ["prompts, requests at once", "torch tok/s", "vLLM tok/s", "ratio", "torch tok/CPU s", "vLLM tok/CPU s",
               "torch p50, p95 s", "vLLM p50, p95 s"]  # fmt: skip
    rows = [
        [f"{cell['prompts']}, {cell['concurrency']}", cell["torch"]["tokens_per_s"], cell["vllm"]["tokens_per_s"],
         cell["torch / vllm"]["median"], cell["torch"]["tokens_per_cpu_s"], cell["vllm"]["tokens_per_cpu_s"],
         *(f"{cell[arm]['p50_s']:.2f}, {cell[arm]['p95_s']:.2f}" for arm in ("torch", "vllm"))]
        for cell in numbers
    ]  # fmt: skip
    recording.table("New tokens a second, medians over rounds", columns, rows)


def _prompts(generator: np.random.Generator, count: int, shared: int) -> list[tuple[int, ...]]:
    """Return ``count`` prompts of random ordinary tokens, the first ``shared`` of each the same."""
    head = generator.integers(300, 1900, shared)
    return [
        tuple(int(i) for i in (*head, *generator.integers(300, 1900, PROMPT_TOKENS - shared))) for _ in range(count)
    ]


@contextmanager
def _served(name: str, options: argparse.Namespace) -> Iterator[Arm]:
    """Serve with one backend until its first answer; both have one thread and as many requests at once."""
    most = max(options.concurrency)
    own: dict[str, object] = {"cpus": 0, "threads": options.threads, "max_batch": most}
    if name == "vllm":
        own |= {"python": str(options.vllm_python), "kv_cache_gib": 2}
    settings = PolicySettings(
        backend=name, options=own, max_prompt_tokens=PROMPT_TOKENS, max_new_tokens=NEW_TOKENS,
        attempt_timeout_s=_WAIT_S, deadline_s=_WAIT_S, hang_timeout_s=_WAIT_S / 3,
    )  # fmt: skip
    backend, read = backend_of(settings)
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(
            settings, str(options.policy), Path(folder) / "current.json", f"{NAME}-{name}-{os.getpid()}", Path(folder)
        )
        with backend.serve(serving, read) as service:
            make = cast("Callable[..., PolicyClient]", load(service.source.factory))
            client = make(**service.source.options)
            asyncio.run(client.complete((400, 401), Sampling(max_new_tokens=2), episode="first"))
            # The driver's loop ended: connections belong to a loop, so that a fresh client goes on.
            yield Arm(make(**service.source.options), _processes(service.source.options["servers"]))


def _processes(servers: Mapping[str, str]) -> tuple[int, ...]:
    import ray

    handles = [ray.get_actor(actor) for actor in servers.values()]
    return tuple(ray.get([handle.__ray_call__.remote(_process_id) for handle in handles], timeout=_WAIT_S))


def _process_id(_server: object) -> int:
    return os.getpid()


@contextmanager
def _ray() -> Iterator[None]:
    """A Ray of this process's own, with a token of its own."""
    import secrets

    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "RAY_worker_niceness": "0"}
    with patch.dict(os.environ, {**token, "OMP_NUM_THREADS": "1"}):
        from cluster.ray_runtime import running_ray

        with running_ray(num_cpus=2, include_dashboard=False, object_store_memory=128 * 2**20, log_to_driver=False):
            yield


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, "Tokens a second of the torch engine and of vLLM.")
    parser.add_argument("--policy", type=Path, default=Path("cluster/recipes/tiny-cloned"), help="policy folder")
    parser.add_argument("--vllm-python", type=Path, default=Path(".venv-vllm/bin/python"), help="Python with vLLM")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 6, 16, 32], help="requests at once")
    parser.add_argument("--rounds", type=int, default=3, help="times that each cell is measured")
    parser.add_argument("--threads", type=int, default=2, help="threads of each server")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
