"""How far the learner is in what it does.

Owns the record that the driver asks for while a call runs, and the meter that writes it. Free of torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Headway:
    """``done`` of ``planned`` updates of the training called ``training``, by ``tokens`` learned from.

    ``signs`` counts everything that got done, scored batches too: as long as it grows, the learner works.
    """

    training: str = ""
    done: int = 0
    planned: int = 0
    tokens: int = 0
    signs: int = 0


class Meter:
    """Notes the headway; one thread writes and others read ``now``."""

    def __init__(self) -> None:
        self.now = Headway()

    def begin(self, training: str, done: int, planned: int) -> None:
        """A training of ``planned`` updates begins, or goes on after ``done`` of them."""
        self.now = Headway(training, done, planned, 0, self.now.signs + 1)

    def advance(self, tokens: int) -> None:
        """Another update is done."""
        now = self.now
        self.now = replace(now, done=now.done + 1, tokens=now.tokens + tokens, signs=now.signs + 1)

    def end(self) -> None:
        """No training runs any more."""
        self.now = Headway(signs=self.now.signs + 1)

    def sign(self) -> None:
        """Something got done."""
        self.now = replace(self.now, signs=self.now.signs + 1)
