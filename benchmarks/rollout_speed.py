"""How many environment steps per second do rollouts make, with a policy that costs nothing?

Flawless experts play training tasks through the real rollout pool over the embedded sites: in Chromium with
several numbers of contexts and workers, and without a browser beside it. Each repetition runs every
configuration once, every second one in reverse order, so that a drift of the machine hits all alike;
start-up and the first episodes of each pool are not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cores import keep_to
from benchmarks.recording import Recording, met, option_parser
from cluster.demonstrated import demonstrated_sites
from cluster.ray_runtime import ray_runtime
from cluster.recipe.recipe import build_recipe
from cluster.tiny_policy import read_along
from environments.embedded.sessions import SiteEndpoint
from policy.tokenizer_training import train_tokenizer
from records.episodes import Source, Task
from rollout_workers.results import RolloutResult
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from sites.server import SiteServer
from sites.tasks import task_set

NAME = "rollout_speed"
TARGET = 60.0
_TOKENIZER_TASKS, _VOCABULARY = 60, 1536


@dataclass(frozen=True)
class Setup:
    """Which environment, how many workers, and how many episodes at once in each."""

    environment: str
    workers: int
    contexts: int

    def as_json(self) -> dict[str, Any]:
        """Return the setup as results name it."""
        return {"driver": self.environment, "workers": self.workers, "contexts": self.contexts}


def main() -> None:
    """Measure every setup several times, print medians and write all repetitions."""
    options = _options()
    recording = Recording(NAME, options.results)
    cores = keep_to(options.cores)
    setups = [Setup("embedded", w, c) for w in options.workers for c in options.contexts]
    setups.append(Setup("browserless", 1, options.contexts[0]))
    tasks = task_set(0, ("shop", "forum"), "train", options.episodes)
    measured: dict[Setup, list[dict[str, Any]]] = {setup: [] for setup in setups}
    with _base(tasks) as base:
        for repetition in range(options.repetitions):
            for setup in setups if repetition % 2 == 0 else reversed(setups):
                measured[setup].append(_numbers(_measure(setup, base, tasks)))
    medians = [
        setup.as_json() | _medians(repetitions, setup.workers * setup.contexts)
        for setup, repetitions in measured.items()
    ]
    columns = [
        "environment",
        "workers",
        "contexts",
        "steps/s",
        "lowest",
        "highest",
        "steps alone/s",
        "ms/reset",
        "ms/step",
        "ms/verdict",
    ]
    recording.table(f"Environment steps per second on {cores} cores, medians of {options.repetitions}",
                    [*columns, "steps", "lost"], [list(row.values()) for row in medians])  # fmt: skip
    best = max(row["steps_per_s"] for row in medians if row["driver"] == "embedded")
    verdict = f"Best with a browser, steps a second: {best:.0f}; target {TARGET:g} {met(best >= TARGET)}"
    recording.write({
        "cores_used": cores,
        "episodes": options.episodes,
        "medians": medians,
        "repetitions": [setup.as_json() | {"measured": runs} for setup, runs in measured.items()],
        "verdicts": [verdict],
    })  # fmt: skip


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--contexts", type=int, nargs="+", default=[4, 8, 12], help="episodes at once in a worker")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="worker processes, a browser each")
    parser.add_argument("--episodes", type=int, default=160, help="episodes of one measurement")
    parser.add_argument("--repetitions", type=int, default=5, help="measurements of each setup")
    parser.add_argument("--cores", type=int, default=2, help="cores that this benchmark and its children may use")
    return parser.parse_args()


@contextmanager
def _base(tasks: Sequence[Task]) -> Iterator[WorkerConfig]:
    """Yield a worker's configuration within running Ray and sites, with a tokenizer of the sites' own pages."""
    recipe = build_recipe({"run": {"dashboard": False}})
    sites = demonstrated_sites(recipe)
    with tempfile.TemporaryDirectory(prefix="waymark-bench-") as scratch, SiteServer(sites) as server:
        corpus = asyncio.run(read_along(list(tasks[:_TOKENIZER_TASKS]), sites.seed))
        config = WorkerConfig(
            shard_dir=str(Path(scratch) / "shards"),
            tokenizer=str(train_tokenizer(corpus, _VOCABULARY, Path(scratch) / "tokenizer")),
            connection=SiteEndpoint(server.port, server.secret),
            options=sites,
        )
        with ray_runtime(recipe):
            yield config


def _measure(setup: Setup, base: WorkerConfig, tasks: Sequence[Task]) -> RolloutResult:
    """Play a few episodes for every context, then all tasks, and return the report of the latter."""
    from rollout_workers.pool import RolloutPool  # Ray reads its access token when it is first imported

    settings = RolloutSettings(workers=setup.workers, contexts_per_worker=setup.contexts)
    config = replace(base, environment=setup.environment, settings=settings)
    with RolloutPool(config) as pool:
        pool.run(_demonstrations("warm", tasks[: 2 * setup.workers * setup.contexts]))
        return pool.run(_demonstrations("play", tasks))


def _demonstrations(prefix: str, tasks: Sequence[Task]) -> list[EpisodeSpec]:
    return [
        EpisodeSpec(f"{prefix}-{i}", task, Source.DEMONSTRATION, phase=0, seed=i, temperature=0.0)
        for i, task in enumerate(tasks)
    ]


def _numbers(result: RolloutResult) -> dict[str, Any]:
    return {
        "steps_per_s": result.env_steps_per_s,
        "seconds": result.seconds,
        "steps": result.env_steps,
        "resets": len(result.summaries),
        "solved": result.successes,
        "lost": len(result.failures),
        "seconds_by_part": result.seconds_by_part,
    }


def _medians(runs: Sequence[dict[str, Any]], slots: int) -> dict[str, Any]:
    """Return medians over repetitions; the milliseconds are of one episode among several at once.

    Steps alone per second are what ``slots`` episodes at once would make without resets and verdicts.
    """

    def per(part: str, count: str) -> float:
        return statistics.median(1000 * run["seconds_by_part"][part] / max(1, run[count]) for run in runs)

    speeds = [run["steps_per_s"] for run in runs]
    return {
        "steps_per_s": statistics.median(speeds),
        "lowest": min(speeds),
        "highest": max(speeds),
        "steps_alone_per_s": 1000 * slots / per("browser", "steps"),
        "ms_per_reset": per("reset", "resets"),
        "ms_per_step": per("browser", "steps"),
        "ms_per_verdict": per("judge", "resets"),
        "steps": int(statistics.median(run["steps"] for run in runs)),
        "lost": sum(run["lost"] for run in runs),
    }


if __name__ == "__main__":
    main()
