"""What can be configured about the choice of tasks; imports only the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class CurriculumSettings:
    """How the next phase's tasks are put together (ALGORITHMS section 1, curriculum)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    tasks_per_phase: int = 400
    """Number of tasks a phase plays, repetitions included."""

    neighbours: int = 5
    """How many of the most similar pool tasks each failed task calls for (top-k)."""

    overlap: bool = True
    """Whether a pool task that is near several failures is played once for each of them."""

    coverage_share: float = 0.25
    """Share of tasks drawn evenly over the pool's templates, so that no skill is forgotten."""

    replayed_share: float = 0.1
    """Share of tasks that failed in the last phase and are played again."""

    perturbed_share: float = 0.1
    """Most tasks made by changing a failed task's parameters, as a share; only for thinly covered sites."""

    thin_site_tasks: int = 50
    """A site with fewer tasks than this in the pool counts as thinly covered."""

    perturbation_attempts: int = 4
    """How often a failed task's parameters are drawn again before it is given up."""

    value_band: bool = False
    """Whether tasks are left out whose first state the value critic finds too hard or too easy (WebRL)."""

    value_low: float = 0.05
    """Lowest V(s_0) that is kept, inclusive, in [0, 1]."""

    value_high: float = 0.75
    """Highest V(s_0) that is kept, inclusive, in [0, 1]."""

    def __post_init__(self) -> None:
        shares = (self.coverage_share, self.replayed_share, self.perturbed_share)
        if min(shares) < 0 or sum(shares) > 1:
            raise ValueError(
                "curriculum: expected shares of 0 or more that sum to 1 at most, found coverage "
                f"{shares[0]}, replayed {shares[1]}, perturbed {shares[2]}; lower one of them"
            )
        if self.tasks_per_phase < 1 or self.neighbours < 1 or self.perturbation_attempts < 1:
            raise ValueError(
                "curriculum: expected tasks_per_phase, neighbours and perturbation_attempts of 1 or more, found "
                f"{self.tasks_per_phase}, {self.neighbours} and {self.perturbation_attempts}"
            )
        if not 0 <= self.value_low <= self.value_high <= 1:
            raise ValueError(
                f"curriculum: expected 0 <= value_low <= value_high <= 1, found {self.value_low} and {self.value_high}"
            )
