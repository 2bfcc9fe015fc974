"""What can be configured about replay; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from records.bounds import at_least, require


@dataclass(frozen=True)
class ReplaySettings:
    """Which stored successes are trained on again (MiRA alg. 2)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    perplexity_low: float = 1 / 0.9
    """Lowest perplexity under the current policy that is kept, inclusive (1 = certain): below, nothing is learned."""

    perplexity_high: float = 1 / 0.5
    """Highest perplexity that is kept, inclusive: above, the episode is too far from the policy."""

    per: Literal["trajectory", "step"] = "trajectory"
    """Unit that is kept or dropped: whole trajectories (MiRA's paper) or single steps (WebRL's code)."""

    cap_per_rollout: float = 2.0
    """Most units kept per unit of fresh rollouts (trajectories against trajectories, or steps against steps)."""

    def __post_init__(self) -> None:
        at_least(self, 1, "perplexity_low", "perplexity_high")
        at_least(self, 0, "cap_per_rollout")
        high = self.perplexity_high
        require(self.perplexity_low <= high, "perplexity_low", f"at most perplexity_high ({high})", self.perplexity_low)

    def cap(self, rollouts: int) -> int:
        """Return how many units may be replayed beside ``rollouts`` fresh ones."""
        return int(self.cap_per_rollout * rollouts)
