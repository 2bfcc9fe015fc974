"""What each stage leaves: one record a stage, which writes itself to the stage's manifest and reads itself from there.

Owns the records and the order of stages. Invariants: what is read is exactly what a record of that stage can hold, or a
``ValueError``; a record says itself which files it depends on; what can be derived from records is never stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from analysis.agreement import Agreement
from analysis.results import GroupResult, SplitResult
from cluster.run_folder.layout import RunFolders
from judges.of_milestones.distillation import Distilled
from learner.metrics import ActorUpdate, CloneUpdate, CriticMetrics, CriticsUpdate
from plugs.options import reader_of
from policy.published_weights import PublishedWeights
from records.episodes import Milestone
from replay.buffer import ReplayBuffer
from replay.perplexity import FilterSummary


@dataclass(frozen=True)
class StageResult:
    """A complete stage's result; ``stage`` is the stage's name."""

    stage: ClassVar[str]
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the files that the stage depends on: its checkpoint, its weights, the shards of its episodes."""
        return []

    def learned(self) -> dict[str, Any]:
        """Return what the learner reported in this stage, nested by part."""
        return {}

    def numbers(self) -> dict[str, float]:
        """Return the numbers in the result as ``part.name``; those of the learner are under ``metrics``."""
        return flat_numbers({**asdict(self), "metrics": self.learned()})

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values; raise ``ValueError`` for a number that JSON has not."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain


@dataclass(frozen=True)
class WithCheckpoint(StageResult):
    """A stage that ends with a checkpoint of the learner."""

    checkpoint: str

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the checkpoint's files before the others."""
        return [*folders.checkpoint_files(self.checkpoint), *super().files(folders, buffer)]


@dataclass(frozen=True)
class WithEpisodes(StageResult):
    """A stage that plays: ids of its judged episodes, counts, and times.

    ``dispatched`` is the number of ``episodes`` and of ``failures`` (by ``kind/code``) together. ``incidents`` counts
    failed attempts and lost workers; ``seconds_by_part`` adds up over episodes, which overlap. These two and
    ``env_steps_per_s`` are of the start that completed the stage; the last is None where that played nothing.
    """

    episodes: tuple[str, ...]
    dispatched: int
    successes: int
    failures: dict[str, int]
    incidents: dict[str, int]
    env_steps_per_s: float | None
    seconds_by_part: dict[str, float]
    worker_losses: int
    orphans: int

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the shards that hold the episodes."""
        shards = {buffer.entry(episode_id).shard for episode_id in self.episodes}
        return [*super().files(folders, buffer), *sorted(shards)]


@dataclass(frozen=True)
class Cloned(WithCheckpoint, WithEpisodes):
    """The warm start's policy; ``metrics`` are None where nothing was cloned.

    ``imported`` are ids of episodes of ``warm_start.data``, which nobody played here.
    """

    stage: ClassVar[str] = "clone"
    metrics: CloneUpdate | None
    imported: tuple[str, ...] = ()

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return also the shards that hold the imported episodes."""
        shards = {buffer.entry(episode_id).shard for episode_id in self.imported}
        return [*super().files(folders, buffer), *sorted(shards)]

    def learned(self) -> dict[str, Any]:
        """Return what cloning reported."""
        return asdict(self.metrics) if self.metrics else {}


@dataclass(frozen=True)
class CriticsPretrained(WithCheckpoint, WithEpisodes):
    """The critics before the first phase: each one's training by name, and those that the policy folder held."""

    stage: ClassVar[str] = "critics"
    metrics: dict[str, CriticMetrics]
    taken: tuple[str, ...] = ()

    def learned(self) -> dict[str, Any]:
        """Return each critic's metrics."""
        return {critic: metrics.to_dict() for critic, metrics in self.metrics.items()}


@dataclass(frozen=True)
class TaskMilestones:
    """The milestones that ``model`` wrote for a task under the wording ``prompt``."""

    milestones: tuple[Milestone, ...]
    model: str
    prompt: str


