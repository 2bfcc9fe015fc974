"""Settings of a run as a whole: how many phases, on which tasks, judged how, with which resources.

Owns what the controller decides; what a package decides is in that package's ``settings.py``.
Standard library only, so that importing a recipe stays cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from records.bounds import LARGEST, at_least, gpus, one_of, require, share, times

_ADDRESS = re.compile(r"|auto|[\w.\-\[\]:]+:\d{1,5}")
_RESOURCE = re.compile(r"|(?!(?:CPU|GPU|memory|object_store_memory|node:.*)$)[A-Za-z][\w.:/-]{0,99}")
SPLITS = (
    "train", "validation", "test", "test_wordings", "test_long", "test_atoms", "validation_templates", "test_templates",
)  # fmt: skip
"""Every split that some environment has."""


@dataclass(frozen=True)
class EvaluationSettings:
    """What is measured before RL and after each phase; greedy decoding, one pass, unless said otherwise."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    unset: ClassVar[Mapping[str, object]] = {"before_rl": True}

    splits: tuple[str, ...] = ("test", "test_templates")
    """Splits that are evaluated, in this order; the first is the one the progress display and the table show."""

    tasks_per_split: int = 120
    """Tasks drawn from each split; the same ones every time, so that two evaluations can be paired."""

    tasks: Mapping[str, int] = field(default_factory=dict)
    """Splits that get another number of tasks than ``tasks_per_split``, such as ``{test_templates: 50}``; one that is
    not in ``splits`` counts where ``waymark eval --split`` asks for it."""

    seed: int = 20_000
    """Seed of the tasks drawn; apart from ``run.seed``, so that runs with different seeds share one test set."""

    every: int = 1
    """Evaluate after every n-th phase; the last phase is always evaluated."""

    before_rl: bool = True
    """Also evaluate the policy that RL starts from, as a run without phases always does. Of runs that share it, one
    needs to."""

    passes: int = 1
    """Episodes per task. With 1 decoding is greedy; with more, ``temperature`` is used and pass@k is reported."""

    temperature: float = 1.0
    """Sampling temperature of evaluations with more than one pass; unused with one pass."""

    screenshots: int = 4
    """Episodes of the last evaluation that are shown on the report page, with a screenshot of every step."""

    def __post_init__(self) -> None:
        """Refuse splits that do not exist and counts that make no sense."""
        different = len({*self.splits} & {*SPLITS})
        require(
            0 < len(self.splits) == different, "splits", f"different ones of {', '.join(SPLITS)}", list(self.splits)
        )
        for split, count in self.tasks.items():
            require(split in SPLITS, "tasks", f"numbers of splits out of {', '.join(SPLITS)}", split)
            require(1 <= count <= LARGEST, f"tasks.{split}", "at least 1", count)
        at_least(self, 1, "tasks_per_split", "every", "passes")
        at_least(self, 0, "seed", "temperature", "screenshots")
        several = "a temperature above 0 where passes is above 1, or every pass would be the same episode"
        require(self.passes == 1 or self.temperature > 0, "temperature", several, self.temperature)

    def count(self, split: str) -> int:
        """Return how many tasks are drawn from ``split``."""
        return self.tasks.get(split, self.tasks_per_split)


