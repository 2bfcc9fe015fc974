"""Tasks, specs, stored episodes and reports, made without playing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from records.episodes import Source, Step, Task, Termination, Trajectory
from records.failures import Failure
from replay.shards import write_shard
from rollout_workers.results import RolloutResult
from rollout_workers.spec import EpisodeSpec


def spec(index: int, *, site: str = "shop", split: str = "test", horizon: int = 3) -> EpisodeSpec:
    task = Task(
        task_id=f"{site}.t{index}",
        sites=(site,),
        intent=f"Do number {index}",
        start_url=f"__{site.upper()}__/",
        evaluation={},
        template=f"{site}.template",
        split=split,
        horizon=horizon,
    )
    return EpisodeSpec(f"{split}-{index}", task, Source.ROLLOUT, phase=1, seed=0)


def trajectory(spec: EpisodeSpec, outcome: float, version: int = 0) -> Trajectory:
    """A judged episode of one step; a failure reaches the first half of its milestones, a success all."""
    count = len(spec.task.milestones)
    step = Step(
        index=0,
        url=spec.task.start_url,
        observation="@ Shop\nlink Lamp 0",
        prompt_ids=np.array([1, 2, 3], dtype=np.int32),
        action_ids=np.array([4, 5], dtype=np.int32),
        logprobs=np.array([-0.5, -0.25], dtype=np.float32),
        policy_version=version,
        temperature=spec.temperature,
        action_text='exit(message="done")',
        milestones=(False,) * count,
    )
    return Trajectory(
        episode_id=spec.episode_id,
        task_id=spec.task.task_id,
        template=spec.task.template,
        site=spec.task.site,
        split=spec.task.split,
        intent=spec.task.intent,
        source=spec.source,
        phase=spec.phase,
        seed=spec.seed,
        steps=(step,),
        termination=Termination.EXIT,
        answer="done",
        outcome=outcome,
        failure=None,
        final_milestones=tuple(bool(outcome) or at < count / 2 for at in range(count)),
        horizon=spec.task.horizon,
    )


def store(folder: Path, specs: Sequence[EpisodeSpec], outcomes: Sequence[float], version: int = 0) -> None:
    """Write judged episodes as one shard."""
    write_shard(folder, [trajectory(s, outcome, version) for s, outcome in zip(specs, outcomes, strict=True)])


def result(total: int = 0, failures: Mapping[str, Failure] | None = None) -> RolloutResult:
    """What a pool says of ``total`` episodes; the controller takes verdicts from the shards."""
    return RolloutResult(
        summaries=(),
        located={},
        failures=failures or {},
        incidents={},
        total=total,
        dispatched=total,
        attempts=total,
        late_answers=0,
        worker_losses=0,
        orphans=0,
        seconds=1.0,
    )
