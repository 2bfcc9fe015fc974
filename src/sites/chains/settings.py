"""Settings of chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from records.bounds import require

MOST_ATOMS = 8
"""Atoms of the longest chain, so that its expert needs no more actions than that of any other task."""


@dataclass(frozen=True)
class ChainSettings:
    """Which chains are drawn; they name each how many atoms a chain has, one chain of each length in turn."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    lengths: tuple[int, ...] = (1, 2, 4, 6)
    """Numbers of atoms of the chains of all splits but ``test_long``; one that stands twice is drawn twice as often."""
    trained: tuple[int, ...] = ()
    """Numbers of atoms of training chains where they are others than those of ``lengths``; empty is the same."""
    long: tuple[int, ...] = (8,)
    """Numbers of atoms in ``test_long``: more than in any other split."""
    demonstrated: tuple[int, ...] = (1, 1, 1, 1, 1, 1, 1, 2, 2, 2)
    """Numbers of atoms of the chains that experts demonstrate."""
    data_seeds: int = 10_000
    """From how many seeds the sites' data and layouts of training chains are drawn. Fewer are faster to draw, since a
    site's data are built for each of them; those of evaluated chains are as many, and others."""

    def __post_init__(self) -> None:
        """Refuse lengths that no chain has, and long chains that are not longer than those of other splits."""
        for name in ("lengths", "trained", "long", "demonstrated"):
            found = getattr(self, name)
            numbers = f"at least one number of 1 to {MOST_ATOMS}"
            require(bool(found) or name in ("trained", "long"), name, numbers, list(found))
            require(all(1 <= length <= MOST_ATOMS for length in found), name, numbers, list(found))
        longer = f"numbers above {self.longest}, the longest of lengths, trained and demonstrated"
        require(all(length > self.longest for length in self.long), "long", longer, list(self.long))
        require(1 <= self.data_seeds <= 1_000_000, "data_seeds", "1 to 1,000,000", self.data_seeds)

    @property
    def longest(self) -> int:
        """The number of atoms of the longest chain outside of ``test_long``."""
        return max(*self.lengths, *self.trained, *self.demonstrated)

    def lengths_of(self, split: str) -> tuple[int, ...]:
        """Return the numbers of atoms of a split's chains, in the order in which they are drawn."""
        own = {"train": self.trained or self.lengths, "test_long": self.long}
        return own.get(split, self.lengths)