@dataclass(frozen=True)
class ResourceSettings:
    """Processes of a run and what each declares to Ray.

    The parts take turns for most of a phase, so on a small machine the declared cores are shares;
    memory is what a process is expected to hold at its peak.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    memory_mb_per_rollout_worker: int = 300
    """Memory of one rollout worker without its browser, in MiB."""

    memory_mb_per_context: int = 60
    """Browser memory per concurrent episode, in MiB (measured: 118 at 8 contexts on a heavy page, 56 at 32)."""

    learner_cpus: float = 0.5
    """Logical cores declared by the learner, by each rank where ``learner.ranks`` is above 1; so for what follows."""

    learner_gpus: float = 0.0
    """GPUs declared by the learner: a share of one, or a whole number."""

    learner_memory_mb: int = 1200
    """Memory of the learner (actor, two critics, optimiser state, one micro-batch), in MiB."""

    controller_memory_mb: int = 300
    """Memory of the driver process with the controller, in MiB."""

    ray_memory_mb: int = 900
    """Memory of Ray's own processes (GCS, raylet, agents), in MiB, without the object store."""

    object_store_mb: int = 200
    """Size of Ray's object store, in MiB; only small messages cross it."""

    address: str = ""
    """Address of a running Ray cluster; empty starts a local one that ends with the run."""

    rollout_nodes: str = ""
    """Custom resource of Ray that nodes for rollout workers have, such as ``browser``; empty takes any node. A local
    Ray has whatever is named here."""

    policy_nodes: str = ""
    """The same for policy servers, such as ``policy``."""

    learner_nodes: str = ""
    """The same for the learner, such as ``learner``."""

    def __post_init__(self) -> None:
        """Refuse negative resources and what is no address."""
        at_least(self, 0, "learner_cpus")
        at_least(self, 0, "object_store_mb", "ray_memory_mb")
        gpus(self, "learner_gpus")
        at_least(self, 1, "memory_mb_per_rollout_worker", "memory_mb_per_context")
        at_least(self, 1, "learner_memory_mb", "controller_memory_mb")
        form = "'auto' or HOST:PORT, of a node that the driver runs on; from elsewhere use `waymark submit`"
        require(_ADDRESS.fullmatch(self.address) is not None, "address", form, self.address)
        for name in ("rollout_nodes", "policy_nodes", "learner_nodes"):
            found = getattr(self, name)
            require(_RESOURCE.fullmatch(found) is not None, name, "the name of a custom resource of Ray", found)


@dataclass(frozen=True)
class WarmStartSettings:
    """What happens before RL: from which policy it starts, and what is learned from the scripted experts first."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    unset: ClassVar[Mapping[str, object]] = {"rollout_tasks": 0, "take_critics": True}

    checkpoint: str = ""
    """Folder of a policy that Waymark exported to start from, with its checksums, relative to the working folder or to
    Waymark's; where ``policy.model`` is ``tiny``."""

    clone: str = "auto"
    """Whether demonstrations are cloned before RL. ``auto``: only onto a fresh ``tiny``; a checkpoint, or the model of
    ``policy.model``, is taken as it is. ``always``: onto that model, or onto a fresh ``tiny`` in place of a checkpoint.
    ``never``: not at all. Where ``data`` is named: what it shows solved, unless ``never``."""

    data: str = ""
    """Folder that ``waymark data import`` made, relative to the working folder. The policy is cloned on its solved
    episodes and the critics learn from all of it, in place of demonstrations of the embedded sites."""

    tokenizer_demonstrations: int = 400
    """Flawless demonstrations whose pages and actions the tiny policy's tokenizer is trained on."""

    demonstrations: int = 2000
    """Demonstrations that the policy is cloned on; some of them are imperfect."""

    potential_demonstrations: int = 400
    """Demonstrations that teach the potential critic progress before the first phase: flawless ones, or imperfect ones
    where all episodes do (``learner.potential_data.labels``)."""

    value_demonstrations: int = 400
    """Imperfect demonstrations whose outcomes teach the value critic before the first phase; 0 leaves that out."""

    long_horizon: int = 8
    """Tasks whose expert needs this many steps or more count as long."""

    long_share: float = 0.1
    """Share of the demonstrations that show long tasks; RL must win where demonstrations are thin."""

    faulty_low: float = 0.2
    """Lowest share of imperfect demonstrations (early stops, wrong items, detours) that a template may have."""

    faulty_high: float = 0.8
    """Highest share of imperfect demonstrations that a template may have."""

    habits_seed: int = 0
    """Seed of each template's share of imperfect demonstrations and of its usual fault; the same demonstrators for
    every ``run.seed``."""

    detours: float = 0.2
    """Share of the imperfect demonstrations that only wander and still succeed."""

    habitual: float = 0.7
    """Share of the failing demonstrations that repeat their template's usual fault, as when everybody who was asked
    misunderstood the same kind of task."""

    rollout_tasks: int = 0
    """Training tasks that the start policy plays before phase 1, each ``run.attempts_per_task`` times: what it solves
    opens the replay buffer, what it fails the failure set. 0: both are empty when phase 1 begins."""

    take_critics: bool = True
    """Whether to go on with critics in the start policy's folder that learned what this run's critics learn. With
    ``false`` they are taught anew, as where they learned something else."""

    def __post_init__(self) -> None:
        """Refuse shares outside [0, 1] and an empty set of demonstrations."""
        one_of(self, "clone", ("auto", "always", "never"))
        at_least(self, 0, "value_demonstrations", "habits_seed", "rollout_tasks")
        at_least(self, 1, "tokenizer_demonstrations", "demonstrations", "potential_demonstrations", "long_horizon")
        share(self, "long_share", "faulty_low", "faulty_high", "detours", "habitual")
        require(self.faulty_low <= self.faulty_high, "faulty_low", f"at most faulty_high ({self.faulty_high})",
               self.faulty_low)  # fmt: skip


