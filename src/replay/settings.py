"""What can be configured about replay; imports only the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class ReplaySettings:
    """Which stored successes are trained on again (ALGORITHMS section 1, replay and perplexity)."""

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
        if not 1.0 <= self.perplexity_low <= self.perplexity_high:
            raise ValueError(
                "replay: expected 1 <= perplexity_low <= perplexity_high, found "
                f"{self.perplexity_low} and {self.perplexity_high}; a perplexity is never below 1"
            )
        if self.cap_per_rollout < 0:
            raise ValueError(f"replay.cap_per_rollout: expected 0 or more, found {self.cap_per_rollout}")

    def cap(self, rollouts: int) -> int:
        """Return how many units may be replayed beside ``rollouts`` fresh ones."""
        return int(self.cap_per_rollout * rollouts)
