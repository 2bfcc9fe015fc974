"""Steps and episodes as a source tells them, before any tokenizer, and steps put together to the episodes they are of.

Owns ``OfflineStep``, ``OfflineEpisode`` and ``episodes_of_steps``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from offline.left_out import Place


@dataclass(frozen=True, slots=True)
class OfflineStep:
    """One step: the answers before it, the page, and what the agent said of it."""

    place: Place
    past: tuple[str, ...]
    page: str
    response: str


@dataclass(frozen=True, slots=True)
class OfflineEpisode:
    """Steps towards one instruction, in order; ``outcome`` is 0 or 1, None where nothing says it."""

    instruction: str
    task_id: str
    steps: tuple[OfflineStep, ...]
    outcome: float | None

    @property
    def said(self) -> tuple[str, ...]:
        """What makes it the same as another: the instruction, what was before it, each page and each answer."""
        before = self.steps[0].past
        return (self.instruction, *before, *(text for step in self.steps for text in (step.page, step.response)))


@dataclass(frozen=True, slots=True)
class LooseStep:
    """A step in a file of steps, where nothing says which episode it is of."""

    instruction: str
    outcome: float | None
    step: OfflineStep

    @property
    def said(self) -> tuple[str, ...]:
        """What makes it the same as another: the instruction, the answers so far, the page and the answer."""
        return (self.instruction, *self.step.past, self.step.page, self.step.response)


def episodes_of_steps(loose: Iterable[LooseStep]) -> list[OfflineEpisode]:
    """Put steps together: one follows another where its past is the other's past and answer.

    Steps whose predecessor is not there begin an episode of their own; of two that could follow, the first does. The
    order of the steps does not matter otherwise: some files are shuffled.
    """
    chains: list[list[LooseStep]] = []
    ends: dict[tuple[str, float | None, tuple[str, ...]], list[list[LooseStep]]] = {}
    for one in sorted(loose, key=lambda one: len(one.step.past)):
        waiting = ends.get((one.instruction, one.outcome, one.step.past))
        if waiting:
            chain = waiting.pop(0)
        else:
            chains.append(chain := [])
        chain.append(one)
        past = (*one.step.past, one.step.response)
        ends.setdefault((one.instruction, one.outcome, past), []).append(chain)
    chains.sort(key=lambda chain: (chain[0].step.place.file, chain[0].step.place.record))
    return [
        OfflineEpisode(chain[0].instruction, "", tuple(one.step for one in chain), chain[0].outcome) for chain in chains
    ]
