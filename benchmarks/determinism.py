"""Does a second run with the same seed and one worker give the same trajectories and the same losses?

Trains ``benchmarks/deterministic.yaml`` twice from nothing, in real Chromium, and compares every episode
token by token, every number that the learner reports, and the bytes of the final weights. Nothing is
rounded: equal means equal.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording, option_parser
from benchmarks.runs import FOLDER, FinishedRun, train
from cluster.durable import sha256_file
from cluster.stage_data import flat_numbers
from replay.records import Step, Trajectory

NAME = "determinism"
RECIPE = Path(__file__).with_name("deterministic.yaml")
_TIMES = ("seconds", "tokens_per_s")


def main() -> None:
    """Run twice, print what was compared and what differs; exit code 1 where anything does."""
    options = _options()
    recording = Recording(NAME, options.results)
    first, second = (_fresh(options, name) for name in ("first", "second"))
    compared, unequal = Counter[str](), Counter[str]()
    examples: list[str] = []

    def compare(what: str, first: Any, second: Any, where: str) -> None:
        compared[what] += 1
        if not _same(first, second):
            unequal[what] += 1
            examples.append(f"{where}: {what}")

    _compare_episodes(first, second, compare)
    _compare_numbers(first, second, compare)
    _compare_weights(first, second, compare)
    rows = [[what, count, unequal[what]] for what, count in compared.items()]
    recording.table("Two runs with the same seed", ["what", "compared", "different"], rows)
    for example in examples[:5]:
        recording.note(f"different: {example}")
    recording.write({
        "compared": dict(compared),
        "different": dict(unequal),
        "first_differences": examples[:50],
        "seconds": [sum(sum(stages.values()) for stages in run.manifest.seconds.values()) for run in (first, second)],
    })  # fmt: skip
    sys.exit(1 if examples else 0)


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="recipe of both runs")
    parser.add_argument("--out", type=Path, default=FOLDER / NAME, help="folder of the runs; what is there is removed")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="any setting")
    return parser.parse_args()


def _fresh(options: argparse.Namespace, name: str) -> FinishedRun:
    shutil.rmtree(options.out / name, ignore_errors=True)
    return train(options.recipe, options.out / name, options.overrides)


def _compare_episodes(first: FinishedRun, second: FinishedRun, compare: Any) -> None:
    ids = first.buffer.ids()
    compare("set of episodes", ids, second.buffer.ids(), "run")
    shared = [episode_id for episode_id in ids if episode_id in second.buffer]
    for a, b in zip(first.buffer.trajectories(shared), second.buffer.trajectories(shared), strict=True):
        for what, value in _facts(a).items():
            compare(what, value, _facts(b)[what], a.episode_id)
        for one, other in zip(a.steps, b.steps, strict=False):
            for what, value in _step_facts(one).items():
                compare(what, value, _step_facts(other)[what], f"{a.episode_id} step {one.index}")


def _facts(episode: Trajectory) -> dict[str, Any]:
    return {
        "episodes: task and seed": (episode.task_id, episode.intent, episode.seed),
        "episodes: outcome": (episode.outcome, episode.failure),
        "episodes: ending and answer": (episode.termination, episode.answer),
        "episodes: evidence": episode.evidence,
        "episodes: number of steps": len(episode.steps),
        "episodes: subgoals at the end": episode.final_subgoals,
    }


def _step_facts(step: Step) -> dict[str, Any]:
    return {
        "steps: page": (step.url, step.observation),
        "steps: prompt ids": step.prompt_ids,
        "steps: action ids": step.action_ids,
        "steps: log-probabilities": step.logprobs,
        "steps: policy version": step.policy_version,
        "steps: subgoals": step.subgoals,
    }


def _compare_numbers(first: FinishedRun, second: FinishedRun, compare: Any) -> None:
    """Compare everything that the learner reported but times, the replay choices and the evaluations."""
    compare("stages", first.manifest.stages(), second.manifest.stages(), "run")
    for phase, stage in first.manifest.stages():
        a, b = (run.manifest.data(phase, stage) for run in (first, second))
        where = f"phase {phase} {stage}"
        numbers = flat_numbers(a.get("metrics") or {})
        others = flat_numbers(b.get("metrics") or {})
        for name in sorted({*numbers, *others}):
            if not any(part in _TIMES for part in name.split(".")):
                what = "losses" if name.endswith("loss") else "other numbers of the learner"
                compare(what, numbers.get(name), others.get(name), f"{where} {name}")
        for key, what in (("kept", "replay choices"), ("tasks", "curriculum choices"), ("splits", "evaluations")):
            if key in a:
                compare(what, a[key], b[key], where)


def _compare_weights(first: FinishedRun, second: FinishedRun, compare: Any) -> None:
    for path in sorted(first.last_checkpoint.glob("*.safetensors")):
        digests = [sha256_file(run.last_checkpoint / path.name) for run in (first, second)]
        compare("files of the last checkpoint", *digests, path.name)


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return bool(first == second)


if __name__ == "__main__":
    main()