@dataclass(frozen=True)
class RunSettings:
    """The run: its name and seed, its phases, and what is kept of it."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "name", "dashboard", "learner_timeout_s", "head_timeout_s", "node_timeout_s", "recoveries", "resources",
    )  # fmt: skip
    unset: ClassVar[Mapping[str, object]] = {"critics_dtype": "float32"}

    name: str = "run"
    """Name of the run; without ``--out`` its folder is ``runs/NAME``."""

    seed: int = 0
    """Seed of everything random: task order, sampling, initial weights, batches. The sites have a seed of their own."""

    phases: int = 4
    """Phases of rollouts and learning after the warm start; 0 stops after the warm start and its evaluation."""

    environment: str = "embedded"
    """Where episodes are played: ``embedded`` (the sites in Chromium), ``browserless`` (the sites without a browser,
    for tests and sweeps), ``miniwob`` (MiniWoB++'s pages), ``webarena`` (its containers), or a name or ``module:name``
    of your own."""

    training_tasks: int = 400
    """Training tasks from which the curriculum chooses each phase's."""

    attempts_per_task: int = 1
    """Episodes of each task the curriculum chose for a phase, sampled independently."""

    keep_checkpoints: int = 2
    """Newest checkpoints kept on disk (actor, critics, optimiser); older ones are removed after a phase is complete."""

    keep_critics: bool = False
    """Whether the trained policy's folder holds the critics as well, each as large as the policy. A run that starts
    from it (``warm_start.checkpoint``) takes those that learned the same targets, and teaches the others."""

    critics_dtype: str = "float32"
    """Type of the critics that ``keep_critics`` writes: float32, or bfloat16 for half the size. Whoever takes them
    trains them in float32 again."""

    dashboard: bool = True
    """Start the Ray dashboard with a local Ray."""

    learner_timeout_s: float = 3600.0
    """Longest time in which the learner gets nothing done (no update, no scored batch) before it counts as lost, in
    seconds. How long a stage takes has no limit. Loading a model, publishing and each checkpoint count as one thing."""

    head_timeout_s: float = 30.0
    """Seconds without Ray's head after which the run starts its processes afresh (``recoveries``); Ray itself ends the
    process without a word after 60."""

    node_timeout_s: float = 3600.0
    """Longest wait for a node on which a process of the run has room, in seconds: an autoscaler starts a machine, loads
    its image and the weights meanwhile. What a cluster can never give is told at once where its autoscaler knows."""

    recoveries: int = 3
    """Times in a row, no stage completed in between, that a run starts all its processes afresh by itself after it lost
    one that it cannot replace where it stands: the learner, Ray's head, every policy server during a publication."""

    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    """What is measured, and when."""

    resources: ResourceSettings = field(default_factory=ResourceSettings)
    """Processes, cores and memory."""

    def __post_init__(self) -> None:
        """Refuse a name that is not a folder name and counts that make no sense."""
        plain = self.name not in {"", ".", ".."} and not set(self.name) & set("/\\") and self.name.isprintable()
        require(plain and len(self.name.encode()) <= 255, "name", "a text usable as a folder's name", self.name)
        at_least(self, 0, "phases", "seed", "recoveries")
        at_least(self, 1, "training_tasks", "attempts_per_task", "keep_checkpoints")
        one_of(self, "critics_dtype", ("float32", "bfloat16"))
        times(self)

    @property
    def kept_critics(self) -> str:
        """Type in which the trained policy's folder holds the critics; empty where it holds none."""
        return self.critics_dtype if self.keep_critics else ""
