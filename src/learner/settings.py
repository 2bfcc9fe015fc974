"""Every constant of the learner, with its unit and its source.

Owns the frozen dataclasses that ``cluster.recipe.recipe`` embeds. Imports neither torch nor pydantic. Learning
rates default to the published ones (seeds/000, table 6), which suit models of 8-12 B parameters; a tiny
model needs larger ones, which its recipe states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

FORBID_UNKNOWN = {"extra": "forbid"}


@dataclass(frozen=True)
class CloneSettings:
    """Behaviour cloning on demonstrations."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    learning_rate: float = 1e-5
    """Peak AdamW learning rate."""
    updates: int = 1000
    """Number of optimiser updates; with ``time_limit_s`` unset the run is deterministic."""
    time_limit_s: float | None = None
    """Wall-clock limit in seconds; the learning rate then decays with whichever of time and updates is further."""
    batch_steps: int = 128
    """Decisions (steps of trajectories) per update."""
    prompt_weight: float = 0.0
    """Weight of the prompts' own cross-entropy per token: a small model learns to copy sooner when it also predicts
    pages. 0 trains on actions alone, as is usual for a pretrained model."""
    prompt_share: float = 0.7
    """Share of the run after which the prompts' cross-entropy is dropped."""
    warmup_share: float = 0.1
    """Share of the run during which the learning rate rises linearly from zero."""
    decay: str = "cosine"
    """Shape of the decay after the warm-up: ``cosine``, ``linear`` or ``constant``."""
    final_share: float = 0.0
    """Share of the peak learning rate that is left at the end."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""


@dataclass(frozen=True)
class CriticSettings:
    """One critic: language-model backbone, MLP head, sigmoid."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    learning_rate: float = 1e-6
    """Constant AdamW learning rate in a phase."""
    epochs: int = 1
    """Passes over the data in a phase."""
    pretrain_learning_rate: float = 1e-6
    """Constant AdamW learning rate of the pre-training before the first phase."""
    pretrain_epochs: int = 1
    """Passes over the data in the pre-training."""
    batch_steps: int = 128
    """States per update."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    use_replay: bool = True
    """Whether replayed trajectories join the rollouts in a phase. They are all successes, so they raise the values."""


@dataclass(frozen=True)
class PotentialDataSettings:
    """Which successful trajectories teach progress (ALGORITHMS, potential critic)."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    max_identical_actions: int = 5
    """Trajectories that repeat an identical action more often than this in a row are left out."""
    max_steps: int = 15
    """Trajectories of this many steps or more are left out."""


@dataclass(frozen=True)
class ActorSettings:
    """The policy update of a phase."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    learning_rate: float = 1e-6
    """Constant AdamW learning rate."""
    epochs: int = 1
    """Passes over the phase's data."""
    batch_steps: int = 128
    """Decisions per update."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this L2 norm."""
    weight_decay: float = 0.0
    """AdamW's decoupled weight decay."""
    beta: float = 1.0
    """Temperature of the KL regularisation (eq. 5, 12): A / beta is the log-ratio that the loss asks for."""
    log_ratio: str = "sum"
    """Log-probability of an action: ``sum`` over its tokens (eq. 12), or their ``mean``."""
    max_weight: float = 20.0
    """Upper limit of the weight exp(A / beta) in ``awr``."""
    filter_threshold: float = 0.0
    """Steps with an advantage up to this are left out by ``hard_filter``."""
    instruction_keep: float = 0.5
    """Share of trajectories that the instruction-level filter of ``digirl`` keeps."""
    probe_steps: int = 512
    """Decisions on which the achieved log-ratio is measured after the update; 0 leaves the measurement out."""


@dataclass(frozen=True)
class LearnerSettings:
    """The learner: an algorithm (four choices, see ``learner.algorithms``) and its constants."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID_UNKNOWN

    algorithm: str = "mira"
    """Name of the recipe that picks reward, advantage, policy loss and data."""
    reward: str | None = None
    """Another reward than the recipe's: ``outcome``, ``difference`` or ``pbrs``."""
    advantage: str | None = None
    """Another advantage than the recipe's (see ``learner.advantages``)."""
    policy_loss: str | None = None
    """Another policy loss than the recipe's (see ``learner.losses``)."""
    data: str | None = None
    """Another choice of data than the recipe's (see ``learner.algorithms``)."""
    gamma: float = 0.9
    """Discount per step."""
    alpha: float = 0.3
    """Scale of the shaping reward."""
    lam: float = 0.5
    """Share of the one-step TD error in the doubly robust advantage (eq. 10)."""
    value_target: str = "outcome"
    """What the value critic learns: the ``outcome`` (eq. 4) or its discounted ``return``. Eq. 10 sets discounted
    returns against V: with ``outcome`` and gamma < 1, early steps of long successes get negative advantages."""
    clone: CloneSettings = field(default_factory=CloneSettings)
    """Behaviour cloning."""
    actor: ActorSettings = field(default_factory=ActorSettings)
    """Policy update."""
    value: CriticSettings = field(default_factory=CriticSettings)
    """Value critic."""
    potential: CriticSettings = field(
        default_factory=lambda: CriticSettings(
            learning_rate=2e-5, epochs=3, pretrain_learning_rate=2e-5, pretrain_epochs=3
        )
    )
    """Potential critic."""
    potential_data: PotentialDataSettings = field(default_factory=PotentialDataSettings)
    """What the potential critic learns from."""
    seed: int = 0
    """Seed of the critics' heads and of every shuffle."""
    device: str = "cpu"
    """Torch device: ``cpu``, ``cuda`` or ``cuda:N``."""
    precision: str = "float32"
    """Arithmetic of forward and backward passes: ``float32`` or ``bfloat16`` (autocast); weights stay float32."""
    threads: int = 1
    """CPU threads of torch in the learner's process."""
    micro_batch_tokens: int = 4096
    """Most tokens, padding included, in one forward pass; no influence on the result beyond rounding. 2048-4096 is
    fastest for tiny models on a CPU, a GPU wants more."""
    sort_window_batches: int = 4
    """Batches are cut from samples sorted by length within windows of this many batches (less padding); 1 = off."""

    def __post_init__(self) -> None:
        """Refuse names that do not exist."""
        if self.value_target not in ("outcome", "return"):
            raise ValueError(f"value_target must be 'outcome' or 'return', found {self.value_target!r}")
