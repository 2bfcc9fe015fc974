"""What a run of episodes came to, in ids and numbers; the trajectories stay in their shards.

Owns ``EpisodeSummary``, ``Completed``, ``EpisodeAnswer``, ``RolloutCounts`` and ``RolloutResult``. Invariants: the
counts add up to the episodes asked for; an episode without a verdict is among the failures and never
among the outcomes. Must not import ray.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from environments.environment import Grant
from records.failures import Failure
from rollout_workers.episode import Played
from rollout_workers.leases import Lease


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """What the driver counts of a judged episode. Times are seconds; ``outcome`` is in {0.0, 1.0}."""

    outcome: float
    steps: int
    policy_version: int
    worker: str
    seconds: float
    reset_s: float
    browser_s: float
    policy_s: float
    judge_s: float

    @classmethod
    def of(cls, played: Played) -> EpisodeSummary:
        """Summarise an episode that has a verdict; raise ``ValueError`` for one that failed."""
        t = played.trajectory
        if t.outcome is None:
            raise ValueError(
                f"episode {t.episode_id} has no verdict ({t.failure}); only judged episodes are summarised"
            )
        return cls(
            outcome=t.outcome,
            steps=len(t.steps),
            policy_version=t.policy_version,
            worker=t.worker,
            seconds=t.seconds,
            reset_s=played.reset_s,
            browser_s=sum(step.browser_s for step in t.steps),
            policy_s=sum(step.policy_s for step in t.steps),
            judge_s=played.judge_s,
        )


@dataclass(frozen=True, slots=True)
class Completed:
    """A judged episode: its summary, and the path of the durable shard that holds it."""

    summary: EpisodeSummary
    shard: str


@dataclass(frozen=True, slots=True)
class EpisodeAnswer:
    """A worker's answer to one lease: how the attempt ended.

    ``grant`` is the one that was sent with the episode, with what its environment noted in it.
    """

    lease: Lease
    end: Completed | Failure
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class RolloutCounts:
    """How far a run is; given to ``on_counts`` whenever something changed."""

    total: int
    completed: int
    failed: int
    running: int
    successes: int
    env_steps: int
    incidents: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """What a run came to.

    ``located`` maps each completed episode to the path of its shard; ``failures`` each failed one
    to why its last attempt failed. ``incidents`` counts every failed attempt and lost worker by
    ``kind/code``, ``worker_losses`` the workers that died or hung, ``orphans`` the browser processes
    that outlived their worker and were killed, ``loop_lag_s`` the worst lag of a worker's event loop.
    """

    summaries: tuple[EpisodeSummary, ...]
    located: Mapping[str, str]
    failures: Mapping[str, Failure]
    incidents: Mapping[str, int]
    total: int
    dispatched: int
    attempts: int
    late_answers: int
    worker_losses: int
    orphans: int
    seconds: float
    loop_lag_s: float = 0.0

    def then(self, later: RolloutResult) -> RolloutResult:
        """Return what this run and a ``later`` one came to, which was asked for what this one left."""
        settled = len(self.located) + len(self.failures)
        return RolloutResult(
            summaries=(*self.summaries, *later.summaries),
            located={**self.located, **later.located},
            failures={**self.failures, **later.failures},
            incidents=dict(Counter(self.incidents) + Counter(later.incidents)),
            total=settled + later.total,
            dispatched=settled + later.dispatched,
            attempts=self.attempts + later.attempts,
            late_answers=self.late_answers + later.late_answers,
            worker_losses=self.worker_losses + later.worker_losses,
            orphans=self.orphans + later.orphans,
            seconds=self.seconds + later.seconds,
            loop_lag_s=max(self.loop_lag_s, later.loop_lag_s),
        )

    @property
    def shards(self) -> tuple[str, ...]:
        """Paths of the shards that hold the completed episodes, sorted."""
        return tuple(sorted(set(self.located.values())))

    @property
    def counts(self) -> dict[str, int]:
        """Episodes by what became of them; ``completed + failed + not_dispatched`` is ``total``."""
        completed, failed = len(self.located), len(self.failures)
        return {
            "total": self.total,
            "dispatched": self.dispatched,
            "completed": completed,
            "failed": failed,
            "not_dispatched": self.total - completed - failed,
        }

    @property
    def successes(self) -> int:
        """How many episodes were judged solved."""
        return sum(summary.outcome == 1.0 for summary in self.summaries)

    @property
    def env_steps(self) -> int:
        """Actions taken in completed episodes."""
        return sum(summary.steps for summary in self.summaries)

    @property
    def env_steps_per_s(self) -> float | None:
        """Actions per second of wall time, over all workers; None where nothing was played."""
        return self.env_steps / self.seconds if self.seconds and self.summaries else None

    @property
    def seconds_by_part(self) -> dict[str, float]:
        """Seconds that episodes spent in each part, summed over episodes (which overlap in time)."""
        parts = {
            "reset": sum(s.reset_s for s in self.summaries),
            "browser": sum(s.browser_s for s in self.summaries),
            "policy": sum(s.policy_s for s in self.summaries),
            "judge": sum(s.judge_s for s in self.summaries),
        }
        return parts | {"other": max(0.0, sum(s.seconds for s in self.summaries) - sum(parts.values()))}


NOTHING_PLAYED = RolloutResult(
    summaries=(), located={}, failures={}, incidents={}, total=0, dispatched=0, attempts=0, late_answers=0,
    worker_losses=0, orphans=0, seconds=0.0,
)  # fmt: skip
"""A run that had nothing to play."""
