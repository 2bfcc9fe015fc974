"""Are two runs the same, bit for bit? Every episode, every number of the learner, every choice, every weight.

Owns the comparison. Left out is only what a clock or a scheduler decides: times, speeds, which worker played an
episode, which episodes share a shard, and what had to be done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import RecordedRun
from cluster.run_folder.durable import sha256_file
from cluster.run_folder.stage_results import (
    Evaluated,
    Published,
    ReplayFiltered,
    StageResult,
    TasksChosen,
    WithEpisodes,
    flat_numbers,
)
from records.episodes import Step, Trajectory

_TIMES = ("seconds", "tokens_per_s")


@dataclass
class Comparison:
    """How many things of each kind were compared and how many differ; ``examples`` says where."""

    compared: Counter[str] = field(default_factory=Counter)
    unequal: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, first: RecordedRun, second: RecordedRun) -> Comparison:
        """Compare two complete runs."""
        found = cls()
        found._episodes(first, second)
        found._numbers(first, second)
        found._files(first, second)
        return found

    @property
    def rows(self) -> list[list[object]]:
        """A row for each kind: its name, compared, different."""
        return [[what, count, self.unequal[what]] for what, count in self.compared.items()]

    def compare(self, what: str, first: Any, second: Any, where: str) -> None:
        """Note whether two things are the same; nothing is rounded."""
        self.compared[what] += 1
        if not _same(first, second):
            self.unequal[what] += 1
            self.examples.append(f"{where}: {what}")

    def _episodes(self, first: RecordedRun, second: RecordedRun) -> None:
        ids = first.buffer.ids()
        self.compare("set of episodes", ids, second.buffer.ids(), "run")
        shared = [episode_id for episode_id in ids if episode_id in second.buffer]
        for a, b in zip(first.buffer.trajectories(shared), second.buffer.trajectories(shared), strict=True):
            for what, value in _facts(a).items():
                self.compare(what, value, _facts(b)[what], a.episode_id)
            for one, other in zip(a.steps, b.steps, strict=False):
                for what, value in _step_facts(one).items():
                    self.compare(what, value, _step_facts(other)[what], f"{a.episode_id} step {one.index}")

    def _numbers(self, first: RecordedRun, second: RecordedRun) -> None:
        """Compare everything that the learner reported but times, the replay choices, tasks, and evaluations."""
        self.compare("stages", first.manifest.stages(), second.manifest.stages(), "run")
        for phase, stage in first.manifest.stages():
            a, b = (run.manifest.entry(phase, stage).result for run in (first, second))
            where = f"phase {phase} {stage}"
            numbers, others = flat_numbers(a.learned()), flat_numbers(b.learned())
            for name in sorted({*numbers, *others}):
                if not any(part in _TIMES for part in name.split(".")):
                    what = "losses" if name.endswith("loss") else "other numbers of the learner"
                    self.compare(what, numbers.get(name), others.get(name), f"{where} {name}")
            for choice in sorted({*_choices(a), *_choices(b)}):
                self.compare(choice, _choices(a).get(choice), _choices(b).get(choice), where)

    def _files(self, first: RecordedRun, second: RecordedRun) -> None:
        for name in sorted({p.name for run in (first, second) for p in _tensors(run.last_checkpoint)}):
            one, other = (_digest(run.last_checkpoint / name) for run in (first, second))
            self.compare("files of the last checkpoint", one, other, name)
        one, other = (_digest(run.folders.trained / "model.safetensors") for run in (first, second))
        self.compare("trained policy", one, other, "trained")


def _choices(result: StageResult) -> dict[str, object]:
    """Return what a stage decided, by kind of choice."""
    found: dict[str, object] = {}
    if isinstance(result, WithEpisodes):
        found["episodes of a stage"] = (result.episodes, result.dispatched, result.failures)
    if isinstance(result, Evaluated):
        found["evaluations"] = result.splits
    if isinstance(result, ReplayFiltered):
        found["replay choices"] = result.kept
    if isinstance(result, TasksChosen):
        found["curriculum choices"] = result.tasks
    if isinstance(result, Published):
        found["published weights"] = result.weights.checksum
    return found


def _tensors(folder: Path) -> Iterable[Path]:
    return folder.glob("*.safetensors")


def _digest(path: Path) -> str:
    return sha256_file(path) if path.is_file() else f"{path.name} is missing"


def _facts(episode: Trajectory) -> dict[str, Any]:
    return {
        "episodes: task and seed": (episode.task_id, episode.intent, episode.seed),
        "episodes: outcome": (episode.outcome, episode.failure),
        "episodes: ending and answer": (episode.termination, episode.answer),
        "episodes: evidence": episode.evidence,
        "episodes: number of steps": len(episode.steps),
        "episodes: milestones at the end": episode.final_milestones,
        "episodes: final prompt ids": None if episode.final_state is None else episode.final_state.prompt_ids,
    }


def _step_facts(step: Step) -> dict[str, Any]:
    return {
        "steps: page": (step.url, step.observation),
        "steps: prompt ids": step.prompt_ids,
        "steps: action ids": step.action_ids,
        "steps: log-probabilities": step.logprobs,
        "steps: policy version": step.policy_version,
        "steps: milestones": step.milestones,
    }


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return bool(first == second)
