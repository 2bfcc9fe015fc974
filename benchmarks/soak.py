"""Does anything grow? Thousands of episodes in Chromium by flawless demonstrators, in one pool.

Counts the processes of the run and their memory after the first batch and after the last one. Every episode must be
judged 1.0. Needs ``/proc`` (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.process_tree import descendants
from benchmarks.recording import Recording, met, option_parser
from cluster.demonstrated import demonstrated_sites
from cluster.ray_runtime import ray_runtime
from cluster.recipe.recipe import build_recipe
from cluster.tiny_policy import read_along
from environments.embedded.sessions import SiteEndpoint
from policy.tokenizer_training import train_tokenizer
from records.episodes import Source, Task
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from sites.server import SiteServer
from sites.tasks import task_set
from sites.watch import SiteWatch

NAME = "soak"
_VOCABULARY = 1200
_TOKENIZER_TASKS = 40
_KINDS = {
    "driver": "",
    "rollout worker": "ray::RolloutWorker",
    "Chromium renderer": "--type=renderer",
    "Chromium, other": "chrom",
    "sites": "sites.server",
    "Ray": "ray",
}
"""Kinds of processes and what the command line of one contains; the first that fits, in this order."""


def main() -> None:
    """Play, count and print; exit code 1 where an episode is lost or scored 0."""
    options = _options()
    recording = Recording(NAME, options.results)
    drawn = task_set(0, ("shop", "forum"), "train", min(options.episodes, 400))
    tasks = [task for task in drawn if task.horizon <= options.longest]
    held, lost, wrong = _play(tasks, options)
    kinds = [kind for kind in held[0] if any(counts[kind]["processes"] for counts in held)]
    rows = [
        [kind, *(counts[kind][what] for what in ("processes", "memory_mb") for counts in (held[0], held[-1]))]
        for kind in kinds
    ]
    recording.table(f"Processes and memory (MB) after {options.batch} and after {options.episodes} episodes",
                    ["kind", "processes", "at the end", "memory", "at the end"], rows)  # fmt: skip
    said = f"{lost} are lost, {wrong} judged 0"
    verdict = f"All {options.episodes} episodes of experts succeed: {said}: {met(not lost and not wrong)}"
    played = {"episodes": options.episodes, "batch": options.batch, "lost": lost, "wrong": wrong}
    recording.write({**played, "held": held, "verdicts": [verdict]})
    sys.exit(1 if lost or wrong else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--episodes", type=int, default=5000, help="episodes in all")
    parser.add_argument("--batch", type=int, default=100, help="episodes between two counts")
    parser.add_argument("--longest", type=int, default=30, help="most steps that a task's demonstrator may need")
    parser.add_argument("--workers", type=int, default=1, help="worker processes, a browser each")
    parser.add_argument("--contexts", type=int, default=8, help="episodes at once in a worker")
    options = parser.parse_args()
    if options.longest < 2:
        parser.error(f"--longest: the shortest tasks take 2 steps, found {options.longest}")
    return options


def _play(tasks: Sequence[Task], options: argparse.Namespace) -> tuple[list[dict[str, Any]], int, int]:
    """Return what was held after each batch, the episodes lost and those judged 0."""
    recipe = build_recipe({"run": {"dashboard": False}})
    sites = demonstrated_sites(recipe)
    held, lost, wrong = [], 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="waymark-soak-") as scratch,
        SiteServer(sites) as server,
        SiteWatch(server, sites),
        ray_runtime(recipe),
    ):
        from rollout_workers.pool import RolloutPool  # Ray reads its access token when it is first imported

        corpus = asyncio.run(read_along(list(tasks[:_TOKENIZER_TASKS]), sites.seed))
        config = WorkerConfig(
            shard_dir=str(Path(scratch) / "shards"),
            tokenizer=str(train_tokenizer(corpus, _VOCABULARY, Path(scratch) / "tokenizer")),
            settings=RolloutSettings(workers=options.workers, contexts_per_worker=options.contexts),
            connection=SiteEndpoint(server.port, server.secret),
        )
        with RolloutPool(config) as pool:
            for first in range(0, options.episodes, options.batch):
                numbers = range(first, min(first + options.batch, options.episodes))
                result = pool.run([_spec(i, tasks[i % len(tasks)]) for i in numbers])
                lost += len(result.failures)
                wrong += sum(summary.outcome != 1.0 for summary in result.summaries)
                held.append(_held())
    return held, lost, wrong


def _spec(number: int, task: Task) -> EpisodeSpec:
    return EpisodeSpec(f"soak-{number:06d}", task, Source.DEMONSTRATION, phase=0, seed=number, temperature=0.0)


def _held() -> dict[str, dict[str, float]]:
    """Return count and resident memory (MB) of this process and its descendants, by kind."""
    counts: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for pid, command in {os.getpid(): "", **descendants(os.getpid())}.items():
        kind = next((k for k, sign in _KINDS.items() if (sign in command if sign else pid == os.getpid())), "other")
        counts[kind] += 1
        memory[kind] += _resident_kb(pid)
    return {k: {"processes": counts[k], "memory_mb": round(memory[k] / 1024, 1)} for k in [*_KINDS, "other"]}


def _resident_kb(pid: int) -> int:
    try:
        lines = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    except OSError:  # it ended meanwhile
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


if __name__ == "__main__":
    main()
