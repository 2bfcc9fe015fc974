"""What can be configured about the choice of tasks; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from records.bounds import at_least, one_of, require, share

TFIDF = "tfidf"
"""The encoder that is the curriculum's own (``curriculum.similarity``)."""


@dataclass(frozen=True)
class CurriculumSettings:
    """How the next phase's tasks are put together (MiRA alg. 2)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    unset: ClassVar[Mapping[str, object]] = {"encoder": TFIDF}

    tasks_per_phase: int = 400
    """Number of tasks a phase plays, repetitions included."""

    failures: Literal["all", "phase"] = "all"
    """Which failed tasks count: those of all phases so far (MiRA alg. 2: the failure set grows), or of the last one."""

    encoder: str = TFIDF
    """What finds the tasks most similar to a failed one, by their instructions. ``tfidf`` goes by wording and needs no
    model. Any other name is a sentence encoder, which goes by meaning, as in ``judges.milestone_matching.encoder``:
    ``all-MiniLM-L6-v2``, or a model of sentence-transformers."""

    neighbours: int = 5
    """How many of the most similar training tasks each failed task calls for (top-k)."""

    overlap: bool = True
    """Whether a training task that is near several failures is played once for each of them."""

    coverage_share: float = 0.25
    """Share of tasks drawn evenly over the training tasks' templates, so that no skill is forgotten."""

    replayed_share: float = 0.1
    """Share of tasks that failed before (``failures``) and are played again."""

    perturbed_share: float = 0.1
    """Most tasks made by changing a failed task's parameters, as a share; only for thinly covered sites."""

    thin_site_tasks: int = 50
    """A site with fewer tasks than this counts as thinly covered."""

    perturbation_attempts: int = 4
    """How often a failed task's parameters are drawn again before it is given up."""

    value_band: bool = False
    """Whether tasks are left out whose first state the value critic finds too hard or too easy (WebRL). The first page
    of each training task that the first phase did not play is opened for it, once a run."""

    value_low: float = 0.05
    """Lowest V(s_0) that is kept, inclusive, in [0, 1]."""

    value_high: float = 0.75
    """Highest V(s_0) that is kept, inclusive, in [0, 1]."""

    def __post_init__(self) -> None:
        one_of(self, "failures", ("all", "phase"))
        require(bool(self.encoder), "encoder", "'tfidf' or the name of a sentence encoder", self.encoder)
        at_least(self, 1, "tasks_per_phase", "neighbours", "perturbation_attempts")
        at_least(self, 0, "thin_site_tasks")
        share(self, "coverage_share", "replayed_share", "perturbed_share", "value_low", "value_high")
        together = self.coverage_share + self.replayed_share + self.perturbed_share
        require(together <= 1, "coverage_share", "at most 1 together with replayed_share and perturbed_share", together)
        require(
            self.value_low <= self.value_high, "value_low", f"at most value_high ({self.value_high})", self.value_low
        )