@dataclass(frozen=True)
class MilestonesWritten(StageResult):
    """Milestones by task id, of a phase's tasks that brought none and had none written before.

    Phase 0 has those of the evaluations' tasks. ``absent`` says of those that have none now why; ``cost_usd`` is what
    asking cost.
    """

    stage: ClassVar[str] = "milestones"
    written: dict[str, TaskMilestones]
    absent: dict[str, str]
    cost_usd: float

    def numbers(self) -> dict[str, float]:
        """Return how many have some now, how many have none, and the cost."""
        return {"written": len(self.written), "absent": len(self.absent), "cost_usd": self.cost_usd}


@dataclass(frozen=True)
class RolloutsPlayed(WithEpisodes):
    """A phase's episodes with the current policy.

    ``staleness`` counts steps by how many versions older than that policy decided them, where
    ``rollout.max_staleness`` lets any; it is in no manifest of other runs. ``success`` is over the episodes' tasks,
    None in manifests from before 2026-11-28.
    """

    stage: ClassVar[str] = "rollouts"
    staleness: dict[str, int] = field(default_factory=dict)
    success: GroupResult | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result without a staleness that is not counted."""
        plain = super().to_json()
        return plain if self.staleness else {name: value for name, value in plain.items() if name != "staleness"}


@dataclass(frozen=True)
class MilestonesDistilled(StageResult):
    """Milestones from a phase's successes, new or changed, by what they are of: a template, or a task.

    ``met`` counts what the phase's episodes are of, ``covered`` those of them that have milestones now. ``absent`` says
    of which the model was asked in vain, and why. ``cost_usd`` is what asking cost.
    """

    stage: ClassVar[str] = "distil"
    distilled: dict[str, Distilled]
    absent: dict[str, str]
    met: int
    covered: int
    cost_usd: float

    def numbers(self) -> dict[str, float]:
        """Return the counts and the cost."""
        counts = {
            "distilled": len(self.distilled),
            "absent": len(self.absent),
            "met": self.met,
            "covered": self.covered,
        }
        return {**counts, "cost_usd": self.cost_usd}


@dataclass(frozen=True)
class JudgeLabels:
    """What one judge said in a stage: how many episodes it labelled, and failures by ``kind/code`` of the others.

    ``wordings`` counts labels by model and prompt; ``cost_usd`` is what was paid for all of them.
    """

    judge: str
    labelled: int
    failures: dict[str, int]
    wordings: dict[str, int]
    cost_usd: float


@dataclass(frozen=True)
class Labelled(StageResult):
    """A phase's episodes under the judges that a recipe names, by subject.

    ``label_files`` hold the labels, by their names in the folder of labels. ``success`` is that of the labels of
    outcomes; ``agreement`` compares the verdicts that episodes were played with (first) with these (second). Both are
    None where no judge is named for outcomes.
    """

    stage: ClassVar[str] = "label"
    subjects: dict[str, JudgeLabels]
    label_files: tuple[str, ...]
    success: GroupResult | None
    agreement: Agreement | None

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the files of labels."""
        return [folders.labels / name for name in self.label_files]


@dataclass(frozen=True)
class ReplayFiltered(StageResult):
    """The earlier successes that a phase learns from again: the steps ``kept`` of each episode, and why not others."""

    stage: ClassVar[str] = "replay"
    kept: dict[str, tuple[int, ...]]
    audit: FilterSummary


@dataclass(frozen=True)
class CriticsTrained(WithCheckpoint):
    """The critics after a phase's episodes."""

    stage: ClassVar[str] = "critics"
    metrics: CriticsUpdate

    def learned(self) -> dict[str, Any]:
        """Return each critic's metrics, and their seconds."""
        return self.metrics.to_dict()


@dataclass(frozen=True)
class ActorTrained(WithCheckpoint):
    """The policy after a phase's episodes."""

    stage: ClassVar[str] = "actor"
    metrics: ActorUpdate

    def learned(self) -> dict[str, Any]:
        """Return the update's metrics."""
        return self.metrics.to_dict()


