"""How good demonstrations are."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Quality:
    """Shares of what is imperfect.

    Each template's share of imperfect demonstrations (in chains: each atom's, whichever chain it is in) is drawn once
    between ``low`` and ``high`` by ``seed``, or is ``faulty`` for all when that is given. ``detours`` of the imperfect
    ones still succeed; ``habitual`` of the others repeat the template's (the atom's) own usual fault.
    """

    low: float = 0.2
    high: float = 0.8
    seed: int = 0
    faulty: float | None = None
    detours: float = 0.2
    habitual: float = 0.7

    def __post_init__(self) -> None:
        for name in ("low", "high", "faulty", "detours", "habitual"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}: expected a share between 0 and 1, found {value}")
        if self.low > self.high:
            raise ValueError(f"expected low <= high, found {self.low} > {self.high}")

    def rate(self, template: str) -> float:
        """Return the share of this template's demonstrations that are imperfect."""
        if self.faulty is not None:
            return self.faulty
        return random.Random(f"rate/{self.seed}/{template}").uniform(self.low, self.high)
