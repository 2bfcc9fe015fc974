"""One training of one model: its updates one after the other, and where it stands.

Owns what is common to cloning, critics and actor: the account of updates, the headway that is told, and bookmarks.
Invariant: a training that goes on from a bookmark ends with the very weights and numbers of one that ran through, but
for its times; so batches are drawn from their seed again, and those that were learned from are left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import nn

from learner.batching import Sample
from learner.optimiser import Compute
from records.episodes import FloatArray


class Training:
    """The training called ``name`` of ``module``, from its beginning or from its bookmark.

    Args:
        compute: how it computes, and who is told.
        name: of the training, and of its bookmark.
        module: what is trained; taken back to the bookmark, if there is one.
        optimiser: its optimiser, likewise.
        facts: what the result depends on, apart from the weights at the beginning and the settings.
        planned: how many updates there are to be.
        answers: (N,) what the model said while it learned, which each update adds to; 0 where it said nothing yet.
    """

    def __init__(
        self,
        compute: Compute,
        name: str,
        module: nn.Module,
        optimiser: torch.optim.Optimizer,
        facts: Iterable[bytes],
        planned: int,
        answers: FloatArray | None = None,
    ) -> None:
        self.losses: list[float] = []
        self.norms: list[float] = []
        self._compute, self._name, self._module, self._optimiser = compute, name, module, optimiser
        self._answers = np.zeros(0, dtype=np.float32) if answers is None else answers
        self._key = compute.bookmarks.key(name, facts)
        self._seconds_before = 0.0
        found = compute.bookmarks.read(name, self._key, module, optimiser)
        if found is not None:
            self.losses, self.norms, self._seconds_before = found["losses"], found["norms"], found["seconds"]
            self._answers[:] = found["answers"]
        self._started = self._marked = time.perf_counter()
        self._has_bookmark = found is not None
        compute.meter.begin(name, self.updates, planned)

    @property
    def updates(self) -> int:
        """How many updates are done."""
        return len(self.losses)

    def seconds(self) -> float:
        """Return how long they took, in all processes that made them; every rank asks, and gets the same."""
        return self._compute.ranks.broadcast_first(self._seconds_before + time.perf_counter() - self._started)

    def note(self, loss: float, norm: float, tokens: int) -> None:
        """Take note of an update by its loss, its gradient norm and the tokens learned from."""
        self.losses.append(loss)
        self.norms.append(norm)
        self._compute.meter.advance(tokens)
        bookmarks = self._compute.bookmarks
        if bookmarks.folder is not None:
            since = self._compute.ranks.broadcast_first(time.perf_counter() - self._marked)
            if since >= bookmarks.every_s:
                self._mark()

    def end(self) -> None:
        """Take note of the last update; the ``answers`` are then those of all ranks."""
        self._answers[:] = self._compute.ranks.all_reduce_max(self._answers)
        if self._has_bookmark:
            self._mark()
        self._compute.bookmarks.trained(self._key)
        self._compute.meter.end()

    def _mark(self) -> None:
        bookmarks = self._compute.bookmarks
        self._answers[:] = self._compute.ranks.all_reduce_max(self._answers)
        state = {"key": self._key, "losses": self.losses, "norms": self.norms, "seconds": self.seconds()}
        bookmarks.write(self._name, self._module, self._optimiser, {**state, "answers": self._answers.tolist()})
        self._has_bookmark, self._marked = True, time.perf_counter()


def facts_of(generator: np.random.Generator, samples: Sequence[Sample]) -> Iterable[bytes]:
    """Yield what any training's result depends on: the state of its shuffles, and data."""
    yield json.dumps(generator.bit_generator.state).encode()
    for sample in samples:
        yield sample.prompt_ids.tobytes()
        yield sample.action_ids.tobytes()
        yield repr(sample.temperature).encode()