@dataclass(frozen=True)
class Published(StageResult):
    """Who serves the weights that ``weights`` names (its path is under the run folder), and who was replaced and why.

    ``probe_gaps`` are the servers' largest differences from the learner's log-probabilities, in nats; ``seconds`` is
    the publication's time.
    """

    stage: ClassVar[str] = "publish"
    weights: PublishedWeights
    accepted: tuple[str, ...]
    quarantined: dict[str, str]
    probe_gaps: dict[str, float]
    seconds: float

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the file with the weights."""
        return [folders.out / self.weights.path]


@dataclass(frozen=True)
class Evaluated(WithEpisodes):
    """The held-out tasks: a result for each split, none where the phase is not evaluated."""

    stage: ClassVar[str] = "evaluate"
    splits: dict[str, SplitResult]

    @property
    def success(self) -> float | None:
        """Success on the first split in [0, 1]; None where nothing was judged."""
        return next((result.success for result in self.splits.values()), None)


@dataclass(frozen=True)
class ChosenTask:
    """A task that the curriculum chose, by what its template makes it from."""

    template: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class FirstStatesOpened(StageResult):
    """First states of the training tasks that nobody had played when the curriculum first asked about them.

    ``state_files`` hold ``opened`` of them, by their names beside the shards; ``absent`` says of the other tasks why
    they have none.
    """

    stage: ClassVar[str] = "pages"
    state_files: tuple[str, ...]
    opened: int
    absent: dict[str, str]

    def files(self, folders: RunFolders, buffer: ReplayBuffer) -> list[Path]:
        """Return the files of first states."""
        return [folders.episodes / name for name in self.state_files]

    def numbers(self) -> dict[str, float]:
        """Return how many have a first state, and how many have none."""
        return {"opened": self.opened, "absent": len(self.absent)}


@dataclass(frozen=True)
class TasksChosen(StageResult):
    """The next phase's tasks, and how many came from where.

    ``outside_band`` counts training tasks that the value critic's band left out; None, and in no manifest, where there
    is no band.
    """

    stage: ClassVar[str] = "curriculum"
    tasks: tuple[ChosenTask, ...]
    origins: dict[str, int]
    outside_band: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the result without the count of a band that there is not."""
        plain = super().to_json()
        return {name: value for name, value in plain.items() if value is not None}


R = TypeVar("R", bound=StageResult)

POSSIBLE_BEFORE: Mapping[str, type[StageResult]] = {
    kind.stage: kind
    for kind in (
        Cloned,
        CriticsPretrained,
        Published,
        MilestonesWritten,
        Evaluated,
        RolloutsPlayed,
        MilestonesDistilled,
        Labelled,
        FirstStatesOpened,
        TasksChosen,
    )
}
"""The stages that phase 0 may have, in order."""
OPENING = frozenset(
    kind.stage for kind in (RolloutsPlayed, MilestonesDistilled, Labelled, FirstStatesOpened, TasksChosen)
)
"""Those that phase 0 has only where the start policy's rollouts open the replay buffer."""
POSSIBLE: Mapping[str, type[StageResult]] = {
    kind.stage: kind
    for kind in (
        MilestonesWritten,
        RolloutsPlayed,
        MilestonesDistilled,
        Labelled,
        ReplayFiltered,
        CriticsTrained,
        ActorTrained,
        Published,
        Evaluated,
        FirstStatesOpened,
        TasksChosen,
    )
}
"""Those that a phase after it may have, in order."""
WHERE_NEEDED = frozenset(kind.stage for kind in (MilestonesWritten, MilestonesDistilled, Labelled, FirstStatesOpened))
"""Those that a phase has only where there is something for them to do."""


def read_result(phase: int, stage: str, content: object) -> StageResult:
    """Return the result that ``to_json`` wrote; raise ``ValueError`` where it is not one of this stage."""
    kind = (POSSIBLE if phase else POSSIBLE_BEFORE).get(stage)
    if kind is None:
        raise ValueError(f"there is no stage {stage!r} in phase {phase}")
    return reader_of(kind).validate_json(json.dumps(content), strict=True)


def flat_numbers(nested: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of nested mappings as ``part.name``; what is not a number is left out."""
    flat: dict[str, float] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{key}": number for key, number in flat_numbers(value).items()})
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[name] = float(value)
    return flat
