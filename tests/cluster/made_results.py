"""A small result of each stage."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from cluster.run_folder.played_results import NO_EPISODES
from cluster.run_folder.stage_results import (
    POSSIBLE,
    WHERE_NEEDED,
    ActorTrained,
    Cloned,
    CriticsPretrained,
    CriticsTrained,
    Evaluated,
    Published,
    ReplayFiltered,
    RolloutsPlayed,
    StageResult,
    TasksChosen,
    WithEpisodes,
)
from learner.metrics import ActorMetrics, ActorUpdate, CriticMetrics, CriticsUpdate
from policy.published_weights import PublishedWeights
from replay.perplexity import FilterSummary, Histogram


def every_stage(phases: int) -> list[tuple[int, str]]:
    """The phase and name of each stage that every run of so many phases has, in order."""
    before = [kind.stage for kind in (Cloned, CriticsPretrained, Published, Evaluated)]
    each = [stage for stage in POSSIBLE if stage not in WHERE_NEEDED]
    return [(0, stage) for stage in before] + [(phase, stage) for phase in range(1, phases + 1) for stage in each]


def critic_metrics(loss: float | None) -> CriticMetrics:
    return CriticMetrics(states=1, updates=1, loss=loss, grad_norm=None, tokens_per_s=None, ratings={})


def actor_update(phase: int, rollouts: int = 0, replayed: int = 0) -> ActorUpdate:
    unknown: dict[str, Any] = {field.name: None for field in fields(ActorMetrics)}
    actor = ActorMetrics(**{**unknown, "decisions": 1, "updates": 1, "loss": 0.25})
    return ActorUpdate(
        phase=phase, algorithm="mira", rollouts=rollouts, replayed=replayed, left_out=0, success_rate=None,
        actor=actor, seconds={},
    )  # fmt: skip


def made(phase: int, stage: str, played: WithEpisodes = NO_EPISODES, **changes: Any) -> StageResult:
    """The result of a stage that played ``played`` (where it plays), with ``changes``."""
    counts = vars(played)
    results: dict[str, StageResult] = {
        "clone": Cloned(**counts, checkpoint="x", metrics=None),
        "critics": CriticsTrained(checkpoint="x", metrics=CriticsUpdate({"value": critic_metrics(0.5)}, seconds={}))
        if phase
        else CriticsPretrained(**counts, checkpoint="x", metrics={}),
        "rollouts": RolloutsPlayed(**counts),
        "replay": ReplayFiltered(kept={}, audit=FilterSummary(1.0, 2.0, "trajectory", None, {}, Histogram((), ()), 0)),
        "actor": ActorTrained(checkpoint="x", metrics=actor_update(phase)),
        "publish": Published(PublishedWeights(phase, "", ""), ("server-0",), {}, {}, seconds=0.0),
        "evaluate": Evaluated(**counts, splits={}),
        "curriculum": TasksChosen(tasks=(), origins={}),
    }
    return replace(results[stage], **changes)
