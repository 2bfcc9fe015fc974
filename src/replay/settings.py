"""What can be configured about replay; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from records.bounds import at_least, one_of, require
from records.labels import LabelSubject


@dataclass(frozen=True)
class ReplaySettings:
    """Which stored successes are trained on again (MiRA alg. 2), and whose labels say what succeeded."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("labels_at_once", "pack_above")
    unset: ClassVar[Mapping[str, object]] = {"critic_phases": 0}

    perplexity_low: float = 1 / 0.9
    """Lowest perplexity under the current policy that is kept, inclusive (1 = certain): below, nothing is learned."""

    perplexity_high: float = 1 / 0.5
    """Highest perplexity that is kept, inclusive: above, the episode is too far from the policy."""

    perplexity_of: Literal["tokens", "actions"] = "tokens"
    """What the perplexity is the mean over: all tokens of the actions (the paper), or the actions, each with the
    product of its tokens' probabilities. The former falls with each token that the syntax leaves no choice in."""

    per: Literal["trajectory", "step"] = "trajectory"
    """Unit that is kept or dropped: whole trajectories (MiRA's paper) or single steps (WebRL's code)."""

    cap_per_rollout: float = 2.0
    """Most units kept per unit of fresh rollouts (trajectories against trajectories, or steps against steps)."""

    critic_phases: int = 0
    """Past phases whose rollouts, failures too, teach the critics again (those with ``use_replay``), beside the
    successes that are replayed. 0, as in the paper: none; what a critic knows then fades with what a phase shows."""

    outcomes: str = ""
    """Judge whose labels say which rollouts succeeded, as learning and the curriculum see it: a registered name or
    ``module:name``, whose options stand under its name in ``judges``. Empty: the verdict that each was played with.
    Evaluations keep that one in any case."""

    milestones: str = ""
    """Judge whose labels say which milestones rollouts reached. Empty: those that were checked during play."""

    step_rewards: str = ""
    """Judge whose labels say which steps of rollouts were right, for the rewards ``process`` and
    ``process_steps`` (``learner.reward``, or an algorithm's own). Empty: none."""

    labels_at_once: int = 8
    """Episodes that these judges are asked about at the same time."""

    pack_above: int = 1000
    """A stage whose episodes lie in more shards than this has them packed into few, compressed ones when it is
    complete; 0 packs none. What is read from them is the same."""

    def __post_init__(self) -> None:
        one_of(self, "perplexity_of", ("tokens", "actions"))
        one_of(self, "per", ("trajectory", "step"))
        at_least(self, 0, "pack_above", "critic_phases")
        at_least(self, 1, "labels_at_once")
        at_least(self, 1, "perplexity_low", "perplexity_high")
        at_least(self, 0, "cap_per_rollout")
        high = self.perplexity_high
        require(self.perplexity_low <= high, "perplexity_low", f"at most perplexity_high ({high})", self.perplexity_low)

    @property
    def judges(self) -> dict[LabelSubject, str]:
        """The judge of each subject that one is named for."""
        named = {
            LabelSubject.OUTCOME: self.outcomes,
            LabelSubject.MILESTONES: self.milestones,
            LabelSubject.STEPS: self.step_rewards,
        }
        return {subject: judge for subject, judge in named.items() if judge}

    def cap(self, rollouts: int) -> int:
        """Return how many units may be replayed beside ``rollouts`` fresh ones."""
        return int(self.cap_per_rollout * rollouts)
