"""The records that flow through Waymark: task -> episode -> trajectory -> verdict -> shard -> batch.

Owns every type that crosses a process or is written to disk. Invariants: records are immutable;
token ids and log-probabilities are those the policy produced and are never re-tokenised; an
episode without a verdict has ``outcome is None`` and is never a reward of 0. Imports only the
standard library and numpy, so that learners, workers and tools share it at no cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from records.failures import Failure

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]
NO_POLICY = -1
"""The policy version of actions that no policy produced."""


class Source(StrEnum):
    """Why an episode was played."""

    ROLLOUT = "rollout"
    DEMONSTRATION = "demonstration"
    EVALUATION = "evaluation"


def newest_version(source: Source, phase: int) -> int:
    """Return the version of the newest weights that a phase's rollouts or evaluations may be decided by.

    Evaluations follow the phase's publication; rollouts come before it, but for the start policy's own, in phase 0.
    """
    return max(phase - 1, 0) if source is Source.ROLLOUT else phase


class Termination(StrEnum):
    """How an episode that ran to its end ended: by the agent, at its limit, or because it stood still."""

    EXIT = "exit"
    MAX_STEPS = "max_steps"
    STANDSTILL = "standstill"


@dataclass(frozen=True, slots=True)
class Milestone:
    """One milestone of a task: what it means, and a declarative check (see ``judges.milestones``).

    The check is empty where a judge says of recorded episodes whether it is reached.
    """

    description: str
    check: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One task in WebArena's schema, typed; ``raw`` keeps the JSON object it came from, losslessly.

    ``evaluation`` is WebArena's ``eval`` object. ``template`` groups tasks that share an intent
    template, ``horizon`` is the number of steps of the scripted expert (0 where none exists). ``data_seed`` is the seed
    of the embedded sites' data and layout in this task's episodes; None where the run's own data are meant.
    """

    task_id: str
    sites: tuple[str, ...]
    intent: str
    start_url: str
    evaluation: dict[str, Any]
    template: str
    parameters: dict[str, Any] = field(default_factory=dict)
    require_login: bool = False
    require_reset: bool = False
    split: str = ""
    horizon: int = 0
    max_steps: int = 0
    milestones: tuple[Milestone, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)
    data_seed: int | None = None

    @property
    def site(self) -> str:
        """The task's first site, by which results are grouped."""
        return self.sites[0]


@dataclass(frozen=True, slots=True)
class Step:
    """One decision: the state the policy saw, the tokens it produced, and what came of them.

    ``prompt_ids`` (P,) and ``action_ids`` (A,) are int32; ``logprobs`` (A,) are the behaviour
    policy's natural-log probabilities of ``action_ids`` at ``temperature``. ``milestones`` (K,) says
    which milestones had been reached in the state *before* the action. ``feedback`` is the one line
    the agent was told about its previous action; ``parse_error`` is set when this action did not
    parse; ``element`` describes the element acted on; ``refused`` says that the action was not carried
    out, False too where a record does not tell. ``truncated_tokens`` counts observation tokens left out of
    the prompt. Times are seconds. ``reward`` is what a judge says of the step, in [0, 1], where
    learning asks for it, and ``similarity`` in [0, 1] what one says of the milestone that the action reaches, 1 where
    that is a yes or no; both come from labels and are in no shard.
    """

    index: int
    url: str
    observation: str
    prompt_ids: IntArray
    action_ids: IntArray
    logprobs: FloatArray
    policy_version: int
    temperature: float
    action_text: str
    milestones: tuple[bool, ...] = ()
    parse_error: str | None = None
    feedback: str | None = None
    element: str | None = None
    truncated_tokens: int = 0
    browser_s: float = 0.0
    policy_s: float = 0.0
    screenshot: str | None = None
    refused: bool = False
    reward: float | None = None
    similarity: float = 1.0


@dataclass(frozen=True, slots=True)
class FinalState:
    """The state s_T after an episode's last action, in which nobody decides, as the policy would see it next.

    ``prompt_ids`` (P,) int32 is its prompt, with every action in it; the rest is as in ``Step``. Its milestones are
    ``Trajectory.final_milestones``.
    """

    url: str
    observation: str
    prompt_ids: IntArray
    feedback: str | None = None
    truncated_tokens: int = 0


@dataclass(frozen=True, slots=True)
class EpisodeHeader:
    """What an episode is, whatever came of it: its task as results are grouped, and what it was played for."""

    episode_id: str
    task_id: str
    template: str
    site: str
    split: str
    intent: str
    source: Source
    phase: int


@dataclass(frozen=True, slots=True)
class Trajectory(EpisodeHeader):
    """One episode. Exactly one of ``outcome`` and ``failure`` is set.

    ``outcome`` is the verdict in {0.0, 1.0}; ``evidence`` is the evaluator's JSON; ``failure``
    says why there is no verdict. ``final_milestones`` (K,) is the milestone vector after the last
    action. ``policy_version`` is the version that produced the first action. Episodes of one task that
    were sampled side by side share their ``group``, which group-relative advantages need. ``final_state`` is None where
    the recipe does not ask for it (``rollout.final_state``), its prompt has no room, or others played the episode.
    """

    seed: int
    steps: tuple[Step, ...]
    termination: Termination | None
    answer: str | None
    outcome: float | None
    failure: Failure | None
    final_milestones: tuple[bool, ...] = ()
    evidence: str = ""
    horizon: int = 0
    policy_version: int = 0
    worker: str = ""
    seconds: float = 0.0
    group: str = ""
    final_state: FinalState | None = None

    def __post_init__(self) -> None:
        if (self.outcome is None) == (self.failure is None):
            raise ValueError(
                f"episode {self.episode_id}: exactly one of outcome and failure must be set, "
                f"found outcome={self.outcome!r} and failure={self.failure!r}"
            )

    @property
    def last_state(self) -> Step | FinalState | None:
        """The last state whose page is recorded: that after the last action, else the one before; None for no step."""
        return self.final_state or (self.steps[-1] if self.steps else None)

    @property
    def success(self) -> bool:
        """Whether a verdict exists and says that the task was solved."""
        return self.outcome == 1.0
