"""The settings of rollouts: how many workers, how long to wait, how much may fail.

Owns ``RolloutSettings`` and ``PlanningSettings``. Every number has its unit in its name or its description; every wait
in the package ends by one of these deadlines or by a fixed one; docs/reliability.md lists both. Must not import torch,
ray or pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from records.bounds import above, at_least, one_of, require, share, times
from replay.stuck import EPSILON, WINDOW


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """Planning at inference, in evaluations: docs/guides/planning.md."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    mode: str = "none"
    """``none``, ``milestones`` (keep the milestone state and note where the agent is stuck) or ``replan`` (and lead it
    out of there)."""
    model: str = ""
    """Language model that plays, by its name in ``judges.llm.models``; empty: the policy plays."""
    potential: str = ""
    """Folder of a critic (``waymark critic export``) whose answer for a state is its progress; empty: the share of
    milestones that are reached."""
    epsilon: float = EPSILON
    """Progress that ``window`` steps must bring; with less the agent is stuck."""
    window: int = WINDOW
    """Steps in which progress is expected."""
    observations: int = 50
    """Newest pages that the agent's state keeps whole; of older ones a line or a summary is left."""
    tries: int = 4
    """Times that a policy is asked again whose action is in vain: one that was tried where it is stuck, or an exit
    before its milestones; 0 leaves it at that."""
    temperature: float = 1.0
    """Sampling temperature of asking again."""
    tell: bool = False
    """Say in a stuck policy's prompt that its last actions did not help; for policies that read plain language."""
    thinking: str = "auto"
    """When a language model that plays thinks: ``auto`` (to plan, and where it cannot tell whether a milestone is
    reached) or ``fixed`` (always)."""
    thinking_tokens: int = 2048
    """Thinking budget of one question in tokens; 0 thinks never. An endpoint of OpenAI's protocol has no such budget:
    what keeps its model from thinking is ``judges.llm.models.NAME.without_thinking``."""

    def __post_init__(self) -> None:
        """Refuse modes that do not exist and windows of nothing."""
        one_of(self, "mode", ("none", "milestones", "replan"))
        planned = "milestones or replan where planning.model names who plays"
        require(not self.model or self.mode != "none", "mode", planned, self.mode)
        one_of(self, "thinking", ("auto", "fixed"))
        at_least(self, 1, "window", "observations")
        at_least(self, 0, "tries", "thinking_tokens")
        above(self, 0, "temperature", "epsilon")
        share(self, "epsilon")


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How episodes are played and who plays them."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "workers", "workers_min", "contexts_per_worker", "prefetch_per_worker", "worker_cpus", "worker_memory_mb",
        "reset_deadline_s", "step_deadline_s", "judge_deadline_s", "episode_deadline_s", "attempts", "retry_delay_s",
        "infra_failure_share", "task_failure_share", "policy_failure_share", "judge_failure_share", "failure_floor",
        "failure_window", "shard_linger_s", "shard_deadline_s", "start_timeout_s", "hang_timeout_s",
        "loop_lag_limit_s", "replace_after_s", "stall_timeout_s",
    )  # fmt: skip
    unset: ClassVar[Mapping[str, object]] = {
        "max_staleness": 0, "final_state": False, "max_repeats": 0, "max_unread": 0,
    }  # fmt: skip

    workers: int = 1
    """Rollout worker processes, each with one Chromium."""
    workers_min: int | None = None
    """Rollout workers that stay while the learner works, so that an autoscaler can take the other nodes; unset keeps
    all of them."""
    contexts_per_worker: int = 8
    """Episodes that one worker plays at the same time, each in a browser context of its own."""
    prefetch_per_worker: int = 8
    """Episodes handed to a worker beyond its contexts, so that none of these waits for the driver or for a shard."""
    worker_cpus: float = 0.5
    """Ray CPUs that one worker reserves."""
    worker_memory_mb: int = 0
    """Memory in MB that one worker reserves with Ray; 0 reserves what ``run.resources`` estimates."""

    temperature: float = 1.0
    """Sampling temperature of training rollouts; each episode's spec carries it."""
    top_p: float = 1.0
    """Nucleus sampling mass; 1 keeps the whole distribution, which is what the loss assumes."""
    max_steps: int = 20
    """Actions per episode at most, for tasks that state no limit of their own."""
    max_repeats: int = 0
    """Times that an agent takes the same action in a row, or types the same text into the same field at all, after
    which its episode ends and is judged without an answer; 0 lets it go on. WebArena-Lite's harness has 5.
    Demonstrations go on."""
    max_unread: int = 0
    """Replies in a row that are no action after which an episode ends like that; 0 lets it go on. WebArena-Lite's
    harness has 3."""
    max_staleness: int = 0
    """Versions that a rollout's policy may be behind the one that learns from it. 1 lets free workers begin the next
    phase's rollouts, with the weights that are served, while the learner works on this phase's; the run does not repeat
    exactly then. 0 plays them all with the newest weights."""
    final_state: bool = False
    """Record the state after the last action of rollouts and demonstrations: the page, and the prompt that the policy
    would see next (docs/decisions/0192). The potential critic learns it and it shapes the last action's reward, as in
    the paper; false leaves that action without shaping."""

    trajectory_judge: str = "evaluators"
    """Judge that says whether an episode did its task: a registered name or ``module:name``; its options stand under
    its name in ``judges``. MiniWoB++'s pages judge themselves."""
    milestone_judge: str = "declarative"
    """Judge that says which milestones are reached, named and told like that."""

    planning: PlanningSettings = field(default_factory=PlanningSettings)
    """Planning at inference."""

    reset_deadline_s: float = 30.0
    """Seconds for a reset and the first observation."""
    step_deadline_s: float = 20.0
    """Seconds for one action in the browser, including settling and observing, and for one screenshot."""
    judge_deadline_s: float = 35.0
    """Seconds for the verdict on one episode, the look at its pages and all questions to judges included."""
    episode_deadline_s: float = 300.0
    """Seconds for a whole episode."""

    attempts: int = 3
    """Times that an episode is tried before its failure is final."""
    retry_delay_s: float = 0.5
    """Seconds before a failed episode is tried again; doubles with each attempt."""
    infra_failure_share: float = 0.25
    """Infrastructure incidents allowed among the newest ``failure_window`` attempts, as a share of them."""
    task_failure_share: float = 0.1
    """Task failures allowed among the newest ``failure_window`` attempts, as a share of them."""
    policy_failure_share: float = 0.25
    """Policy failures allowed among the newest ``failure_window`` attempts, as a share of them."""
    judge_failure_share: float = 0.1
    """Judge failures allowed among the newest ``failure_window`` attempts, as a share of them."""
    failure_floor: int = 16
    """Incidents of each kind that are always allowed, however small the run."""
    failure_window: int = 256
    """Newest attempts that these shares are of, so that a long run notices an outage as soon as a short one does."""

    shard_linger_s: float = 0.25
    """Seconds that a finished trajectory waits for others before a shard is written; bounds the number of files."""
    shard_deadline_s: float = 60.0
    """Seconds for writing one shard."""

    start_timeout_s: float = 120.0
    """Seconds until at least one worker must be ready, and a started one must answer."""
    hang_timeout_s: float = 30.0
    """Seconds without an answer after which a worker is killed and replaced."""
    loop_lag_limit_s: float = 10.0
    """Longest pause of a worker's event loop, in seconds; past it its episodes are played again, not scored."""
    replace_after_s: float = 30.0
    """Seconds after which a dead worker that did not come back is replaced; at once where Ray has given it up."""
    stall_timeout_s: float = 600.0
    """Seconds without any finished episode or incident after which a run stops."""

    def __post_init__(self) -> None:
        """Refuse counts below 1, shares outside [0, 1] and waits of nothing."""
        at_least(self, 1, "workers", "contexts_per_worker", "max_steps", "attempts", "failure_window")
        fewer = self.workers_min is None or 0 <= self.workers_min <= self.workers
        require(fewer, "workers_min", f"a number from 0 to rollout.workers ({self.workers})", self.workers_min)
        at_least(self, 0, "prefetch_per_worker", "worker_cpus", "worker_memory_mb", "temperature", "failure_floor")
        at_least(self, 0, "max_repeats", "max_unread")
        require(self.max_repeats != 1, "max_repeats", "0, or 2 and more (every action is taken once)", self.max_repeats)
        require(self.max_staleness in (0, 1), "max_staleness", "0 or 1 (there is one phase ahead)", self.max_staleness)
        above(self, 0, "top_p")
        share(self, "top_p", "infra_failure_share", "task_failure_share", "policy_failure_share")
        share(self, "judge_failure_share")
        times(self, may_be_zero=("retry_delay_s", "shard_linger_s"))
